"""All properties, in the order in which they are listed."""

import importlib

MODULES = (
    "stream_helpers", "memory", "bitonic_sorter", "hash_bank_mapper", "token_selector", "data_aligner",
    "building_blocks", "functions", "arithmetic", "dot_product", "vector_unit", "softmax_unit",
    "layer_norm_unit", "sampled_array", "core",
)


def properties(units=(), quick=False):
    """The properties of some units (of all, if none is named); raises ``ValueError`` for a unit that has none."""
    found = [prop for module in MODULES
             for prop in importlib.import_module(f"verif.formal.units.{module}").PROPERTIES]
    known = dict.fromkeys(prop.unit for prop in found)
    for unit in units:
        if unit not in known:
            raise ValueError(f"no properties of unit {unit!r}: there are some of {', '.join(known)}")
    return [prop for prop in found if (not units or prop.unit in units) and (prop.quick or not quick)]
