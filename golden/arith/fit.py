"""Piecewise linear fits of functions, from their definitions in exact integers."""

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from golden.spec.tables import LinearTable

__all__ = ["PRECISION", "fit", "power_of_two", "twice_reciprocal", "twice_reciprocal_root"]

PRECISION = 40
"""Decimal digits of the function values that are fitted."""
_SCALE = 64
"""Binary digits of the same values, as integers."""


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
    intercept is the midpoint of the extremes of the remainder.
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
    with localcontext(Context(prec=PRECISION)):
        return int((value * (1 << _SCALE)).to_integral_value())


def _decimal(fraction):
    with localcontext(Context(prec=PRECISION)):
        return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def power_of_two(exponent):
    """2**exponent."""
    with localcontext(Context(prec=PRECISION)):
        return (_decimal(exponent) * Decimal(2).ln()).exp()


def twice_reciprocal(fraction):
    """2 / (1 + fraction)."""
    return _decimal(2 / (1 + fraction))


def twice_reciprocal_root(octave_and_fraction):
    """2 / sqrt(m) for m = 1 + f in the first half of the argument, m = 2 (1 + f) in the second."""
    octave, fraction = divmod(2 * octave_and_fraction, 1)
    with localcontext(Context(prec=PRECISION)):
        return 2 / _decimal((1 + fraction) * (1 + octave)).sqrt()
