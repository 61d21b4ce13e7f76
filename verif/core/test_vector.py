"""The vector path's Verilog with memories beside it: every write, every row's hand-over, under stalls and resets."""

import os

import pytest
from hw.top.vector.row_writer import RowWriter

from golden.spec.commands import Elementwise
from golden.spec.sizes import CoreSizes
from hw.emit.package import build_package
from hw.top.vector.controller import VectorController
from hw.top.vector.layer_norm_controller import LayerNormController
from hw.top.vector.row_reader import RowReader
from verif.campaigns import lint
from verif.core.path_bench import run_path
from verif.core.vector_bench import VectorProgram

pytestmark = pytest.mark.core

SEED = int(os.environ.get("SEED", "1"))
LATENT = {"latent_width": 2, "latent_height": 2}
POINTS = [
    (True, {"n_lanes": 2, "simd_lanes": 2, "max_tokens": 16, "max_head_dim": 11, "omem_depth": 100, "imem_depth": 150}),
    (
        False,
        {
            "n_banks": 2,
            "n_lanes": 1,
            "simd_lanes": 1,
            "max_tokens": 2,
            "max_head_dim": 1,
            "max_dim": 1,
            "imem_depth": 6,
            "vmem_depth": 2,
            "omem_depth": 2,
            "n_masks": 1,
            **LATENT,
        },
    ),
    (
        True,
        {
            "n_banks": 2,
            "n_lanes": 4,
            "simd_lanes": 4,
            "max_tokens": 23,
            "max_head_dim": 10,
            "imem_depth": 100,
            "vmem_depth": 80,
            "n_masks": 3,
        },
    ),
    (True, {"n_banks": 8, "n_lanes": 1, "simd_lanes": 1, "max_tokens": 40, "max_head_dim": 5, "max_dim": 17}),
    (True, {"n_banks": 2, "n_lanes": 1, "simd_lanes": 8, "max_tokens": 17, "max_head_dim": 32, "max_dim": 40}),
    (True, {"n_banks": 4, "n_lanes": 8, "simd_lanes": 4, "max_tokens": 16, "max_head_dim": 20}),
]
CASES = [
    pytest.param(point, marks=pytest.mark.slow if slow else (), id="-".join(map(str, point.values())))
    for slow, point in POINTS
]


def run_all(block, runs):
    """Run them; counters that do not depend on time must be the golden model's."""
    result = run_path(block, "verif.core.vector_bench", runs, seed=SEED)
    assert not result["messages"], result["messages"]
    for run, found in zip(runs, result["runs"], strict=True):
        if found is not None:
            counters = {
                "vector_issues": found["counters"]["issues"]["total"],
                "spmm_terms": found["counters"]["spmm_terms"]["total"],
            }
            assert counters == {"vector_issues": 0, "spmm_terms": 0, **run["counted"]}, run["name"]
    return result


def busy(found):
    """Clocks from the first command of the unit to the last one."""
    clocks = found["counters"]["issues"]["clocks"]
    return clocks[-1] - clocks[0] + 1


@pytest.mark.parametrize("parameters", CASES)
def test_commands(parameters):
    """Runs of all kinds, in any order; some are cut off by a reset, and the next one must not notice."""
    core = CoreSizes(**parameters)
    block = VectorController.for_core(core)
    program = VectorProgram(core, SEED)
    kinds = [program.spmm, program.elementwise, program.layer_norm]
    runs = [program.spmm(gated=True, n_rows=1), program.spmm(density=0), *(kind(n_rows=1) for kind in kinds)]
    runs += [program.spmm(how=how, beside=False, density=0.5) for how in ("words", "values_before")]
    runs += [program.elementwise(beside=True), program.spmm()]
    for stall in ("none", "random", "bursty"):
        for limit in ("all", "random", "bursty"):
            for abort in (None, int(program.rng.integers(1, 150)), None):
                kind = kinds[program.rng.integers(len(kinds))]
                runs.append(kind(stall=stall, limit=limit, abort=abort))
    result = run_all(block, runs)
    assert result["checked"] > 20
    assert {"words", "words_beside", "values_before", "values_beside"} <= {way for run in runs for way in run["extra"]}


@pytest.mark.slow
def test_no_clock_is_lost():
    """One command a clock, from row to row too; two clocks for a word of two operands."""
    core = CoreSizes(n_lanes=2, simd_lanes=2, max_tokens=32, omem_depth=800, imem_depth=600, vmem_depth=128)
    block = VectorController.for_core(core)
    norm = LayerNormController.for_core(core)
    program = VectorProgram(core, SEED)
    common = {"n_rows": 12, "gated": False, "beside": False}
    runs = [
        program.spmm(density=density, n_in=n_in, n_keys=32, **common) for density in (0, 0.2, 1) for n_in in (3, 16)
    ]
    runs += [
        program.elementwise(function=function, n_in=n_in, **common)
        for function in (Elementwise.ADD, Elementwise.GELU)
        for n_in in (5, 32)
    ]
    runs += [program.layer_norm(n_in=n_in, **common) for n_in in (1, 9, 32)]
    result = run_all(block, runs)
    for run, found in zip(runs, result["runs"], strict=True):
        if "n_steps" in run:
            assert busy(found) == run["n_steps"], run["name"]
            assert found["clocks"] == block.latency + run["n_steps"] or run["density"] > 0, run["name"]
        elif "n_words" in run:
            # A row waits for its own last word twice; its way begins at start, and again behind gamma and beta.
            latency = 2 * RowReader.latency + norm.latency + RowWriter.latency + 1
            assert found["clocks"] == run["n_reads"] + 2 * (run["n_words"] - 1) + latency, run["name"]
        else:
            # The first word of a pair is read a clock before its command.
            assert busy(found) in (run["n_reads"], run["n_reads"] - 1), run["name"]


@pytest.mark.slow
@pytest.mark.parametrize("writes", ["rare", "bursty"])
def test_a_slow_imem_holds_up_everything(writes):
    """More rows than the path holds wait for their writes, and values are written beside them."""
    core = CoreSizes(n_lanes=2, simd_lanes=2, max_tokens=64, omem_depth=800, imem_depth=600, max_head_dim=8)
    block = VectorController.for_core(core)
    program = VectorProgram(core, SEED)
    runs = []
    for density in (0, 0.02):
        runs.append(program.elementwise(n_rows=64, n_in=4, gated=False, stall={"writes": writes}))
        runs.append(program.spmm(density=density, n_rows=64, n_in=2, n_keys=40, gated=False, stall={"writes": writes}))
    result = run_all(block, runs)
    assert all(found["stalls"] > 32 and found["counters"]["waits_for_write"]["total"] for found in result["runs"])


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [POINTS[0][1], POINTS[1][1], POINTS[4][1]], ids=str)
def test_verilog_is_clean(parameters):
    report = lint.lint(
        build_package({"vector_controller": VectorController.for_core(CoreSizes(**parameters))}), ["vector_controller"]
    )
    assert {tool: found for tool, found in report.items() if found} == {}
