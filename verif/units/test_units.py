"""Every unit at several sizes: the standard testbench on the emitted Verilog."""

import os

import pytest

from hw.registry import PRESETS, make_block
from verif.bench import simulator
from verif.bench.harness import run_bench, work_of_beat
from verif.campaigns.x_check import run_watched

SEED = int(os.environ.get("SEED", "1"))

SPMM_ONLY = {"operations": ("write_bank", "spmm"), "scopes": ("lanes",), "totals": ("rounded",)}
CORE_LANES = {
    "operations": ("add", "sub", "mul", "fma", "max", "exp", "gelu", "silu", "write_bank", "spmm"),
    "scopes": ("lanes",),
    "totals": ("rounded",),
    "special_lanes": 1,
    "early_values": True,
    "stallable": False,
}
"""What a core asks for: no FP32 words, totals of lanes only, a function unit of each kind for all lanes."""

# The smallest legal size, sizes that are no power of two, every mode; (slow, parameters).
POINTS = {
    "dot_product_unit": [
        (False, {"n_lanes": 1}),
        (True, {"n_lanes": 5, "format": "bf16"}),
        (True, {"n_lanes": 3, "format": "int8"}),
        (True, {"n_lanes": 12, "align_width": 23}),
        (True, {"n_lanes": 7, "align_width": 40, "format": "bf16"}),
        (True, {"n_lanes": 33, "format": "int8"}),
        (True, {"n_lanes": 64}),
        (True, {"n_lanes": 9, "wide_score": False}),
        (True, {"n_lanes": 72, "format": "bf16", "wide_score": False}),
    ],
    "vector_unit": [
        (False, {"n_engines": 1, "n_lanes": 1, "bank_depth": 2}),
        (True, {"n_engines": 2, "n_lanes": 5, "bank_depth": 17, "format": "bf16"}),
        (False, {"n_engines": 2, "n_lanes": 3, "bank_depth": 4, **SPMM_ONLY}),
        (True, {"n_engines": 4, "n_lanes": 3, "bank_depth": 5, "special_lanes": 1}),
        (True, {"n_engines": 2, "n_lanes": 5, "bank_depth": 5, "special_lanes": 2, "early_values": True}),
        (True, {"n_engines": 2, "n_lanes": 3, "bank_depth": 5, **CORE_LANES}),
        (True, {"n_engines": 4, "n_lanes": 2, "bank_depth": 5, **CORE_LANES, "stallable": True, "format": "bf16"}),
        (True, {"n_engines": 2, "n_lanes": 3, "operations": ("sum", "maximum"), "scopes": ("engine", "all")}),
        (True, {"n_engines": 2, "n_lanes": 2, "operations": ("silu", "max", "greater", "mul", "to_fp32")}),
    ],
    "token_selector": [
        (False, {"width": 1, "height": 1, "channels": 1, "patch": 1, "n_values": 1}),
        (False, {"width": 7, "height": 5, "channels": 3, "patch": 2, "n_values": 4}),
        (True, {"width": 9, "height": 6, "channels": 2, "patch": 4, "n_values": 5, "reference": "last"}),
        (True, {"width": 32, "height": 32, "channels": 1, "patch": 2, "n_values": 64}),
        (
            True,
            {"width": 32, "height": 16, "channels": 1, "patch": 2, "n_values": 64, "reference": "last", "bounds": 4},
        ),
        (False, {"width": 1, "height": 2, "channels": 1, "patch": 1, "n_values": 1, "reference": "last", "bounds": 1}),
        (True, {"width": 9, "height": 7, "channels": 2, "patch": 4, "n_values": 5, "reference": "last", "bounds": 2}),
        (True, {"width": 16, "height": 16, "channels": 4, "patch": 2, "n_values": 8, "reference": "last"}),
    ],
    "hash_bank_mapper": [
        (False, {"n_columns": 1, "n_banks": 1}),
        (False, {"n_columns": 100, "n_banks": 8, "multiplier": "runtime"}),
        (True, {"n_columns": 77, "n_banks": 4, "hash": "modular", "multiplier": None}),
        (True, {"n_columns": 1000, "n_banks": 16, "hash": "range", "multiplier": None, "n_indices": 3}),
        (True, {"n_columns": 500, "n_banks": 8, "hash": "xor_fold", "multiplier": None}),
        (True, {"n_columns": 4096, "n_banks": 32, "multiplier": 2531}),
    ],
    "data_aligner": [(False, {"n": 2, "width": 1}), (True, {"n": 8, "width": 11}), (True, {"n": 16, "width": 64})],
    "bitonic_sorter": [
        (False, {"n": 2, "key_width": 1, "payload_width": 0}),
        (False, {"n": 8, "signed": True, "descending": True, "network": "odd_even"}),
        (True, {"n": 16, "key_width": 5, "payload_width": 3, "stable": True, "layers_per_stage": 3}),
        (True, {"n": 4, "layers_per_stage": 0}),
        (True, {"n": 32, "key_width": 12, "payload_width": 7, "layers_per_stage": 1, "network": "odd_even"}),
    ],
    "dot_product_array": [
        (False, {"n_units": 2, "n_lanes": 1, "n_slots": 1, "max_beats": 1, "run_ahead": 0}),
        (True, {"n_units": 4, "n_lanes": 3, "n_slots": 3, "max_beats": 3, "run_ahead": 1, "weight_depth": 23}),
        (True, {"n_units": 8, "n_lanes": 1, "n_slots": 16, "max_beats": 2, "format": "bf16"}),
        (True, {"n_units": 4, "n_lanes": 9, "n_slots": 3, "max_beats": 2, "wide_score": False}),
        (True, {"n_units": 2, "n_lanes": 5, "n_slots": 4, "max_beats": 3, "run_ahead": 2}),
        (True, {"n_units": 2, "n_lanes": 2, "n_slots": 5, "max_beats": 5, "query_beats": 3, "weight_depth": 4}),
    ],
    "spmm_array": [
        (False, {"n_engines": 2, "n_lanes": 1, "n_slots": 1, "bank_depth": 1, "probability_depth": 2}),
        (True, {"n_engines": 4, "n_lanes": 3, "n_slots": 16, "reduction_clocks": 2, "wide": True}),
        (True, {"n_engines": 8, "n_lanes": 2, "n_slots": 5, "bank_depth": 23, "run_ahead": 0, "reduction_clocks": 4}),
        (True, {"n_engines": 2, "n_lanes": 5, "n_slots": 9, "format": "bf16", "max_passes": 1, "run_ahead": 8}),
    ],
    "softmax_unit": [
        (False, {"n_banks": 1, "n_slots": 1}),
        (True, {"n_banks": 1, "n_slots": 16}),
        (True, {"n_banks": 2, "n_slots": 5}),
        (True, {"n_banks": 16, "n_slots": 2}),
    ],
    "quantizer_unit": [
        (False, {"n_values": 1, "n_channels": 1, "n_levels": 1, "channel_width": 1}),
        (True, {"n_values": 5, "n_channels": 7, "n_levels": 4, "reconstruct": True}),
        (True, {"n_values": 16, "n_channels": 40, "channel_width": 11}),
    ],
    "mixed_precision_array": [
        (False, {"n_rows": 1, "n_columns": 1, "n_channels": 1, "n_levels": 1, "weight_depth": 1}),
        (True, {"n_rows": 5, "n_columns": 6, "n_channels": 40, "n_levels": 4, "weight_depth": 50, "n_output_lanes": 3}),
        (True, {"n_rows": 3, "n_columns": 2, "n_channels": 9, "weight_depth": 9, "n_output_lanes": 1}),
    ],
    "mixed_precision_core": [
        (
            True,
            {
                "n_rows": 1,
                "n_columns": 1,
                "n_channels": 1,
                "n_levels": 1,
                "n_output_lanes": 1,
                "n_regions": 1,
                "n_buffers": 1,
                "n_tiles": 1,
                "activation_depth": 1,
                "reference_depth": 1,
            },
        ),
        (
            True,
            {
                "n_rows": 5,
                "n_columns": 6,
                "n_channels": 7,
                "n_levels": 4,
                "n_output_lanes": 2,
                "n_regions": 4,
                "n_buffers": 3,
                "n_tiles": 3,
                "activation_depth": 14,
                "reference_depth": 9,
            },
        ),
    ],
    "layer_norm_unit": [
        (False, {"n_lanes": 1, "n_slots": 1}),
        (True, {"n_lanes": 3, "n_slots": 5}),
        (True, {"n_lanes": 1, "n_slots": 20}),
    ],
}


