"""Layouts between the parts of the quantiser."""

from amaranth.hdl import signed
from amaranth.lib import data
from amaranth.utils import bits_for

from golden.spec.formats import FP16
from golden.spec.mixed_precision import MAX_SLICES, SLICE_WIDTH, n_keys

__all__ = ["EXPONENT", "MAGNITUDE_WIDTH", "VALUE", "entry_layout", "summary_layout"]

EXPONENT = signed(7)
"""Of a scale, or of a tile's sums."""

MAGNITUDE_WIDTH = FP16.width - 1
"""Of an FP16 word without its sign."""

VALUE = signed(SLICE_WIDTH * MAX_SLICES)
"""A quantised value."""


def summary_layout(p):
    """The part of a vector that the sorter needs."""
    return data.StructLayout(
        {"level": p.level_width, "n_slices": bits_for(MAX_SLICES), "channel": p.channel_width, "last": 1}
    )


def entry_layout(p):
    """One slice in array order."""
    return data.StructLayout(
        {
            "address": p.address_width,
            "channel": p.channel_width,
            "shift": bits_for(n_keys(p.n_levels) - 1),
            "exponent": EXPONENT,
            "is_top": 1,
            "is_used": 1,
            "last": 1,
        }
    )
