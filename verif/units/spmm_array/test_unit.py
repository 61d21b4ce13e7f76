"""The SpMM array beyond the standard testbench: every clock of its schedule, order under stalls, causes of waits."""

import numpy as np
import pytest

from golden.units.spmm_array import schedule
from hw.arith.trees import tree_latency
from hw.registry import make_block
from hw.units.spmm_array import SpmmArray, SpmmArrayParameters
from verif.bench.packing import unpack
from verif.units.spmm_array.bench import pack_bitmaps
from verif.units.spmm_array.pass_schedule import watch_passes

POINTS = [
    {"n_engines": 2, "n_slots": 1, "n_lanes": 1, "run_ahead": 0},
    {"n_engines": 4, "n_slots": 16, "n_lanes": 1, "run_ahead": 1},
    {"n_engines": 4, "n_slots": 16, "n_lanes": 1, "run_ahead": 2, "reduction_clocks": 2},
    {"n_engines": 8, "n_slots": 3, "n_lanes": 1, "run_ahead": 8},
    {"n_engines": 8, "n_slots": 5, "n_lanes": 1, "run_ahead": 3, "reduction_clocks": 4, "wide": True},
]
ROWS = 40
ACTIVITY = ("terms", "waits_for_probability", "waits_for_engines", "waits_for_reduction", "waits_for_result")