def _name(parameters):
    return "-".join(f"{key}={value}" for key, value in parameters.items())


CASES = [
    pytest.param(unit, parameters, not slow, marks=pytest.mark.slow if slow else (), id=f"{unit}-{_name(parameters)}")
    for unit, points in POINTS.items()
    for slow, parameters in points
]


def beats(block, most):
    """Fewer beats of a large block, each of which has more values."""
    return max(135, min(most, 40_000_000 // work_of_beat(block)))


@pytest.mark.parametrize("unit, parameters, every_pair", CASES)
def test_point(unit, parameters, every_pair):
    block = make_block(unit, None, parameters)
    result = run_bench(block, seed=SEED, count=beats(block, 450), every_pair=every_pair)
    check(result, stalls=parameters.get("stallable", True))


# These take a minute in Icarus, and the core has them.
LARGEST = [("vector_unit", "small"), ("dot_product_array", "small")]

PRESET_CASES = [
    pytest.param(unit, config, id=f"{unit}-{config}", marks=[pytest.mark.core] if (unit, config) in LARGEST else [])
    for unit in POINTS
    for config in PRESETS
    if config in ("tiny", "small")
]


@pytest.mark.slow
@pytest.mark.parametrize("unit, config", PRESET_CASES)
def test_preset(unit, config):
    # Icarus starts with X in every register and memory: a run is watched for where it gets.
    run = run_watched if config == "tiny" and simulator.choose() == "icarus" else run_bench
    block = make_block(unit, config)
    count = beats(block, 270 if config == "tiny" else 135)
    check(run(block, seed=SEED + 1, count=count, every_pair=count == 270))


def check(result, stalls=True):
    print(f"{result.line()}, seed {result.seed}, {result.sim}")
    assert not result.messages, result.messages
    assert result.passed, result.line()
    assert bool(result.stalls) == stalls, "no output was ever stalled" if stalls else "an output was stalled"
    assert result.idles, "no input ever idled"
