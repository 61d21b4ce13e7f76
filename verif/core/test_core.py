"""The core: random programs on its emitted Verilog at small sizes, against the golden model."""

import os

import pytest

from hw.emit.verilog import split_modules
from hw.registry import PRESETS, make_block
from verif.bench.harness import run_bench

pytestmark = pytest.mark.core

SEED = int(os.environ.get("SEED", "1"))
POINTS = {
    "tiny": (PRESETS["tiny"]["core"], 270),
    "small": (PRESETS["small"]["core"], 110),
    "odd-lanes": (
        {
            "n_lanes": 9,
            "simd_lanes": 3,
            "max_tokens": 50,
            "max_head_dim": 20,
            "max_dim": 40,
            "pmem_depth": 64,
            "mask_depth": 20,
            "vector_lanes": 6,
            "special_lanes": 1,
        },
        110,
    ),
    "odd-beats-masks-in-pieces": (
        {
            "n_lanes": 3,
            "simd_lanes": 3,
            "max_tokens": 100,
            "max_head_dim": 7,
            "max_dim": 20,
            "wmem_depth": 300,
            "n_masks": 3,
            "mask_depth": 9,
        },
        110,
    ),
    "few-banks-many-lanes": (
        {
            "n_banks": 2,
            "n_lanes": 8,
            "simd_lanes": 8,
            "max_tokens": 20,
            "max_head_dim": 24,
            "max_dim": 40,
            "run_ahead": 1,
            "n_masks": 3,
            "reference": "previous",
            "latent_width": 7,
            "latent_height": 6,
        },
        110,
    ),
    "many-banks-one-lane": (
        {
            "n_banks": 16,
            "n_lanes": 1,
            "simd_lanes": 1,
            "max_tokens": 40,
            "max_head_dim": 5,
            "max_dim": 21,
            "run_ahead": 0,
            "n_masks": 1,
            "wmem_depth": 512,
            "latent_width": 8,
        },
        110,
    ),
}


@pytest.mark.parametrize("name", POINTS)
def test_random_programs(name):
    parameters, count = POINTS[name]
    result = run_bench(make_block("core", None, parameters), seed=SEED, count=count)
    assert not result.messages, result.messages
    assert result.passed, result.line()
    assert result.stalls and result.idles and result.resets


def test_a_refusal_that_is_missed_fails_the_run():
    """The output that tells of refusals is stuck at zero; all that is stored is right."""
    point = {"n_banks": 2, "n_lanes": 1, "simd_lanes": 1, "max_tokens": 16, "channels": 1, "patch": 1}
    block = make_block("core", None, {**point, "latent_width": 4, "latent_height": 4})

    def edit(files):
        core = split_modules(files["core.v"])["core"]
        assert core.count(".error(error)") == 1
        faulty = core.replace(".error(error)", ".error()").replace("endmodule", "  assign error = 4'h0;\nendmodule")
        return {"core.v": files["core.v"].replace(core, faulty)}

    result = run_bench(block, seed=SEED, count=40, every_pair=False, edit=edit)
    assert result.failed
    assert all("was not refused with error" in message for message in result.messages), result.messages
