"""A feed-forward layer step after step on the core's Verilog, and what its command line refuses."""

from pathlib import Path

import numpy as np
import pytest

from hw.cli import mixed_precision_documents
from hw.emit.package import build_package
from hw.lib.errors import UsageError
from hw.registry import make_block
from verif.units.mixed_precision_core.feed_forward import block_for, compare, main
from verif.units.mixed_precision_core.recorded_layer import Layer, recorded


def cut(n_tokens, n_hidden, n_steps):
    """A part of the recorded layer."""
    layer = recorded()
    weights = layer.weights[0][:, :n_hidden], layer.weights[1][:n_hidden, :40]
    biases = layer.biases[0][:n_hidden], layer.biases[1][:40]
    return Layer(np.ascontiguousarray(layer.inputs[:n_steps, :n_tokens]), weights, biases)


def test_the_recorded_layer_in_the_models():
    layer = recorded()
    account = compare(block_for("edge", layer, 2), layer, 1 / 32, n_tiles=2, with_verilog=False)
    assert account.total.bits < 4.5 and np.mean(account.errors[1:]) < 0.01
    assert account.total.utilisation > 0.85 and account.total.clocks < 0.6 * account.total.int8_clocks


@pytest.mark.slow
@pytest.mark.parametrize("n_tiles, n_steps", [(1, 2), (2, 3)])
def test_a_part_of_the_layer_on_the_verilog(n_tiles, n_steps):
    layer = cut(8 * n_tiles, 48, n_steps)
    account = compare(block_for("small", layer, n_tiles), layer, 1 / 32, n_tiles=n_tiles)
    assert account.different == 0 and len(account.clocks) == n_steps
    assert account.busy.any(axis=0).all(), "every unit is busy at some time"
    assert (account.busy.sum(axis=1) > 1).any(), "units work at the same time"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--tiles", "3"], "--tiles must be at most 2 for 32 tokens"),
        (["--tiles", "0"], "--tiles must be at least 1"),
        (["--steps", "11"], "--steps must be from 1 to 10, not 11"),
        (["--config", "huge"], "--config must be one of tiny, small, edge, disc, not 'huge'"),
        (["--model", "none.safetensors"], "--model and --reference must be given together"),
        (["--model", "none.safetensors", "--reference", "none.npz"], "the model cannot be read"),
    ],
)
def test_the_command_line_refuses(arguments, message):
    with pytest.raises(UsageError, match=message):
        main(arguments)


def test_a_core_with_many_buffers_emits():
    """A table of ten constants once became a memory that the writer of Verilog does not know."""
    sizes = {"n_buffers": 10, "n_channels": 9, "n_tiles": 20}
    files = build_package({"mixed_precision_core": make_block("mixed_precision_core", "tiny", sizes)})
    assert "module mixed_precision_core" in files["mixed_precision_core.v"]


def test_the_page_of_commands_is_current():
    page = Path("docs", mixed_precision_documents.MARKDOWN).read_text()
    assert page == mixed_precision_documents.markdown(), "run: make readme"
