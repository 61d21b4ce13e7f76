"""Layouts between the parts of the mixed-precision array."""

from amaranth.hdl import signed
from amaranth.lib import data
from amaranth.utils import bits_for

from golden.spec.mixed_precision import GROUP, SLICE_WIDTH, n_keys

__all__ = ["EXPONENT", "MULTIPLES", "WEIGHT", "group_layout", "weight_layout"]

WEIGHT = signed(8)
EXPONENT = signed(7)
"""Of a tile's sums: from finest_exponent - n_levels - 7 to finest_exponent."""

MULTIPLES = data.ArrayLayout(data.StructLayout({"once": signed(8), "twice": signed(10), "triple": signed(10)}), GROUP)
"""Multiples selected by the digits 1, 2, 3 of each lane: 1, 2, 3 times the weight, or 1, -2, -1 times in top slices."""


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
