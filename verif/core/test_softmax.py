"""The softmax path's Verilog with memories beside it: every write, every row's hand-over, under stalls and resets."""

import os

import pytest

from golden.spec.sizes import CoreSizes
from hw.emit.package import build_package
from hw.top.softmax.controller import SoftmaxController
from verif.campaigns import lint
from verif.core.path_bench import run_path
from verif.core.softmax_bench import SoftmaxProgram

pytestmark = pytest.mark.core

SEED = int(os.environ.get("SEED", "1"))
SETUP = "verif.core.softmax_bench"
LATENT = {"latent_width": 2, "latent_height": 2}
POINTS = [
    (False, {"max_tokens": 32, "omem_depth": 100}),
    (True, {"n_banks": 2, "max_tokens": 2, "omem_depth": 2, "n_masks": 2, **LATENT}),
    (True, {"n_banks": 4, "max_tokens": 3, "omem_depth": 7, "n_masks": 1, **LATENT}),
    (True, {"n_banks": 8, "n_lanes": 8, "max_tokens": 21, "omem_depth": 60, "n_masks": 3, **LATENT}),
    (True, {"n_banks": 2, "max_tokens": 40, "omem_depth": 500, "n_masks": 4, **LATENT}),
]
CASES = [
    pytest.param(point, marks=pytest.mark.slow if slow else (), id="-".join(map(str, point.values())))
    for slow, point in POINTS
]


@pytest.mark.parametrize("parameters", CASES)
def test_commands(parameters):
    """Runs of all kinds, in any order; some are cut off by a reset, and the next one must not notice."""
    core = CoreSizes(**parameters)
    block = SoftmaxController.for_core(core)
    program = SoftmaxProgram(core, SEED)
    runs = [program.run(gated=True, n_rows=1), program.run(density=0)]
    for stall in ("none", "random", "bursty"):
        for limit in ("all", "random", "bursty"):
            runs.append(program.run(stall=stall, limit=limit))
            runs.append(program.run(stall=stall, limit=limit, abort=int(program.rng.integers(1, 150))))
            runs.append(program.run(stall=stall, limit=limit))
    result = run_path(block, SETUP, runs, seed=SEED)
    assert not result["messages"], result["messages"]
    assert result["checked"] > 20
    assert {0, 1} < {run["n_active"] for run in runs} or block.max_tokens < 4


@pytest.mark.slow
def test_no_clock_is_lost():
    """A row of c steps takes c clocks; the first ones wait for two rows' last steps, and a mask row for one clock."""
    core = CoreSizes(max_tokens=64, omem_depth=800)
    block = SoftmaxController.for_core(core)
    program = SoftmaxProgram(core, SEED)
    common = {"n_rows": 24, "n_keys": 64, "gated": False}
    runs = [
        program.run(kind=kind, density=density, **common)
        for kind in ("plain", "make_mask", "use_mass")
        for density in (0, 0.03, 0.3, 1)
    ]
    runs.append(program.run(n_rows=1, n_keys=64, gated=False, kind="plain", density=0))
    result = run_path(block, SETUP, runs, seed=SEED)
    assert not result["messages"], result["messages"]
    for run, found in zip(runs, result["runs"], strict=True):
        most = run["n_steps"] + block.latency + 2 * (run["longest"] - 1) + run["name"].startswith("make_mask")
        assert found["clocks"] <= most, run["name"]
        assert found["clocks"] == most or 1 < run["longest"] < 16
    assert found["clocks"] == block.latency + 1


@pytest.mark.slow
def test_a_slow_mask_memory_holds_up_everything():
    """So few mask rows are taken that the unit, its queue and its buffers fill, and the scan stalls."""
    core = CoreSizes(n_banks=8, max_tokens=128, omem_depth=2048, n_masks=3, **LATENT)
    block = SoftmaxController.for_core(core)
    program = SoftmaxProgram(core, SEED)
    common = {"n_rows": 128, "n_keys": 128, "kind": "make_mask", "stall": {"writes": "rare"}}
    runs = [program.run(gated=False, density=density, **common) for density in (0.002, 0.02)]
    result = run_path(block, SETUP, runs, seed=SEED)
    assert not result["messages"], result["messages"]
    assert all(found["stalls"] > 4 * 128 for found in result["runs"])


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [POINTS[0][1], POINTS[1][1], POINTS[3][1]], ids=str)
def test_verilog_is_clean(parameters):
    report = lint.lint(
        build_package({"softmax_controller": SoftmaxController.for_core(CoreSizes(**parameters))}),
        ["softmax_controller"],
    )
    assert {tool: found for tool, found in report.items() if found} == {}
