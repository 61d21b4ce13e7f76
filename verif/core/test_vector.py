"""The vector path's Verilog with a memory beside it: every write, every row's hand-over, under stalls and resets."""

import os

import pytest

from golden.spec.commands import Elementwise
from golden.spec.sizes import CoreSizes
from hw.emit.package import build_package
from hw.top.vector.controller import VectorController
from verif.campaigns import lint
from verif.core.path_bench import run_path
from verif.core.vector_bench import VectorProgram

pytestmark = pytest.mark.core

SEED = int(os.environ.get("SEED", "1"))
POINTS = [
    (True, {"n_lanes": 2, "simd_lanes": 2, "max_tokens": 16, "imem_depth": 150, "vector_lanes": 2, "special_lanes": 1}),
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
            "n_masks": 1,
            "latent_width": 2,
            "latent_height": 2,
        },
    ),
    (True, {"n_banks": 2, "max_tokens": 23, "imem_depth": 100, "vector_lanes": 8, "special_lanes": 2}),
    (True, {"n_banks": 8, "n_lanes": 1, "simd_lanes": 1, "max_tokens": 40, "max_head_dim": 5, "max_dim": 17}),
    (True, {"n_banks": 4, "n_lanes": 9, "simd_lanes": 3, "max_tokens": 16, "vector_lanes": 6, "special_lanes": 4}),
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
            counters = {"vector_issues": found["counters"]["issues"]["total"]}
            assert counters == {"vector_issues": 0, **run["counted"]}, run["name"]
    return result


@pytest.mark.parametrize("parameters", CASES)
def test_commands(parameters):
    """Runs of all kinds, in any order; some are cut off by a reset, and the next one must not notice."""
    core = CoreSizes(**parameters)
    block = VectorController.for_core(core)
    program = VectorProgram(core, SEED)
    kinds = [program.elementwise, program.layer_norm]
    runs = [kind(n_rows=1) for kind in kinds]
    for stall in ("none", "random", "bursty"):
        for limit in ("all", "random", "bursty"):
            for abort in (None, int(program.rng.integers(1, 150)), None):
                kind = kinds[program.rng.integers(len(kinds))]
                runs.append(kind(stall=stall, limit=limit, abort=abort))
    assert run_all(block, runs)["checked"] > 20


@pytest.mark.slow
def test_no_clock_is_lost():
    """A piece a clock, from row to row too; a function takes more; a clock more for a word of two operands."""
    core = CoreSizes(max_tokens=32, imem_depth=600, vector_lanes=4, special_lanes=1)
    block = VectorController.for_core(core)
    program = VectorProgram(core, SEED)
    common = {"n_rows": 12, "gated": False}
    runs = [
        program.elementwise(function=function, n_in=n_in, **common)
        for function in (Elementwise.ADD, Elementwise.GELU, Elementwise.SILU)
        for n_in in (5, 32)
    ]
    result = run_all(block, runs)
    for run, found in zip(runs, result["runs"], strict=True):
        passes = core.n_vector_lanes // core.n_special_lanes
        is_function = Elementwise(run["command"]["function"]).n_operands == 1
        clocks = found["counters"]["issues"]["clocks"]
        # Of two operands the second one is read when the word before has been taken.
        least = run["n_pieces"] * (passes if is_function else 1) + (0 if is_function else run["n_reads"] // 2)
        assert least - passes <= clocks[-1] - clocks[0] + 1 <= least, run["name"]


@pytest.mark.slow
@pytest.mark.parametrize("writes", ["rare", "bursty"])
def test_a_slow_imem_holds_up_everything(writes):
    """More rows than the path holds wait for their writes."""
    core = CoreSizes(n_lanes=2, simd_lanes=2, max_tokens=64, imem_depth=600)
    block = VectorController.for_core(core)
    program = VectorProgram(core, SEED)
    runs = [program.elementwise(n_rows=64, n_in=4, gated=False, stall={"writes": writes}) for _ in range(2)]
    result = run_all(block, runs)
    assert all(found["stalls"] > 32 and found["counters"]["waits_for_write"]["total"] for found in result["runs"])


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [POINTS[0][1], POINTS[1][1], POINTS[4][1]], ids=str)
def test_verilog_is_clean(parameters):
    report = lint.lint(
        build_package({"vector_controller": VectorController.for_core(CoreSizes(**parameters))}), ["vector_controller"]
    )
    assert {tool: found for tool, found in report.items() if found} == {}
