"""The engines' path's Verilog with memories beside it: every write, every row's hand-over, under stalls and resets."""

import os

import pytest

from golden.spec.sizes import CoreSizes
from golden.units.spmm_array import schedule
from hw.emit.package import build_package
from hw.top.engines.controller import EnginesController
from verif.campaigns import lint
from verif.core.engines_bench import EnginesProgram
from verif.core.path_bench import run_path

pytestmark = pytest.mark.core

SEED = int(os.environ.get("SEED", "1"))
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
            "latent_width": 2,
            "latent_height": 2,
        },
    ),
    (True, {"n_banks": 2, "max_tokens": 23, "max_head_dim": 10, "imem_depth": 100, "vmem_depth": 80, "n_masks": 3}),
    (True, {"n_banks": 4, "n_lanes": 9, "simd_lanes": 3, "max_tokens": 40, "max_head_dim": 11}),
    (True, {"n_banks": 8, "n_lanes": 8, "simd_lanes": 4, "max_tokens": 40, "max_head_dim": 20}),
]
CASES = [
    pytest.param(point, marks=pytest.mark.slow if slow else (), id="-".join(map(str, point.values())))
    for slow, point in POINTS
]


def run_all(block, runs):
    """Run them; counters that do not depend on time must be the golden model's."""
    result = run_path(block, "verif.core.engines_bench", runs, seed=SEED)
    assert not result["messages"], result["messages"]
    for run, found in zip(runs, result["runs"], strict=True):
        if found is not None:
            assert {"spmm_terms": found["counters"]["terms"]["total"]} == run["counted"], run["name"]
    return result


@pytest.mark.parametrize("parameters", CASES)
def test_commands(parameters):
    """Runs in any order; some are cut off by a reset, and the next one must not notice."""
    core = CoreSizes(**parameters)
    block = EnginesController.for_core(core)
    program = EnginesProgram(core, SEED)
    runs = [program.spmm(gated=True, n_rows=1), program.spmm(density=0), program.spmm(n_rows=1)]
    runs += [program.spmm(how=how, beside=False, density=0.5) for how in ("words", "values_before")]
    runs += [program.spmm(beside=True), program.spmm()]
    for stall in ("none", "random", "bursty"):
        for limit in ("all", "random", "bursty"):
            for abort in (None, int(program.rng.integers(1, 150)), None):
                runs.append(program.spmm(stall=stall, limit=limit, abort=abort))
    result = run_all(block, runs)
    assert result["checked"] > 20
    assert {"words", "values_before"} <= {way for run in runs for way in run["extra"]}


@pytest.mark.slow
def test_rows_take_the_clocks_of_the_array():
    """Beside the array's schedule only the way into it and out of it."""
    core = CoreSizes(n_lanes=2, simd_lanes=2, max_tokens=32, omem_depth=800, imem_depth=600, vmem_depth=128)
    block = EnginesController.for_core(core)
    program = EnginesProgram(core, SEED)
    common = {"n_rows": 12, "gated": False, "beside": False}
    runs = [
        program.spmm(density=density, n_in=n_in, n_keys=32, **common) for density in (0, 0.2, 1) for n_in in (3, 16)
    ]
    result = run_all(block, runs)
    for run, found in zip(runs, result["runs"], strict=True):
        plan = schedule(run["counts"], run["chunks"], block._array.parameters)
        assert 0 <= found["clocks"] - plan.result[-1] <= 12, run["name"]


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [POINTS[0][1], POINTS[1][1], POINTS[3][1]], ids=str)
def test_verilog_is_clean(parameters):
    report = lint.lint(
        build_package({"engines_controller": EnginesController.for_core(CoreSizes(**parameters))}),
        ["engines_controller"],
    )
    assert {tool: found for tool, found in report.items() if found} == {}
