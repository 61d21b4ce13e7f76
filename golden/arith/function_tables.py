"""Piecewise linear tables of the function units, fitted from the definitions of the functions in exact integers.

``python -m golden.arith.function_tables`` prints every fit and its error. Software and hardware read the same tables.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np

from golden.spec.formats import BF16, FP16

__all__ = [
    "LinearTable",
    "ExponentialTables",
    "exponential_tables",
    "reciprocal_table",
    "reciprocal_root_table",
    "fit",
    "power_of_two",
    "signed_digits",
    "twice_reciprocal",
    "twice_reciprocal_root",
]

_PRECISION = 40  # decimal digits of the function values that are fitted
_SCALE = 64  # binary digits of the same values, as integers


@dataclass(frozen=True)
class LinearTable:
    """A function of an argument in [0, 1) by one straight line for each value of the argument's first bits.

    ``value = (intercept[index] * 2**slope_shift + slope[index] * offset) / 2**(fraction_width + slope_shift)``,
    ``index`` and ``offset`` the upper and lower bits of the argument. Slopes are positive: where the function falls,
    the offset is inverted, that is, counted down from the end of the segment.
    """

    index_width: int
    offset_width: int
    fraction_width: int
    """Fraction bits of the intercepts."""
    slope_shift: int
    """Fraction bits that a slope has beyond an intercept's."""
    falling: bool
    intercepts: tuple[int, ...]
    slopes: tuple[int, ...]
    error: Fraction
    """The largest distance between line and function, over all arguments."""

    @property
    def argument_width(self):
        return self.index_width + self.offset_width

    @property
    def slope_width(self):
        return max(self.slopes).bit_length()

    @property
    def value_fraction(self):
        """Fraction bits of the values."""
        return self.fraction_width + self.slope_shift

    def __call__(self, argument):
        """The exact values of the lines, integers with ``value_fraction`` fraction bits."""
        argument = np.asarray(argument, dtype=np.int64)
        last = (1 << self.offset_width) - 1
        index, offset = argument >> self.offset_width, argument & last
        offset = last - offset if self.falling else offset
        intercept = np.array(self.intercepts, dtype=np.int64)[index]
        return (intercept << self.slope_shift) + np.array(self.slopes, dtype=np.int64)[index] * offset


def fit(
    function: Callable[[Fraction], Decimal],
    *,
    index_width,
    offset_width,
    fraction_width,
    slope_shift,
    slope_width,
    falling=False,
    centre=Fraction(0),
):
    """The :class:`LinearTable` whose largest error in each segment is as small as the widths allow.

    ``function`` is sampled at ``(argument + centre) / 2**argument_width`` for every argument. A segment's slope is
    one of the four multiples nearest to its chord (the largest of `slope_width` bits, where these do not fit), its
    intercept is half-way between the extremes of what is left.
    """
    offsets = range(1 << offset_width)
    intercepts, slopes, largest = [], [], 0
    unit = _SCALE - fraction_width
    for index in range(1 << index_width):
        arguments = [(index << offset_width) + offset for offset in offsets]
        if falling:
            arguments.reverse()
        values = [
            _fixed(function((argument + centre) / Fraction(1 << (index_width + offset_width))))
            for argument in arguments
        ]
        chord = (values[-1] - values[0]) // (offsets[-1] << (unit - slope_shift))
        candidates = []
        for slope in {min(slope, (1 << slope_width) - 1) for slope in range(chord - 1, chord + 3)}:
            rest = [value - (slope * offset << (unit - slope_shift)) for offset, value in enumerate(values)]
            intercept = (max(rest) + min(rest) + (1 << unit)) >> (unit + 1)
            error = max(max(rest) - (intercept << unit), (intercept << unit) - min(rest))
            candidates.append((error, slope, intercept))
        error, slope, intercept = min(candidates)
        largest = max(largest, error)
        slopes.append(slope)
        intercepts.append(intercept)
    return LinearTable(
        index_width,
        offset_width,
        fraction_width,
        slope_shift,
        falling,
        tuple(intercepts),
        tuple(slopes),
        Fraction(largest, 1 << _SCALE),
    )


def _fixed(value):
    """A value as an integer with `_SCALE` fraction bits."""
    with localcontext(Context(prec=_PRECISION)):
        return int((value * (1 << _SCALE)).to_integral_value())


def _decimal(fraction):
    with localcontext(Context(prec=_PRECISION)):
        return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def power_of_two(exponent):
    """2**exponent."""
    with localcontext(Context(prec=_PRECISION)):
        return (_decimal(exponent) * Decimal(2).ln()).exp()


