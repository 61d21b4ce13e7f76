"""Programs of DiT blocks in the golden model: results against a float64 reference of the block."""

import numpy as np
import pytest

from golden.core.core import Core
from golden.program.assembler import Program
from golden.program.dit.block import DitBlocks, Options
from golden.program.dit.checkpoint import DitSmall
from golden.program.dit.reference import block_reference, gelu_erf, gelu_tanh
from golden.program.dit.weights import BlockShape, random_block
from hw.registry import make_block
from verif.bench.datasets import DATA

MODEL = DATA / "dit_small.safetensors"


def run_blocks(sizes, shape, x, condition, blocks, **options):
    """Tokens after the blocks, in numbers."""
    program = Program(sizes)
    stores = DitBlocks(program, shape, Options(**options)).build(x, condition, blocks)
    run = Core(sizes).execute(program.commands, program.load_beats)
    assert all(run.executed) and all(store.defined(run).all() for store in stores)
    return np.concatenate([store.of(run) for store in stores]).view(np.float16).astype(np.float64)


def error_of(found, exact):
    """The largest error, relative to the largest element."""
    return np.abs(found - exact).max() / np.abs(exact).max()


@pytest.mark.parametrize("preset", ["tiny", "small"])
@pytest.mark.parametrize("options", [{}, {"on_engines": False}, {"rows": 3, "attention_rows": 5}], ids=str)
def test_blocks_of_random_weights(preset, options):
    """Odd numbers of tokens, heads that do not fill words; two blocks, so that memory is used again."""
    sizes = make_block("core", preset).parameters
    dim = sizes.n_lanes
    shape = BlockShape(n_tokens=13, dim=dim, n_heads=dim // 4, hidden=2 * dim)
    rng = np.random.default_rng(1)
    x, condition = rng.standard_normal((13, dim)).astype(np.float16), rng.standard_normal(dim).astype(np.float16)
    blocks = [random_block(shape, seed) for seed in (2, 3)]
    exact = x
    for weights in blocks:
        exact = block_reference(exact, condition, weights, shape.n_heads, gelu_erf)
    assert error_of(run_blocks(sizes, shape, x, condition, blocks, **options), exact) < 6 * 2.0**-10


def test_the_trained_model():
    """Block 0 at a step of a real image."""
    model = DitSmall(MODEL)
    x = model.tokens(np.random.default_rng(4).standard_normal((3, 32, 32))).astype(np.float16)
    condition = model.condition(980, 3).astype(np.float16)
    found = run_blocks(make_block("core", "edge").parameters, model.shape, x, condition, [model.block(0)])
    errors = {
        gelu.__name__: error_of(found, block_reference(x, condition, model.block(0), model.n_heads, gelu))
        for gelu in (gelu_tanh, gelu_erf)
    }
    print(errors)
    assert errors["gelu_erf"] < 2.0**-9 and errors["gelu_tanh"] < 2.0**-9
