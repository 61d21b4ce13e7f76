"""The command checker's emitted Verilog refuses what the golden checks refuse, for the same first reason."""

import os
from dataclasses import asdict

import pytest

from golden.spec.sizes import CoreSizes
from hw.top.controller.command_checker import CommandChecker
from verif.bench.harness import run_job

pytestmark = pytest.mark.core

SEED = int(os.environ.get("SEED", "1"))
POINTS = [
    {},
    {"n_banks": 8, "n_lanes": 2, "simd_lanes": 2, "max_tokens": 50, "max_head_dim": 11, "max_dim": 27, "n_masks": 3},
    {
        "n_banks": 2,
        "n_lanes": 4,
        "simd_lanes": 4,
        "max_tokens": 33,
        "max_dim": 100,
        "imem_depth": 4000,
        "n_masks": 1,
        "wmem_depth": 700,
        "vmem_depth": 300,
        "latent_width": 4,
    },
]


@pytest.mark.parametrize("point", POINTS, ids=["default", "small-lanes", "few-banks"])
def test_reasons(point):
    sizes = CoreSizes(**point)
    block = CommandChecker.for_core(sizes)
    job = {"parameters": asdict(sizes), "seed": SEED, "commands": 3000, "latency": block.latency}
    result = run_job(block, "verif.core.command_check:check_commands", job)
    assert not result["failed"], "\n".join(result["failed"][:3])
    assert result["checked"] == 3000

    assert {code for code, count in result["codes"].items() if count} == set(result["codes"]), result["codes"]
