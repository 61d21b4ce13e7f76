"""The blocks by their command-line names, and the presets."""

import importlib
import re

UNITS = ("dot_product_unit", "vector_unit", "token_selector", "hash_bank_mapper", "bitonic_sorter")
"""The blocks that ``all`` stands for."""

ASSEMBLIES = ("dot_product_array", "sampled_array", "softmax_unit", "data_aligner")
"""Further blocks of a core; emitted when asked for by name."""

BLOCKS = UNITS + ASSEMBLIES

# tiny is for quick tests; disc has the size of one core of the DiSC paper (64 dot-product units of 64 lanes).
PRESETS = {
    "tiny": {
        "dot_product_unit": {"n_lanes": 4},
        "vector_unit": {"n_engines": 4, "n_lanes": 4, "bank_depth": 64},
        "token_selector": {"width": 8, "height": 8, "channels": 3, "patch": 2, "n_values": 4},
        "hash_bank_mapper": {"n_columns": 64, "n_banks": 4},
        "bitonic_sorter": {"n": 4},
        "dot_product_array": {"n_units": 4, "n_lanes": 4, "bank_depth": 16},
        "sampled_array": {"n_units": 4, "n_lanes": 4, "n_slots": 16, "max_beats": 8},
        "softmax_unit": {"n_banks": 4, "n_slots": 16},
        "data_aligner": {"n": 4},
    },
    "small": {
        "dot_product_unit": {"n_lanes": 8},
        "vector_unit": {"n_engines": 8, "n_lanes": 8, "bank_depth": 128},
        "token_selector": {"width": 16, "height": 16, "channels": 3, "patch": 2, "n_values": 8},
        "hash_bank_mapper": {"n_columns": 256, "n_banks": 8},
        "bitonic_sorter": {"n": 8},
        "dot_product_array": {"n_units": 8, "n_lanes": 8, "bank_depth": 64},
        "sampled_array": {"n_units": 8, "n_lanes": 8, "n_slots": 32, "max_beats": 4},
        "softmax_unit": {"n_banks": 8, "n_slots": 32},
        "data_aligner": {"n": 8},
    },
    "edge": {
        "dot_product_unit": {"n_lanes": 16},
        "vector_unit": {"n_engines": 16, "n_lanes": 16, "bank_depth": 256},
        "token_selector": {"width": 32, "height": 32, "channels": 3, "patch": 2, "n_values": 16},
        "hash_bank_mapper": {"n_columns": 1024, "n_banks": 16},
        "bitonic_sorter": {"n": 16},
        "dot_product_array": {"n_units": 16, "n_lanes": 16, "bank_depth": 128},
        "sampled_array": {"n_units": 16, "n_lanes": 16, "n_slots": 16, "max_beats": 4},
        "softmax_unit": {"n_banks": 16, "n_slots": 16},
        "data_aligner": {"n": 16},
    },
    "disc": {
        "dot_product_unit": {"n_lanes": 64},
        "vector_unit": {"n_engines": 64, "n_lanes": 8, "bank_depth": 512},
        "token_selector": {"width": 128, "height": 128, "channels": 4, "patch": 2, "n_values": 64},
        "hash_bank_mapper": {"n_columns": 4096, "n_banks": 64},
        "bitonic_sorter": {"n": 64},
        "dot_product_array": {"n_units": 64, "n_lanes": 64, "bank_depth": 256},
        "sampled_array": {"n_units": 64, "n_lanes": 64, "n_slots": 64, "max_beats": 2},
        "softmax_unit": {"n_banks": 64, "n_slots": 64},
        "data_aligner": {"n": 64},
    },
}


def unit_class(name):
    """The class of a block; raises ``ValueError`` for a name that is none."""
    if name not in BLOCKS:
        raise ValueError(f"unknown block {name!r}: legal are {', '.join(BLOCKS)}")
    module = importlib.import_module(f"hw.units.{name}")
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
