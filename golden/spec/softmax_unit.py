"""Parameters, widths and tables of the softmax unit."""

from dataclasses import dataclass
from functools import cache

from golden.spec.formats import FP16, PositiveFormat
from golden.spec.limits import MAX_BANKS, MAX_SLOTS
from golden.spec.parameters import Parameters, integer, power_of_two
from golden.spec.tables import line, read

FRAME_FRACTION = 14
"""Fraction bits of a score in the frame: fixed point, multiplied by the scale's power of two."""
SCALE = PositiveFormat(15, 4, 12)
"""Encoding of the scale, the multiplier of the scores."""
WHOLE_WIDTH = 5
"""Integer bits of an exponent to base two; the largest one encodes an exponential of 0."""
EXPONENT_FRACTION = 13
"""Fraction bits of an exponent to base two: the difference from the maximum times the scale's significand."""
EXPONENT_DROPPED, EXPONENT_CENTRE = 12, 5
"""Columns omitted by its multiplier, and the compensating constant in units of the lowest remaining column."""
FRACTION = 13
"""Fraction bits of the significands of an exponential and of a row's multiplier."""
SUM_FRACTION = 26
"""Fraction bits of the exponentials that are summed."""
RECIPROCAL_ARGUMENT = 14
"""Fraction bits of the argument of the reciprocal."""
PRODUCT_DROPPED, PRODUCT_CENTRE = 9, 4
"""The same as for the exponent, for the multiplier that gives the probability."""
MAX_ELEMENTS = 1 << 14
"""Largest number of elements of a row for which error bound and sums hold."""

ABSENT = (1 << WHOLE_WIDTH) - 1
EXPONENT_GUARD = FRAME_FRACTION + SCALE.fraction_width - EXPONENT_DROPPED - EXPONENT_FRACTION
PRODUCT_FRACTION = 2 * FRACTION - PRODUCT_DROPPED

FACTOR_WIDTH = FP16.width - 2
"""Significant bits of a row's factor: those of numbers below 2."""


@dataclass(frozen=True, kw_only=True)
class BanksParameters(Parameters):
    n_banks: int = power_of_two(4, low=1, high=MAX_BANKS, doc="banks, one score of each a beat")


@dataclass(frozen=True, kw_only=True)
class RowParameters(BanksParameters):
    n_slots: int = integer(
        16,
        low=1,
        high=MAX_SLOTS,
        doc=f"beats that a row has at most, of n_banks elements; a row has at most {MAX_ELEMENTS} elements",
    )


@dataclass(frozen=True, kw_only=True)
class SoftmaxUnitParameters(RowParameters):
    def check(self):
        if self.n_banks * self.n_slots > MAX_ELEMENTS:
            self.refuse("n_slots", f"at most {MAX_ELEMENTS} divided by n_banks={self.n_banks}")


@cache
def power_table():
    """2**f for f in [0, 1), fitted to f plus half a unit: f is the complement of a rounded-down number."""
    return line(read("softmax_power"))


@cache
def reciprocal_table():
    """2 / (1 + f), fitted half a unit higher in f and in the result, both of which are rounded down."""
    return line(read("softmax_reciprocal"))
