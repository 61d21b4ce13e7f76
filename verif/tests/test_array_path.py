"""The array path's Verilog with memories beside it: every write, every row's hand-over, under stalls and resets."""

import os

import pytest

from hw.top.array_path import ArrayPath
from verif.benches.array_path import ArrayProgram
from verif.path_play import play_path

SEED = int(os.environ.get("SEED", "1"))
SETUP = "verif.benches.array_path"
LATENT = {"latent_width": 2, "latent_height": 2}
SMALLEST = {"n_banks": 2, "n_lanes": 1, "simd_lanes": 1, "max_tokens": 2, "max_head_dim": 1, "max_dim": 1,
            "run_ahead": 0, "imem_depth": 4, "wmem_depth": 4, "vmem_depth": 2, "omem_depth": 2, "n_masks": 1,
            "latent_width": 2, "latent_height": 1, "patch": 1}
POINTS = [
    (False, {"max_tokens": 30}),
    (False, SMALLEST),
    (True, {"n_banks": 2, "max_tokens": 21, "max_head_dim": 7, "max_dim": 19, "run_ahead": 3, **LATENT}),
    (True, {"n_banks": 8, "n_lanes": 1, "simd_lanes": 2, "max_tokens": 20, "max_head_dim": 5, "max_dim": 6, **LATENT}),
    (True, {"n_lanes": 2, "simd_lanes": 8, "max_tokens": 7, "max_head_dim": 9, "max_dim": 13, "run_ahead": 0,
            "n_masks": 3, **LATENT}),
    (True, {"n_banks": 16, "max_tokens": 40, "max_head_dim": 10, "max_dim": 33, "omem_depth": 101, "imem_depth": 150}),
    (True, {"n_banks": 8, "n_lanes": 8, "simd_lanes": 4, "max_tokens": 64, "max_head_dim": 32, "max_dim": 40}),
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
    block = ArrayPath(**parameters)
    program = ArrayProgram(block.parameters, SEED)
    runs = [program.matmul(gated=True, n_rows=1), program.sddmm(density=0), program.project(values=True),
            program.project(values=False)]
    runs.append(program.sddmm(reads_keys=True, density=1, gated=False, mask=0))
    for stall in ("none", "random", "bursty"):
        for limit in ("all", "random", "bursty"):
            for _ in range(2):
                runs += program.any(stall=stall, limit=limit)
            runs += program.any(stall=stall, limit=limit, abort=int(program.rng.integers(1, 150)))
            runs += program.any(stall=stall, limit=limit)
    result = play_path(block, SETUP, runs, seed=SEED)
    assert not result["messages"], result["messages"]
    assert result["checked"] > 20
    for run, found in zip(runs, result["runs"], strict=True):
        if found is not None:
            check_counters(block, run, found)
