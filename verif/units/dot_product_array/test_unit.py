"""The dot-product array beyond the standard testbench: every clock of its schedule, order under stalls, errors."""

import numpy as np
import pytest

from golden.arith import floats
from golden.spec.formats import FP32
from golden.units.dot_product_array import sampled_scores, schedule
from golden.units.hash_bank_mapper import sddmm_cycles
from hw.registry import make_block
from hw.units.dot_product_array.unit import DotProductArray
from verif.bench.packing import unpack
from verif.units.dot_product_array.bench import pack_mask, pack_queries
from verif.units.dot_product_array.row_schedule import watch_rows

pytestmark = pytest.mark.slow

POINTS = [
    {"n_units": 2, "n_slots": 1, "n_lanes": 1, "max_beats": 1, "run_ahead": 0},
    {"n_units": 4, "n_slots": 16, "n_lanes": 1, "max_beats": 3, "run_ahead": 1},
    {"n_units": 8, "n_slots": 3, "n_lanes": 1, "max_beats": 2, "run_ahead": 8},
    {"n_units": 2, "n_slots": 7, "n_lanes": 1, "max_beats": 5, "query_beats": 3, "run_ahead": 3},
]
ROWS = 40


def random_bitmap(rng, p, density):
    """Rows whose units are not equally busy, among them rows that are empty or full."""
    bitmap = rng.random((ROWS, p.n_units, p.n_slots)) < density * rng.random((1, p.n_units, 1)) * 1.5
    bitmap[ROWS // 2 :: 9] = False
    bitmap[ROWS // 2 + 4 :: 9] = True
    return bitmap


def transfers(p, bitmap, n_beats):
    query = np.zeros((len(bitmap), n_beats, p.n_lanes), np.int64)
    return {"mask": pack_mask(p, bitmap), "query": pack_queries(p, query)}


def expected_schedule(p, counts, n_beats):
    return schedule(counts, n_beats, p.run_ahead, query_beats=p.query_width, score_latency=1 + p.plan.latency)


def activity_of(p, run):
    """``{what: [clocks, units]}``; the port is one clock late."""
    bits = np.array([unpack(each, 1, 4 * p.n_units) for each in run["activity"][1:]], bool)
    names = ("issues", "waits_for_sink", "waits_for_rows", "waits_for_query")
    return dict(zip(names, np.moveaxis(bits.reshape(len(bits), 4, p.n_units), 1, 0), strict=False))


def planned_issues(plan, n_clocks):
    issues = np.zeros((n_clocks, plan.start.shape[1]), bool)
    for row, unit in np.argwhere(plan.end >= 0):
        issues[plan.start[row, unit] : plan.end[row, unit] + 1, unit] = True
    return issues


@pytest.mark.parametrize("parameters", POINTS, ids=lambda p: "-".join(map(str, p.values())))
def test_every_clock_is_as_planned(parameters):
    block = make_block("dot_product_array", None, parameters)
    p = block.parameters
    rng = np.random.default_rng(5)
    densities = (0.05, 0.2, 0.5, 0.8, 1)
    cases = [(random_bitmap(rng, p, density), 1 + n % p.max_beats) for n, density in enumerate(densities)]
    runs = watch_rows(block, [transfers(p, *case) for case in cases])
    waits_for_query = False
    for run, (bitmap, n_beats) in zip(runs, cases, strict=True):
        counts = bitmap.sum(axis=-1)
        plan = expected_schedule(p, counts, n_beats)
        found = activity_of(p, run)
        assert np.array_equal(found["issues"], planned_issues(plan, len(found["issues"])))
        assert run["row_done"] == plan.row_done.tolist()
        assert not found["waits_for_sink"].any()
        waits_for_query |= found["waits_for_query"].any()
        assert (np.sum(list(found.values()), axis=0) <= 1).all()
        for unit, taken in enumerate(run["scores"]):
            first_beats = [plan.start[row, unit] + n_beats * n for row in range(ROWS) for n in range(counts[row, unit])]
            assert taken == [beat + n_beats + p.plan.latency for beat in first_beats]
    assert waits_for_query == ("query_beats" in parameters)


@pytest.mark.parametrize("parameters", POINTS[:3], ids=lambda p: "-".join(map(str, p.values())))
def test_latency_is_as_stated(parameters):
    block = make_block("dot_product_array", None, parameters)
    bitmap = np.zeros((1, block.n_units, block.n_slots), bool)
    bitmap[0, 1, -1] = True
    (run,) = watch_rows(block, [transfers(block.parameters, bitmap, block.max_beats)])
    assert run["scores"] == [[], [block.latency], *[[]] * (block.n_units - 2)]


@pytest.mark.parametrize("stall", ["random", "bursty"])
def test_rows_are_reported_after_their_scores(stall):
    block = make_block("dot_product_array", None, POINTS[1])
    p = block.parameters
    bitmap = random_bitmap(np.random.default_rng(7), p, 0.4)
    (run,) = watch_rows(block, [transfers(p, bitmap, 1)], stall=stall)
    counts = bitmap.sum(axis=-1)
    assert len(run["row_done"]) == ROWS
    for unit, taken in enumerate(run["scores"]):
        last = np.append(-1, taken)[np.cumsum(counts[:, unit])]
        assert (np.array(run["row_done"]) > last).all()


def test_a_stalled_unit_holds_up_the_others_only_at_the_limit():
    block = make_block("dot_product_array", None, {**POINTS[1], "run_ahead": 2})
    p = block.parameters
    bitmap = np.ones((ROWS, p.n_units, p.n_slots), bool)
    (run,) = watch_rows(block, [transfers(p, bitmap, 1)], stall={"score_0": "bursty"})
    found = activity_of(p, run)
    assert found["waits_for_sink"][:, 0].sum() > ROWS
    assert not found["waits_for_sink"][:, 1:].any()
    assert found["waits_for_rows"][:, 1:].any() and not found["waits_for_rows"][:, 0].any()
    assert not found["waits_for_query"][found["issues"].argmax() :].any()
    done = found["issues"].cumsum(axis=0) // p.n_slots
    assert (done.max(axis=1) - done.min(axis=1)).max() == p.run_ahead + 1
    # A unit that is not held up works in every clock, from its first beat to its last.
    first, last = (int(np.flatnonzero(found["issues"][:, 1])[place]) for place in (0, -1))
    idle = ~(found["issues"] | found["waits_for_rows"])[first : last + 1, 1]
    assert not idle.any()


def test_dense_rows_leave_no_gap():
    """256 x 256 x 32 on 16 units of 16 lanes: every unit issues in at least 97 % of the clocks; here it is in all."""
    for run_ahead in (0, 8):
        counts = np.full((256, 16), 16)
        plan = schedule(counts, 2, run_ahead, query_beats=2, score_latency=14)
        assert plan.cycles == 256 * 16 * 2
    block = make_block("dot_product_array", None, {**POINTS[1], "run_ahead": 0})
    bitmap = np.ones((ROWS, block.n_units, block.n_slots), bool)
    (run,) = watch_rows(block, [transfers(block.parameters, bitmap, 2)])
    issues = activity_of(block.parameters, run)["issues"]
    assert issues.sum(axis=0).tolist() == [ROWS * block.n_slots * 2] * block.n_units
    assert np.flatnonzero(issues.any(axis=1)).size == ROWS * block.n_slots * 2


def test_schedule_is_never_better_than_the_ideal():
    rng = np.random.default_rng(3)
    checked = 0
    for run_ahead in (0, 1, 4, 8):
        for n_beats in (1, 2, 5):
            counts = rng.binomial(16, rng.random((6, 1, 1)) * rng.random((6, 1, 8)), (6, 50, 8))
            plan = schedule(counts, n_beats, run_ahead, query_beats=2, score_latency=12)
            ideal = sddmm_cycles(counts, run_ahead) * n_beats
            assert (plan.cycles >= ideal).all()
            assert (plan.end - plan.start + 1 == counts * n_beats)[counts > 0].all()
            checked += len(ideal)
    assert checked == 72


def test_schedule_of_nothing():
    assert schedule(np.zeros((5, 4), int), 2, 8, query_beats=2, score_latency=12).cycles == 0


def test_scores_are_dot_products():
    rng = np.random.default_rng(4)
    bitmap = rng.random((5, 4, 6)) < 0.5
    query, keys = rng.normal(size=(5, 2, 3)).astype(np.float16), rng.normal(size=(4, 6, 2, 3)).astype(np.float16)
    found = sampled_scores(bitmap, query.view(np.uint16), keys.view(np.uint16), format="fp16")
    exact = np.einsum("rbl,usbl->rus", query.astype(float), keys.astype(float))
    for unit, scores in enumerate(found):
        assert len(scores.row) == bitmap[:, unit].sum() and bitmap[scores.row, unit, scores.slot].all()
        order = scores.row * 6 + scores.slot
        assert (np.diff(order) > 0).all()
        counts = bitmap[:, unit].sum(axis=1)
        assert np.array_equal(np.flatnonzero(scores.last_of_row), np.cumsum(counts)[counts > 0] - 1)
        values = floats.to_float64(FP32, scores.wide)
        assert np.abs(values - exact[scores.row, unit, scores.slot]).max() < 2e-6


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n_units": 3}, "n_units must be a power of two from 2 to 64, not 3"),
        ({"n_units": 1}, "n_units must be a power of two from 2 to 64, not 1"),
        ({"n_slots": 0}, "n_slots must be an integer from 1 to 4096, not 0"),
        ({"run_ahead": 9}, "run_ahead must be an integer from 0 to 8, not 9"),
        ({"max_beats": 0}, "max_beats must be an integer from 1 to 2048, not 0"),
        ({"max_beats": 3, "query_beats": 4}, "query_beats must be at most max_beats=3, not 4"),
        ({"weight_depth": 0}, "weight_depth must be none, or an integer from 1 to 4194304, not 0"),
        ({"max_beats": 5, "max_terms": 64}, "max_beats must be no more than max_terms divided by n_lanes"),
        ({"format": "int8"}, "format must be one of fp16, bf16, not 'int8'"),
        ({"align_width": 22}, "align_width must be at least 23 with format=fp16"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        DotProductArray(**parameters)
