"""The accelerator: random programs through ring and memory on its emitted Verilog, against the golden model."""

import os

import pytest

from hw.registry import PRESETS, make_block
from verif.bench.harness import run_bench

pytestmark = pytest.mark.core

SEED = int(os.environ.get("SEED", "1"))
SMALL = {"n_banks": 2, "max_tokens": 16, "channels": 1, "patch": 1, "latent_width": 4, "latent_height": 4}
POINTS = {
    "tiny": (PRESETS["tiny"]["accelerator"], 60),
    "a bus wider than the core, odd lanes": (
        SMALL
        | {"n_lanes": 3, "simd_lanes": 1, "data_width": 1024, "address_width": 64, "fetch_depth": 2, "n_reads": 2},
        40,
    ),
    "a narrow bus, bursts of one beat": (
        SMALL | {"n_lanes": 1, "simd_lanes": 1, "data_width": 32, "burst_beats": 1, "n_writes": 1, "in_flight": 2},
        40,
    ),
}


@pytest.mark.parametrize("name", POINTS)
def test_random_programs(name):
    parameters, count = POINTS[name]
    result = run_bench(make_block("accelerator", None, parameters), seed=SEED, count=count, every_pair=False)
    assert not result.messages, result.messages
    assert result.passed, result.line()
    assert result.resets
