"""The blocks by their command-line names."""

import importlib
import re
from typing import NamedTuple

from hw.presets import PRESETS

__all__ = ["BLOCKS", "IN_ALL", "PRESETS", "UNITS", "make_block", "preset", "unit_class"]


class Entry(NamedTuple):
    """A block that can be asked for by name."""

    name: str
    in_all: bool = False
    """Whether ``all`` has it; the others are parts of the core, or the core, and emitted when named."""
    package: str = "hw.units"


_ENTRIES = (
    Entry("dot_product_unit", in_all=True),
    Entry("vector_unit", in_all=True),
    Entry("token_selector", in_all=True),
    Entry("hash_bank_mapper", in_all=True),
    Entry("bitonic_sorter", in_all=True),
    Entry("dot_product_array"),
    Entry("spmm_array"),
    Entry("softmax_unit"),
    Entry("layer_norm_unit"),
    Entry("data_aligner"),
    Entry("quantizer_unit"),
    Entry("mixed_precision_array"),
    Entry("mixed_precision_core"),
    Entry("core", package="hw.top"),
    Entry("accelerator", package="hw.top"),
)

BLOCKS = tuple(entry.name for entry in _ENTRIES)
IN_ALL = tuple(entry.name for entry in _ENTRIES if entry.in_all)
UNITS = tuple(entry.name for entry in _ENTRIES if entry.package == "hw.units")
"""The blocks that are no whole design."""


def unit_class(name):
    """The class of a block; raises ``ValueError`` for a name that is none."""
    if name not in BLOCKS:
        raise ValueError(f"unknown block {name!r}: legal are {', '.join(BLOCKS)}")
    module = importlib.import_module(f"{_ENTRIES[BLOCKS.index(name)].package}.{name}")
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
