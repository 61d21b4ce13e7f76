"""The array path's Verilog with memories beside it: every write, every row's hand-over, under stalls and resets."""

import os

import numpy as np
import pytest

from golden.spec.commands import FLAGS
from golden.spec.sizes import CoreSizes, words_for
from golden.units.dot_product_array import schedule
from hw.emit.package import build_package
from hw.top.array.controller import ArrayController
from hw.top.rows.row_sequencer import RowSequencer
from verif.campaigns import lint
from verif.core.array_program import ArrayProgram
from verif.core.path_bench import run_path

pytestmark = pytest.mark.core

SEED = int(os.environ.get("SEED", "1"))
SETUP = "verif.core.array_bench"
LATENT = {"latent_width": 2, "latent_height": 2}
SMALLEST = {
    "n_banks": 2,
    "n_lanes": 1,
    "simd_lanes": 1,
    "max_tokens": 2,
    "max_head_dim": 1,
    "max_dim": 1,
    "run_ahead": 0,
    "imem_depth": 4,
    "wmem_depth": 4,
    "vmem_depth": 2,
    "omem_depth": 2,
    "n_masks": 1,
    "latent_width": 2,
    "latent_height": 1,
    "patch": 1,
}
POINTS = [
    (False, {"max_tokens": 30}),
    (False, SMALLEST),
    (True, {"n_banks": 2, "max_tokens": 21, "max_head_dim": 7, "max_dim": 19, "run_ahead": 3, **LATENT}),
    (True, {"n_banks": 8, "n_lanes": 1, "simd_lanes": 2, "max_tokens": 20, "max_head_dim": 5, "max_dim": 6, **LATENT}),
    (
        True,
        {
            "n_lanes": 2,
            "simd_lanes": 8,
            "max_tokens": 7,
            "max_head_dim": 9,
            "max_dim": 13,
            "run_ahead": 0,
            "n_masks": 3,
            **LATENT,
        },
    ),
    (True, {"n_banks": 16, "max_tokens": 40, "max_head_dim": 10, "max_dim": 33, "omem_depth": 101, "imem_depth": 150}),
    (True, {"n_lanes": 9, "simd_lanes": 3, "max_tokens": 33, "max_head_dim": 20, "max_dim": 40}),
    (True, {"n_banks": 8, "n_lanes": 8, "simd_lanes": 4, "max_tokens": 20, "max_dim": 24, **LATENT}),
]
CASES = [
    pytest.param(point, marks=pytest.mark.slow if slow else (), id="-".join(map(str, point.values())))
    for slow, point in POINTS
]


def check_counters(block, run, found):
    """What does not depend on stalls is as many as the golden model says."""
    total = {name: each["total"] for name, each in found["counters"].items()}
    assert total["beats"] == run["beats"], run["name"]
    assert total["scores"] == (sum(map(len, run["rows"])) if run["name"].startswith("SDDMM") else 0)
    n_groups = -(-run["command"]["n_out"] // block.n_banks) if run["name"].startswith("PROJECT") else 1
    assert total["rows"] == run["n_active"] * n_groups


@pytest.mark.parametrize("parameters", CASES)
def test_commands(parameters):
    """Commands of all kinds, in any order; some are cut off by a reset, and the next one must not notice."""
    core = CoreSizes(**parameters)
    block = ArrayController.for_core(core)
    program = ArrayProgram(core, SEED)
    runs = [
        program.matmul(gated=True, n_rows=1),
        program.sddmm(density=0),
        program.weighted_sum(density=0.5, n_rows=2),
        program.project(values=True),
        program.project(values=False),
    ]
    runs.append(program.sddmm(reads_keys=True, density=1, gated=False, mask=0))
    for stall in ("none", "random", "bursty"):
        for limit in ("all", "rare", "bursty"):
            for _ in range(2):
                runs += program.any(stall=stall, limit=limit)
            runs += program.any(stall=stall, limit=limit, abort=int(program.rng.integers(1, 150)))
            runs += program.any(stall=stall, limit=limit)
    result = run_path(block, SETUP, runs, seed=SEED)
    assert not result["messages"], result["messages"]
    assert result["checked"] > 20
    for run, found in zip(runs, result["runs"], strict=True):
        if found is not None:
            check_counters(block, run, found)


def product_beats(block, command):
    """Beats of a dot product, and transfers in which a row comes."""
    p = block.parameters
    has_bias = bool(command["flags"] & FLAGS["bias"])
    beats = words_for(command["n_in"], p.n_lanes) + has_bias
    n_words = words_for(command["n_in"], p.row_word)
    return beats, n_words + (beats > n_words * p.query_beats)


@pytest.mark.slow
def test_a_long_row():
    """A product over more elements than a row of LAYER_NORM may have, with a bias."""
    core = CoreSizes(n_banks=8, n_lanes=8, max_tokens=16, max_dim=5000, imem_depth=2000, wmem_depth=1300, **LATENT)
    program = ArrayProgram(core, SEED)
    runs = [program.matmul(n_rows=2, n_in=5000, n_out=9, bias=True, gated=False) | {"patience": 3000}]
    result = run_path(ArrayController.for_core(core), SETUP, runs, seed=SEED)
    assert not result["messages"], result["messages"]
    assert result["checked"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{"max_tokens": 64}, POINTS[3][1]], ids=str)
