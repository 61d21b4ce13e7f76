"""Parameters, widths and tables of the layer-norm unit."""

from dataclasses import dataclass
from functools import cache

from golden.spec.formats import PositiveFormat
from golden.spec.limits import MAX_SLOTS
from golden.spec.parameters import Parameters, integer
from golden.spec.tables import line, read

MAX_ELEMENTS = 1 << 12
"""Largest number of elements of a row for which the widths suffice."""
COUNT_FRACTION = 11
"""Fraction bits of the number of elements as a significand in [1, 2), exact."""
FRAME_FRACTION = 32
"""Fraction bits of a deviation in the frame, in which the row's range is from 1/4 to 1/2."""
DEVIATION_WIDTH = 14
"""Bits of a deviation's significand."""
SQUARE_FRACTION = 32
"""Fraction bits of the squares that are summed."""
SUM_WIDTH = 15
"""Significant bits of the sum of squares for its product with the reciprocal of the number of elements."""
RECIPROCAL_FRACTION = 14
"""Fraction bits of that reciprocal, in [1, 2)."""
EPSILON = PositiveFormat(12, 6, 48)
"""How epsilon is encoded."""
SPREAD_FRACTION = 14
"""Fraction bits of the squared significand of the number of elements, for its product with epsilon."""
VARIANCE_WIDTH = 18
"""Bits of both addends of the variance."""
ROOT_ARGUMENT = 13
"""Fraction bits of the argument of the reciprocal root."""
ROOT_FRACTION = 14
"""Fraction bits of that root, in [1, 2)."""
PRODUCT_DROPPED, PRODUCT_CENTRE = 10, 4
"""Columns omitted by the multiplier of deviation and root, and the constant that compensates for them."""

PRODUCT_FRACTION = DEVIATION_WIDTH + ROOT_FRACTION + 1 - PRODUCT_DROPPED
"""Fraction bits of their product, which is below 1."""


@dataclass(frozen=True, kw_only=True)
class LanesParameters(Parameters):
    n_lanes: int = integer(4, low=1, high=128, doc="elements a beat")


@dataclass(frozen=True, kw_only=True)
class LayerNormUnitParameters(LanesParameters):
    n_slots: int = integer(
        16,
        low=1,
        high=MAX_SLOTS,
        doc=f"beats that a row has at most, of n_lanes elements; a row has at most {MAX_ELEMENTS} elements",
    )

    def check(self):
        if self.n_lanes * self.n_slots > MAX_ELEMENTS:
            self.refuse("n_slots", f"at most {MAX_ELEMENTS} divided by n_lanes={self.n_lanes}")


@cache
def reciprocal_table():
    """2 / (1 + f), rounded down, so fitted half a last place higher."""
    return line(read("layer_norm_reciprocal"))


@cache
def root_table():
    """2 / sqrt(m) for m in [1, 2) and [2, 4), fitted half a unit higher in m (rounded down) and in the result."""
    return line(read("layer_norm_root"))
