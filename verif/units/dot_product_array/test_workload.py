"""Real attention masks on the dot-product array: the SDDMM takes the clocks planned, and little more than the ideal.

The ideal is the time in dot products that was recorded with the masks (see ``shared/spec/workload.md``), times the
beats of a dot product. Other data are used with ``WORKLOAD=file.npz``.
"""

import os

import numpy as np
import pytest

from golden.core.hash_format import mask_to_bitmap
from golden.units.dot_product_array import schedule
from golden.units.hash_bank_mapper import BankMap
from hw.registry import make_block
from verif.bench import datasets, simulator
from verif.units.dot_product_array.bench import pack_mask, pack_queries
from verif.units.dot_product_array.row_schedule import watch_rows

pytestmark = pytest.mark.slow

N_UNITS = 16
TUNED = 13
RUN_AHEADS = (0, 8)
WHERE_IN_DATA = {0: 0, 8: 4}  # place of a run-ahead among those recorded
TUNED_IN_DATA = 3


@pytest.fixture(scope="module")
def workload():
    arrays = datasets.workload()
    masks = np.unpackbits(arrays["A_mask"], axis=-1, bitorder="little").astype(bool)
    bank_map = BankMap(n_columns=masks.shape[-1], n_banks=N_UNITS, multiplier=TUNED)
    flat = masks.reshape(-1, *masks.shape[-2:])
    bitmaps = np.stack([mask_to_bitmap(mask, bank_map) for mask in flat])
    cycles = arrays["A_cycles"][:, :, 0, TUNED_IN_DATA].reshape(len(flat), -1)
    return bitmaps, {run_ahead: cycles[:, place].astype(np.int64) for run_ahead, place in WHERE_IN_DATA.items()}


def array(bitmaps, run_ahead):
    """One lane, so that it is simulated quickly: the schedule depends on masks and beats only."""
    sizes = {"n_units": N_UNITS, "n_lanes": 1, "n_slots": bitmaps.shape[-1], "max_beats": 3, "run_ahead": run_ahead}
    return make_block("dot_product_array", None, sizes)


def plan_of(block, bitmaps, n_beats):
    p = block.parameters
    return schedule(
        bitmaps.sum(axis=-1), n_beats, p.run_ahead, query_beats=p.query_width, score_latency=1 + p.plan.latency
    )


def allowed(ideal):
    return ideal * 1.03 + 2 * N_UNITS


@pytest.mark.parametrize("n_beats", [1, 2, 3])
@pytest.mark.parametrize("run_ahead", RUN_AHEADS)
def test_planned_cycles_are_near_the_ideal(workload, run_ahead, n_beats):
    bitmaps, recorded = workload
    ideal = recorded[run_ahead] * n_beats
    cycles = plan_of(array(bitmaps, run_ahead), bitmaps, n_beats).cycles
    assert (cycles >= ideal).all()
    # A row takes one clock at least, whatever its mask: one-beat dot products of very sparse masks cannot be as fast.
    counted = ideal >= (1.25 if n_beats == 1 else 0) * bitmaps.shape[1]
    excess = (cycles - ideal)[counted] / ideal[counted]
    print(f"{counted.sum()} of {len(counted)} masks, excess {excess.mean():.2%} on average, {excess.max():.2%} at most")
    assert counted.any()
    assert (cycles[counted] <= allowed(ideal[counted])).all()


def simulate(workload, run_ahead, cases, sim=None):
    """Check the clocks of ``(mask, beats)`` cases in the Verilog against the plan and the ideal."""
    bitmaps, recorded = workload
    block = array(bitmaps, run_ahead)
    p = block.parameters
    runs = []
    for mask, n_beats in cases:
        query = np.zeros((bitmaps.shape[1], n_beats, p.n_lanes), np.int64)
        runs.append({"mask": pack_mask(p, bitmaps[mask]), "query": pack_queries(p, query)})
    checked = 0
    for (mask, n_beats), run in zip(cases, watch_rows(block, runs, sim=sim), strict=True):
        plan = plan_of(block, bitmaps[mask], n_beats)
        issues = np.array([word & ((1 << N_UNITS) - 1) for word in run["activity"][1:]])
        busy = np.flatnonzero(issues)
        assert busy[-1] - busy[0] + 1 == plan.cycles
        assert busy[-1] - busy[0] + 1 <= allowed(recorded[run_ahead][mask] * n_beats)
        assert run["row_done"] == plan.row_done.tolist()
        beats = (issues[:, None] >> np.arange(N_UNITS) & 1).sum(axis=0)
        assert np.array_equal(beats, bitmaps[mask].sum(axis=(0, 2)) * n_beats)
        assert [len(taken) for taken in run["scores"]] == bitmaps[mask].sum(axis=(0, 2)).tolist()
        checked += int(beats.sum())
    assert checked


@pytest.mark.parametrize("run_ahead", RUN_AHEADS)
def test_sparsest_mask_in_verilog(workload, run_ahead):
    simulate(workload, run_ahead, [(int(workload[0].sum(axis=(1, 2, 3)).argmin()), 2)])


@pytest.mark.parametrize("run_ahead", RUN_AHEADS)
def test_masks_in_verilog(workload, run_ahead):
    """Every eighth mask (SEED says which of eight; all with ALL_MASKS=1) with two beats, some of them with three."""
    first, step = (0, 1) if os.environ.get("ALL_MASKS") else (int(os.environ.get("SEED", "1")) % 8, 8)
    masks = range(min(first, len(workload[0]) - 1), len(workload[0]), step)
    cases = [(mask, 2) for mask in masks] + [(mask, 3) for mask in masks[::5]]
    simulate(workload, run_ahead, cases, simulator.choose_for(is_large=True))
