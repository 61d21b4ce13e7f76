"""Layouts between the parts of the mixed-precision array."""

from dataclasses import dataclass

from amaranth.hdl import signed
from amaranth.lib import data
from amaranth.utils import bits_for, ceil_log2

from golden.spec.mixed_precision import GROUP, SLICE_WIDTH, n_keys, sum_width
from golden.spec.parameters import Parameters, integer

__all__ = ["EXPONENT", "MULTIPLES", "WEIGHT", "ArrayParameters", "group_layout", "weight_layout"]

WEIGHT = signed(8)
EXPONENT = signed(7)
"""Of a tile's sums: from finest_exponent - n_levels - 7 to finest_exponent."""

MULTIPLES = data.ArrayLayout(data.StructLayout({"once": signed(8), "twice": signed(10), "triple": signed(10)}), GROUP)
"""Multiples selected by the digits 1, 2, 3 of each lane: 1, 2, 3 times the weight, or 1, -2, -1 times in top slices."""


@dataclass(frozen=True, kw_only=True)
class ArrayParameters(Parameters):
    n_rows: int = integer(64, low=1, high=256, doc="values of a slice: tokens of a tile, rows of processing elements")
    n_columns: int = integer(64, low=1, high=256, doc="outputs: columns of processing elements")
    n_channels: int = integer(128, low=1, high=4096, doc="vectors of a tile at most, so that no sum overflows")
    n_levels: int = integer(3, low=1, high=8, doc="number of different exponents of the vectors of a tile")
    weight_depth: int = integer(256, low=1, high=1 << 16, doc="weight rows in the bank, n_columns weights each")

    @property
    def sum_width(self):
        """Bits of a sum, which no tile can overflow."""
        return sum_width(self.n_channels, self.n_levels)

    @property
    def address_width(self):
        """Bits of a weight row's address."""
        return max(1, ceil_log2(self.weight_depth))

    def check(self):
        if self.sum_width > 32:
            self.refuse("n_channels", f"less, or n_levels: sums of {self.sum_width} bits are more than 32")


def group_layout(p):
    """One to four slices of one key, each with the address of its channel's weights; lane 0 in the lowest bits."""
    lane = data.StructLayout(
        {"digits": data.ArrayLayout(SLICE_WIDTH, p.n_rows), "address": p.address_width, "is_top": 1, "is_used": 1}
    )
    return data.StructLayout(
        {
            "lanes": data.ArrayLayout(lane, GROUP),
            "shift": bits_for(n_keys(p.n_levels) - 1),
            "exponent": EXPONENT,
            "last": 1,
        }
    )


def weight_layout(p):
    """A row of weights and its address in the bank."""
    return data.StructLayout({"address": p.address_width, "weights": data.ArrayLayout(WEIGHT, p.n_columns)})
