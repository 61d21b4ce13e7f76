"""The blocks by their command-line names, and the presets."""

import importlib
import re

UNITS = ("dot_product_unit", "vector_unit", "token_selector", "hash_bank_mapper", "bitonic_sorter")
"""The blocks that ``all`` stands for."""

ASSEMBLIES = ("dot_product_array", "softmax_unit", "layer_norm_unit", "data_aligner")
"""Further blocks of a core; emitted when asked for by name."""

TOPS = ("core",)
"""Whole designs; emitted when asked for by name."""

BLOCKS = UNITS + ASSEMBLIES + TOPS

# tiny is for quick tests; disc has the size of one core of the DiSC paper (64 dot-product units of 64 lanes).
PRESETS = {
    "tiny": {
        "dot_product_unit": {"n_lanes": 4},
        "vector_unit": {"n_engines": 4, "n_lanes": 4, "bank_depth": 64},
        "token_selector": {"width": 8, "height": 8, "channels": 3, "patch": 2, "n_values": 4},
        "hash_bank_mapper": {"n_columns": 64, "n_banks": 4},
        "bitonic_sorter": {"n": 4},
        "dot_product_array": {"n_units": 4, "n_lanes": 4, "n_slots": 16, "max_beats": 8},
        "softmax_unit": {"n_banks": 4, "n_slots": 16},
        "layer_norm_unit": {"n_lanes": 4, "n_slots": 16},
        "data_aligner": {"n": 4},
        "core": {
            "n_banks": 4,
            "n_lanes": 4,
            "simd_lanes": 4,
            "max_tokens": 64,
            "max_head_dim": 16,
            "max_dim": 32,
            "imem_depth": 512,
            "wmem_depth": 256,
            "vmem_depth": 128,
            "omem_depth": 1024,
            "latent_width": 16,
            "latent_height": 16,
            "channels": 3,
            "patch": 2,
        },
    },
    "small": {
        "dot_product_unit": {"n_lanes": 8},
        "vector_unit": {"n_engines": 8, "n_lanes": 8, "bank_depth": 128},
        "token_selector": {"width": 16, "height": 16, "channels": 3, "patch": 2, "n_values": 8},
        "hash_bank_mapper": {"n_columns": 256, "n_banks": 8},
        "bitonic_sorter": {"n": 8},
        "dot_product_array": {"n_units": 8, "n_lanes": 8, "n_slots": 32, "max_beats": 4},
        "softmax_unit": {"n_banks": 8, "n_slots": 32},
        "layer_norm_unit": {"n_lanes": 8, "n_slots": 32},
        "data_aligner": {"n": 8},
        "core": {
            "n_banks": 8,
            "n_lanes": 8,
            "simd_lanes": 8,
            "max_tokens": 128,
            "max_head_dim": 32,
            "max_dim": 64,
            "imem_depth": 2048,
            "wmem_depth": 512,
            "vmem_depth": 256,
            "omem_depth": 2048,
            "latent_width": 32,
            "latent_height": 16,
            "channels": 3,
            "patch": 2,
        },
    },
    "edge": {
        "dot_product_unit": {"n_lanes": 16},
        "vector_unit": {"n_engines": 16, "n_lanes": 16, "bank_depth": 256},
        "token_selector": {"width": 32, "height": 32, "channels": 3, "patch": 2, "n_values": 16},
        "hash_bank_mapper": {"n_columns": 1024, "n_banks": 16},
        "bitonic_sorter": {"n": 16},
        "dot_product_array": {"n_units": 16, "n_lanes": 16, "n_slots": 16, "max_beats": 4},
        "softmax_unit": {"n_banks": 16, "n_slots": 16},
        "layer_norm_unit": {"n_lanes": 16, "n_slots": 72},
        "data_aligner": {"n": 16},
        "core": {
            "n_banks": 16,
            "n_lanes": 16,
            "simd_lanes": 16,
            "max_tokens": 256,
            "max_head_dim": 64,
            "max_dim": 512,
            "imem_depth": 16384,
            "wmem_depth": 1024,
            "vmem_depth": 256,
            "omem_depth": 4096,
            "latent_width": 32,
            "latent_height": 32,
            "channels": 3,
            "patch": 2,
        },
    },
    "disc": {
        "dot_product_unit": {"n_lanes": 64},
        "vector_unit": {"n_engines": 64, "n_lanes": 8, "bank_depth": 512},
        "token_selector": {"width": 128, "height": 128, "channels": 4, "patch": 2, "n_values": 64},
        "hash_bank_mapper": {"n_columns": 4096, "n_banks": 64},
        "bitonic_sorter": {"n": 64},
        "dot_product_array": {"n_units": 64, "n_lanes": 64, "n_slots": 64, "max_beats": 2},
        "softmax_unit": {"n_banks": 64, "n_slots": 64},
        "layer_norm_unit": {"n_lanes": 64, "n_slots": 64},
        "data_aligner": {"n": 64},
        "core": {
            "n_banks": 64,
            "n_lanes": 64,
            "simd_lanes": 8,
            "max_tokens": 4096,
            "max_head_dim": 128,
            "max_dim": 2048,
            "imem_depth": 65536,
            "wmem_depth": 2048,
            "vmem_depth": 2048,
            "omem_depth": 4096,
            "latent_width": 128,
            "latent_height": 128,
            "channels": 4,
            "patch": 2,
        },
    },
}


def unit_class(name):
    """The class of a block; raises ``ValueError`` for a name that is none."""
    if name not in BLOCKS:
        raise ValueError(f"unknown block {name!r}: legal are {', '.join(BLOCKS)}")
    module = importlib.import_module(f"hw.top.{name}" if name in TOPS else f"hw.units.{name}")
    return getattr(module, re.sub(r"(?:^|_)([a-z])", lambda match: match[1].upper(), name))


def preset(name):
    """``{block: parameters}`` of a preset; raises ``ValueError`` for a name that is none."""
    if name not in PRESETS:
        raise ValueError(f"unknown config {name!r}: legal are {', '.join(PRESETS)}")
    return PRESETS[name]


def make_block(name, config=None, assignments=None):
    """A block from a preset (or its defaults) with parameters overridden by ``{name: text or value}``."""
    cls = unit_class(name)
    values = {**(preset(config)[name] if config is not None else {}), **(assignments or {})}
    return cls(**cls.Parameters.parse(values).to_dict())
