"""SDDMM of every mask of the workload on the core's Verilog: clocks near the ideal, without and with run-ahead.

The ideal is the time in dot products recorded with the masks (see ``shared/spec/workload.md``), times the beats of a
dot product. The schedule depends on masks and beats only, so the core has the 16 banks of edge, but one lane and
queries of two elements. Other data are used with ``WORKLOAD=file.npz``.
"""

import shutil

import numpy as np
import pytest

from golden.core.hash_format import mask_to_bitmap
from golden.program.assembler import Program
from golden.spec.counters import COUNTERS
from golden.timing.cycle_model import CoreTiming
from golden.units.hash_bank_mapper import BankMap
from hw.registry import PRESETS, make_block
from verif.bench import datasets
from verif.core.session import run_program

pytestmark = [
    pytest.mark.core,
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("g++"), reason="this core is too large for Icarus, and Verilator needs g++"),
]

MULTIPLIER, MULTIPLIER_IN_DATA = 13, 3
RUN_AHEAD_IN_DATA = {0: 0, 8: 4}
N_BEATS = 2
SMALLER = {"n_lanes": 1, "simd_lanes": 1, "max_head_dim": N_BEATS, "max_dim": 8, "imem_depth": 256}


@pytest.mark.parametrize("run_ahead", RUN_AHEAD_IN_DATA)
def test_clocks(run_ahead):
    data = datasets.workload()
    masks = np.unpackbits(data["A_mask"], axis=-1, bitorder="little").astype(bool)
    recorded = data["A_cycles"][:, :, 0, MULTIPLIER_IN_DATA, RUN_AHEAD_IN_DATA[run_ahead]].reshape(-1).astype(np.int64)
    masks = masks.reshape(len(recorded), *masks.shape[-2:])
    block = make_block("core", None, PRESETS["edge"]["core"] | SMALLER | {"run_ahead": run_ahead})
    sizes = block.parameters
    program = Program(sizes)
    words = np.random.default_rng(run_ahead).standard_normal((2, masks.shape[-1], N_BEATS)).astype(np.float16)
    query, keys = program.load_rows(words[0]), program.load_keys(words[1], MULTIPLIER)
    scores = None
    for mask in masks:
        program.load_mask(mask, 1, MULTIPLIER)
        program.clear(counters=True)
        scores = program.sddmm(query, keys, 1, at=scores and scores.first)
        program.store_counters()
    session = run_program(block, program)
    found = [dict(zip(COUNTERS, map(int, words), strict=True)) for words in program.split(session.values, session.last)]
    bank_map = BankMap(n_columns=masks.shape[-1], n_banks=sizes.n_banks, multiplier=MULTIPLIER)
    timing = CoreTiming(sizes)
    clocks = np.array([counters["array_busy"] for counters in found])
    planned = np.array([timing.sddmm(mask_to_bitmap(mask, bank_map), N_BEATS).cycles for mask in masks])
    ideal = recorded * N_BEATS
    print(
        f"{len(masks)} masks, {((clocks - ideal) / ideal).max():.2%} above the ideal at most, "
        f"{np.abs(clocks - planned).max()} clocks from the plan"
    )
    assert [counters["scores"] for counters in found] == masks.sum(axis=(1, 2)).tolist()
    assert (clocks >= ideal).all()
    assert (clocks <= 1.03 * ideal + 2 * sizes.n_banks).all()
    assert (np.abs(clocks - planned) <= 2).all()