def random_bitmap(rng, p, density):
    """Rows whose engines are not equally busy, among them rows that are empty or full."""
    bitmap = rng.random((ROWS, p.n_engines, p.n_slots)) < density * rng.random((1, p.n_engines, 1)) * 1.5
    bitmap[ROWS // 2 :: 9] = False
    bitmap[ROWS // 2 + 4 :: 9] = True
    return bitmap


def activity_of(p, run):
    """``{what: [clocks, engines]}``; the port is one clock late."""
    bits = np.array([unpack(each, 1, len(ACTIVITY) * p.n_engines) for each in run["activity"][1:]], bool)
    return dict(zip(ACTIVITY, np.moveaxis(bits.reshape(len(bits), len(ACTIVITY), p.n_engines), 1, 0), strict=True))


def check_run(p, bitmap, n_passes, run):
    """Terms and passes are complete, whatever stalls; a reason at a time."""
    found = activity_of(p, run)
    terms = n_passes * bitmap.sum(axis=(0, 2))
    assert found["terms"].sum(axis=0).tolist() == terms.tolist()
    assert run["reads"] == terms.sum()
    assert run["last_of_row"] == [number % n_passes == n_passes - 1 for number in range(len(bitmap) * n_passes)]
    assert (np.sum(list(found.values()), axis=0) <= 1).all()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("parameters", POINTS, ids=lambda p: "-".join(map(str, p.values())))
def test_every_clock_is_as_planned(parameters):
    block = make_block("spmm_array", None, parameters)
    p = block.parameters
    rng = np.random.default_rng(5)
    cases = [(random_bitmap(rng, p, density), 1 + n % 3) for n, density in enumerate((0.05, 0.2, 0.5, 0.8, 1, 0.02))]
    runs = watch_passes(block, [{"bitmap": pack_bitmaps(bitmap), "passes": n} for bitmap, n in cases])
    for run, (bitmap, n_passes) in zip(runs, cases, strict=True):
        found = check_run(p, bitmap, n_passes, run)
        plan = schedule(bitmap.sum(axis=-1), n_passes, p)
        assert run["result"] == plan.result.tolist()
        assert not found["waits_for_probability"].any() and not found["waits_for_result"].any()
        pass_, engine = np.nonzero(np.repeat(bitmap.any(axis=2), n_passes, axis=0))
        assert found["terms"][plan.issue[pass_, engine], engine].all()


def test_latency_is_as_stated():
    for parameters in (POINTS[1], POINTS[2]):
        block = make_block("spmm_array", None, parameters)
        bitmap = np.zeros((1, block.n_engines, block.n_slots), bool)
        bitmap[0, 1, -1] = True
        (run,) = watch_passes(block, [{"bitmap": pack_bitmaps(bitmap), "passes": 1}])
        assert run["result"] == [block.latency] == schedule(bitmap.sum(axis=-1), 1, block.parameters).result.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("parameters", POINTS[1:3], ids=lambda p: "-".join(map(str, p.values())))
def test_waits_name_their_cause(parameters):
    block = make_block("spmm_array", None, parameters)
    p = block.parameters
    bitmap = random_bitmap(np.random.default_rng(7), p, 0.4)
    uneven = np.zeros_like(bitmap)
    uneven[..., 0] = True
    uneven[:, 1] = True
    short = np.zeros_like(bitmap)
    short[..., 0] = True
    cases = (bitmap, uneven, short)
    runs = [{"bitmap": pack_bitmaps(each), "passes": 2} for each in cases]
    plain = watch_passes(block, runs)
    stalled = watch_passes(block, runs, stall="bursty")
    refused = watch_passes(block, runs, refusals="random")
    for case, each in enumerate(cases):
        for found in (plain, stalled, refused):
            check_run(p, each, 2, found[case])
    found = activity_of(p, plain[1])
    assert found["waits_for_engines"][:, 0].any() and not found["waits_for_engines"][:, 1].any()
    assert activity_of(p, stalled[2])["waits_for_result"].any()
    assert activity_of(p, refused[0])["waits_for_probability"].any(axis=0).all()
    assert not activity_of(p, stalled[0])["waits_for_probability"].any()


@pytest.mark.slow
def test_no_bubble_between_passes_and_rows():
    """Full rows: every engine issues in every clock; rows of single bits: a pass a clock."""
    block = make_block("spmm_array", None, POINTS[1])
    full = np.ones((ROWS, block.n_engines, block.n_slots), bool)
    single = np.zeros_like(full)
    single[np.arange(ROWS), np.arange(ROWS) % block.n_engines, np.arange(ROWS) % block.n_slots] = True
    for bitmap, terms in ((full, block.n_slots), (single, 1)):
        (run,) = watch_passes(block, [{"bitmap": pack_bitmaps(bitmap), "passes": 2}])
        assert np.diff(run["result"]).tolist() == [terms] * (2 * ROWS - 1)
        activity = activity_of(block.parameters, run)["terms"]
        assert np.flatnonzero(activity.any(axis=1)).size == 2 * ROWS * terms


def test_stages_of_the_sum():
    for n_engines in (1 << width for width in range(1, 8)):
        for clocks in (1, 2, 4, 8):
            if clocks <= n_engines:
                p = SpmmArrayParameters(n_engines=n_engines, reduction_clocks=clocks)
                assert p.sum_stages == tree_latency(p.n_groups)
                # Both reads of the exponents' queues, of passes that follow each other at once, are apart.
                assert clocks == 1 or p.second_read % clocks


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n_engines": 3}, "n_engines must be a power of two from 2 to 128, not 3"),
        ({"n_engines": 1}, "n_engines must be a power of two from 2 to 128, not 1"),
        ({"n_lanes": 0}, "n_lanes must be an integer from 1 to 128, not 0"),
        ({"n_slots": 0}, "n_slots must be an integer from 1 to 4096, not 0"),
        ({"run_ahead": 9}, "run_ahead must be an integer from 0 to 8, not 9"),
        ({"reduction_clocks": 3}, "reduction_clocks must be a power of two from 1 to 8, not 3"),
        ({"n_engines": 2, "reduction_clocks": 4}, "reduction_clocks must be at most n_engines=2, not 4"),
        ({"probability_depth": 100}, "probability_depth must be a power of two from 2 to 16777216, not 100"),
        ({"max_passes": 0}, "max_passes must be an integer from 1 to 4096, not 0"),
        ({"format": "int8"}, "format must be one of fp16, bf16, not 'int8'"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        SpmmArray(**parameters)
