"""Layouts between the parts of the quantiser."""

from dataclasses import dataclass

from amaranth.hdl import signed
from amaranth.lib import data
from amaranth.utils import bits_for, ceil_log2

from golden.spec.formats import FP16
from golden.spec.mixed_precision import MAX_SLICES, SLICE_WIDTH, n_keys
from golden.spec.parameters import Parameters, flag, integer

__all__ = ["EXPONENT", "MAGNITUDE_WIDTH", "TileParameters", "VectorParameters", "entry_layout", "summary_layout"]

EXPONENT = signed(7)
"""Of a scale, or of a tile's sums."""

MAGNITUDE_WIDTH = FP16.width - 1
"""Of an FP16 word without its sign."""

VALUE = signed(SLICE_WIDTH * MAX_SLICES)
"""A quantised value."""


@dataclass(frozen=True, kw_only=True)
class TileParameters(Parameters):
    n_channels: int = integer(128, low=1, high=4096, doc="vectors of a tile at most")
    n_levels: int = integer(3, low=1, high=8, doc="number of different exponents of the vectors of a tile")
    channel_width: int = integer(8, low=1, high=16, doc="bits of a channel's index, which is passed on")

    @property
    def address_width(self):
        """Bits of a slice's address in its tile."""
        return bits_for(MAX_SLICES * self.n_channels - 1)

    @property
    def level_width(self):
        """Bits of a level."""
        return max(1, ceil_log2(self.n_levels))


@dataclass(frozen=True, kw_only=True)
class VectorParameters(TileParameters):
    n_values: int = integer(64, low=1, high=256, doc="values of a vector: tokens of a tile")
    reconstruct: bool = flag(False, doc="whether the quantised values are also output as FP16 words")


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