def twice_reciprocal(fraction):
    """2 / (1 + fraction)."""
    return _decimal(2 / (1 + fraction))


def twice_reciprocal_root(octave_and_fraction):
    """2 / sqrt(m) for m = 1 + f in the first half of the argument, m = 2 (1 + f) in the second."""
    octave, fraction = divmod(2 * octave_and_fraction, 1)
    with localcontext(Context(prec=_PRECISION)):
        return 2 / _decimal((1 + fraction) * (1 + octave)).sqrt()


def signed_digits(value):
    """``[(sign, weight), ...]``: the fewest signed powers of two that sum to a positive integer, largest first."""
    digits, weight = [], 0
    while value:
        if value & 1:
            # 3 is 2 + 1 here, not 4 - 1: as few digits, and no carry into a further place.
            sign = 1 if value == 3 else 2 - (value & 3)
            digits.append((sign, weight))
            value -= sign
        value >>= 1
        weight += 1
    return digits[::-1]


@dataclass(frozen=True)
class ExponentialTables:
    """What exp needs besides its format: ``e**x = 2**(x * log2(e))``, the integer part gives the exponent."""

    power: LinearTable
    """2**f for f in [0, 1), fitted half a unit above f: the product is truncated, and so is its negative."""
    top_exponent: int
    """Arguments of 2**(top_exponent + 1) and more give infinity or zero."""
    log2e_digits: tuple[tuple[int, int], ...]
    """log2(e) * 2**product_fraction as signed powers of two."""
    product_fraction: int = 14
    """Fraction bits of significand * log2(e) that are kept."""
    guard: int = 3
    """Fraction bits that the addends of that product have beyond those that are kept."""
    product_bias: int = 2
    """What is added at the last of the guard bits, for what the addends have lost."""

    def addends(self, fraction_width):
        """``[(sign, shift), ...]``: the product is the sum of the significands shifted left (right if negative)."""
        return [(sign, weight + self.guard - fraction_width) for sign, weight in self.log2e_digits]


@cache
def exponential_tables(fmt):
    """The tables of exp for a format."""
    offset_width = (fmt.fraction_width + 1) // 2
    power = fit(
        power_of_two,
        index_width=fmt.fraction_width + 1 - offset_width,
        offset_width=offset_width,
        fraction_width=fmt.fraction_width + 2,
        slope_shift=offset_width - 1,
        slope_width=offset_width + 1,
        centre=Fraction(1, 2),
    )
    with localcontext(Context(prec=_PRECISION)):
        # The smallest result that is not zero is half the smallest subnormal.
        largest_argument = (fmt.bias + fmt.fraction_width) * Decimal(2).ln()
        log2e = int((ExponentialTables.product_fraction * Decimal(2).ln()).exp() / Decimal(2).ln() + Decimal("0.5"))
    return ExponentialTables(power, int(largest_argument).bit_length() - 1, tuple(signed_digits(log2e)))


@cache
def reciprocal_table(fmt):
    """2 / (1 + f), f the fraction of the significand."""
    offset_width = (fmt.fraction_width - 1) // 2
    return fit(
        twice_reciprocal,
        index_width=fmt.fraction_width - offset_width,
        offset_width=offset_width,
        fraction_width=fmt.fraction_width + 1,
        slope_shift=offset_width - 1,
        slope_width=offset_width + 1,
        falling=True,
    )


@cache
def reciprocal_root_table(fmt):
    """2 / sqrt(m), m the significand in [1, 2) or, where the exponent is odd, in [2, 4)."""
    index_width = fmt.fraction_width // 2
    return fit(
        twice_reciprocal_root,
        index_width=1 + index_width,
        offset_width=fmt.fraction_width - index_width,
        fraction_width=fmt.fraction_width + 3,
        slope_shift=2,
        slope_width=5,
        falling=True,
    )


def report():
    """One line a table: its size and its error in units of the last place of a result in [1, 2)."""
    lines = []
    for fmt in (FP16, BF16):
        for name, table in (
            ("exp: 2^f", exponential_tables(fmt).power),
            ("reciprocal: 2/(1+f)", reciprocal_table(fmt)),
            ("rsqrt: 2/sqrt(m)", reciprocal_root_table(fmt)),
        ):
            lines.append(
                f"{fmt.name} {name}: {len(table.slopes)} segments of {1 << table.offset_width}, intercepts "
                f"of {table.fraction_width} fraction bits, slopes of {table.slope_width} bits, "
                f"error {float(table.error * (1 << fmt.fraction_width)):.3f} ulp"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    print(report())
