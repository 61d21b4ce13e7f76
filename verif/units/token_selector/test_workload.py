"""Cached token reuse on real latents: the golden model and the Verilog give the recorded masks bit for bit."""

import os

import numpy as np
import pytest

from golden.units.token_selector import token_masks, words
from hw.units.token_selector.unit import TokenSelector
from verif.bench import datasets, simulator
from verif.bench.recorded import replay
from verif.units.token_selector.bench import TokenSelectorBench

PATCH = 2
RECORDED = {"previous": "A_ctr_prev", "last": "A_ctr_last"}
LANES_AND_ORDER = {"previous": (16, "inner"), "last": (12, "outer")}


@pytest.fixture(scope="module")
def workload():
    return datasets.workload()


def recorded_masks(workload, reference):
    """Bool ``[taus, steps - 1, tokens]``."""
    _, _, height, width = workload["A_z"].shape
    packed = workload[RECORDED[reference]]
    return np.unpackbits(packed, axis=-1, bitorder="little", count=height * width // PATCH**2).astype(bool)


@pytest.mark.parametrize("reference", RECORDED)
def test_golden(workload, reference):
    masks = recorded_masks(workload, reference)
    assert masks.any() and not masks.all()
    for tau, expected in zip(workload["A_tau"], masks, strict=True):
        assert np.array_equal(token_masks(workload["A_z"], tau, PATCH, reference), expected)


@pytest.mark.slow
@pytest.mark.parametrize("reference, bounds", [("previous", 0), ("last", 0), ("last", 3)])
def test_verilog(workload, reference, bounds):
    # Stored bounds change how a decision is made, not which: one threshold will do for them. In Icarus, where they take
    # minutes, every other one of the known file is used.
    some = simulator.choose() == "icarus" and not os.environ.get("WORKLOAD")
    chosen = slice(-1, None) if bounds else slice(None, None, 2 if some else None)
    masks, taus = recorded_masks(workload, reference)[chosen], words(workload["A_tau"])[chosen]
    steps, channels, height, width = workload["A_z"].shape
    latents = words(workload["A_z"]).reshape(steps, -1)
    n_values, order = LANES_AND_ORDER[reference]
    block = TokenSelector(
        width=width,
        height=height,
        channels=channels,
        patch=PATCH,
        n_values=n_values,
        channel_order=order,
        reference=reference,
        bounds=bounds,
    )
    bench = TokenSelectorBench(block, 0)
    if reference == "previous":
        batch = bench.make_batch(
            np.tile(latents[1:], (len(taus), 1)),
            np.repeat(taus, steps - 1),
            masks.reshape(-1, block.parameters.n_tokens),
            references=np.tile(latents[:-1], (len(taus), 1)),
        )
    else:
        # The first latent of each threshold is computed in full.
        full = np.ones((len(taus), 1, block.parameters.n_tokens), dtype=bool)
        batch = bench.make_batch(
            np.tile(latents, (len(taus), 1)),
            np.repeat(taus, steps),
            np.concatenate([full, masks], axis=1).reshape(-1, block.parameters.n_tokens),
            restarts=np.tile(np.arange(steps) == 0, len(taus)),
        )
    result = replay(block, batch)
    assert result.passed, result.messages
    assert result.checked == sum(map(len, batch.outputs.values())) > masks.size // block.parameters.word_tokens
