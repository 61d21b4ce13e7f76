"""All properties, in the order in which they are listed."""

import importlib

MODULES = (
    "lib.stream_properties",
    "lib.memory_properties",
    "units.bitonic_sorter.properties",
    "units.hash_bank_mapper.properties",
    "units.token_selector.properties",
    "units.data_aligner.properties",
    "arith.block_properties",
    "arith.product_properties",
    "arith.function_properties",
    "arith.lane_properties",
    "units.dot_product_unit.properties",
    "units.vector_unit.properties",
    "units.softmax_unit.properties",
    "units.layer_norm_unit.properties",
    "units.dot_product_array.properties",
    "units.quantizer_unit.properties",
    "units.mixed_precision_array.properties",
    "units.mixed_precision_core.properties",
    "core.properties",
    "system.properties",
    "core.pair_properties",
)


def properties(units=(), quick=False):
    """The properties of some units (of all, if none is named); raises ``ValueError`` for a unit that has none."""
    found = [prop for module in MODULES for prop in importlib.import_module(f"verif.{module}").PROPERTIES]
    known = dict.fromkeys(prop.unit for prop in found)
    for unit in units:
        if unit not in known:
            raise ValueError(f"no properties of unit {unit!r}: there are some of {', '.join(known)}")
    return [prop for prop in found if (not units or prop.unit in units) and (prop.quick or not quick)]