def test_products_lose_no_clock(parameters):
    """A row takes its slots times its beats, even if that is one clock; only the first one's words are waited for."""
    core = CoreSizes(**parameters)
    block = ArrayController.for_core(core)
    p = block.parameters
    program = ArrayProgram(core, SEED)
    lanes, banks, word = p.n_lanes, p.n_banks, p.row_word
    sizes = [(lanes, banks, False), (lanes, 1, True), (word, banks, False), (word, banks, True)]
    sizes.append((p.max_dim, p.max_dim, True))
    sizes = [(min(n_in, p.max_dim), min(n_out, p.max_dim), bias) for n_in, n_out, bias in sizes]
    runs = [
        program.matmul(n_rows=n_rows, n_in=n_in, n_out=n_out, bias=bias, gated=False)
        for n_rows in (1, 20)
        for n_in, n_out, bias in sizes
    ]
    result = run_path(block, SETUP, runs, seed=SEED)
    assert not result["messages"], result["messages"]
    for run, found in zip(runs, result["runs"], strict=True):
        beats, transfers = product_beats(block, run["command"])
        work = run["n_active"] * beats * words_for(run["command"]["n_out"], banks)
        assert found["clocks"] == block.latency + transfers - 1 + work, run["name"]
        assert found["counters"]["waits_for_sink"]["total"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("run_ahead", [0, 8])
def test_scores_take_the_clocks_of_the_schedule(run_ahead):
    core = CoreSizes(max_tokens=64, run_ahead=run_ahead)
    block = ArrayController.for_core(core)
    program = ArrayProgram(core, SEED)
    runs = [
        program.sddmm(n_rows=n_rows, n_in=n_in, n_keys=64, density=density, gated=False, mask=1)
        for n_rows, n_in, density in ((1, 4, 1), (60, 16, 0.4), (60, 4, 0.4), (60, 7, 0.9), (64, 4, 0.02))
    ]
    result = run_path(block, SETUP, runs, seed=SEED)
    assert not result["messages"], result["messages"]
    array = block._array.parameters
    for run, found in zip(runs, result["runs"], strict=True):
        beats, _ = product_beats(block, run["command"])
        plan = schedule(
            np.array(run["counts"]),
            beats,
            run_ahead,
            query_beats=array.query_width,
            score_latency=1 + array.plan.latency,
        )
        assert found["clocks"] == RowSequencer.latency + 1 + plan.row_done[-1] + 1, run["name"]
        assert bool(found["counters"]["waits_for_rows"]["total"]) == plan.waits_for_rows.any()


@pytest.mark.slow
def test_projections_lose_no_clock():
    """Each group of a row takes its beats, and an empty one a clock; then the last tile goes through the aligner."""
    core = CoreSizes(max_tokens=64)
    block = ArrayController.for_core(core)
    p = block.parameters
    program = ArrayProgram(core, SEED)
    runs = [
        program.project(n_rows=n_rows, n_in=n_in, n_out=n_out, bias=bias, values=values)
        for n_rows, n_in, n_out, bias in ((64, 32, 16, False), (64, 4, 16, False), (40, 16, 13, True))
        for values in (False, True)
    ]
    result = run_path(block, SETUP, runs, seed=SEED)
    assert not result["messages"], result["messages"]
    for run, found in zip(runs, result["runs"], strict=True):
        command = run["command"]
        beats, transfers = product_beats(block, command)
        items = p.n_banks * p.slots_of(command["n_rows"]) * words_for(command["n_out"], p.n_banks)
        full = command["n_rows"] * words_for(command["n_out"], p.n_banks)
        inverse = p.hash_width + 1
        most = full * beats + (items - full) + inverse + block.latency + transfers + 2 * p.n_banks + 8
        assert full * beats < found["clocks"] <= most, run["name"]


@pytest.mark.slow
def test_waiting_units_are_counted():
    core = CoreSizes(max_tokens=30, run_ahead=0)
    block = ArrayController.for_core(core)
    program = ArrayProgram(core, SEED)
    sizes = {"n_rows": 30, "n_in": 4, "gated": False}
    runs = [
        program.matmul(**sizes, n_out=8, bias=False, stall={"writes": "rare"}),
        program.matmul(**sizes, n_out=1, bias=False, stall={"reads": "bursty"}),
        program.sddmm(**sizes, n_keys=30),
    ]
    result = run_path(block, SETUP, runs, seed=SEED)
    assert not result["messages"], result["messages"]
    sink, query, rows = ({name: each["total"] for name, each in found["counters"].items()} for found in result["runs"])
    assert sink["waits_for_sink"] > sink["waits_for_rows"] and sink["waits_for_sink"] > 100
    assert query["waits_for_query"] > 20 and query["waits_for_sink"] == 0
    assert rows["waits_for_rows"] > 20 and rows["waits_for_sink"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [POINTS[0][1], POINTS[1][1], POINTS[3][1], POINTS[4][1]], ids=str)
def test_verilog_is_clean(parameters):
    report = lint.lint(
        build_package({"array_controller": ArrayController.for_core(CoreSizes(**parameters))}), ["array_controller"]
    )
    assert {tool: found for tool, found in report.items() if found} == {}
