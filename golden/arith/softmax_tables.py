"""Widths and tables of the softmax unit, which its golden model and its hardware share, and the error that they allow.

``python -m golden.arith.softmax_tables`` prints the error budget.
"""

from decimal import Decimal
from fractions import Fraction
from functools import cache

from golden.arith.function_tables import fit, power_of_two, twice_reciprocal

__all__ = ["power_table", "reciprocal_table", "error_budget", "error_bound"]

FRAME_FRACTION = 14
"""Fraction bits of a score in the frame: times the scale's power of two, in fixed point."""
SCALE_FRACTION = 15
"""Fraction bits of the scale's significand."""
SCALE_EXPONENT_WIDTH, SCALE_BIAS = 4, 12
"""The scale's exponent field, and its value for scales in [1, 2)."""
WHOLE_WIDTH = 5
"""Integer bits of an exponent to base two; the largest one stands for everything that is too small to count."""
EXPONENT_FRACTION = 13
"""Fraction bits of an exponent to base two: the difference from the maximum times the scale's significand."""
EXPONENT_DROPPED, EXPONENT_CENTRE = 12, 5
"""Columns that its multiplier leaves out, and what is added for them in units of the last column that is kept."""
FRACTION = 13
"""Fraction bits of the significands of an exponential and of a row's multiplier."""
SUM_FRACTION = 26
"""Fraction bits of the exponentials that are summed."""
RECIPROCAL_ARGUMENT = 14
"""Fraction bits of the sum that its reciprocal depends on."""
PRODUCT_DROPPED, PRODUCT_CENTRE = 9, 4
"""The same as for the exponent, for the multiplier that gives the probability."""
MAX_ELEMENTS = 1 << 14
"""Elements of a row up to which the error is within its bound."""

ABSENT = (1 << WHOLE_WIDTH) - 1
EXPONENT_GUARD = FRAME_FRACTION + SCALE_FRACTION - EXPONENT_DROPPED - EXPONENT_FRACTION
PRODUCT_FRACTION = 2 * FRACTION - PRODUCT_DROPPED


@cache
def power_table():
    """2**f for f in [0, 1), fitted half a unit above f: that is the complement of a number that was rounded down."""
    return fit(
        power_of_two,
        index_width=5,
        offset_width=EXPONENT_FRACTION - 5,
        fraction_width=15,
        slope_shift=6,
        slope_width=9,
        centre=Fraction(1, 2),
    )


@cache
def reciprocal_table():
    """2 / (1 + f), fitted half a unit above f, which was rounded down, and half a unit up, as it will be itself."""
    return fit(
        lambda f: twice_reciprocal(f) + Decimal(2) ** -(FRACTION + 1),
        index_width=6,
        offset_width=RECIPROCAL_ARGUMENT - 6,
        fraction_width=16,
        slope_shift=6,
        slope_width=9,
        falling=True,
        centre=Fraction(1, 2),
    )


def error_budget(n_elements):
    """``{source: bound}``: relative errors of a normal result in units of 2**-11, what an ulp is at least.

    What is wrong with an exponential counts twice, as all the others may be wrong the other way.
    """
    ln2, unit = 0.6931472, 2.0**11
    lost = EXPONENT_DROPPED - 1  # at most: one unit a row of the multiplier that loses columns, less 1 in all
    exponent = 2.0 ** -(EXPONENT_FRACTION + EXPONENT_GUARD) * max(lost - EXPONENT_CENTRE, EXPONENT_CENTRE)
    exponential = {
        "score in the frame": 2 * 2.0**-FRAME_FRACTION * ln2 * unit,
        "exponent": (exponent + 2.0 ** -(EXPONENT_FRACTION + 1)) * ln2 * unit,
        "power of two": float(power_table().error) * unit,
        "exponential rounded down": 2.0 ** -(FRACTION + 1) * unit,
    }
    product = max(PRODUCT_DROPPED - 1 - PRODUCT_CENTRE, PRODUCT_CENTRE)
    return {
        **{f"{source}, twice": 2 * bound for source, bound in exponential.items()},
        "sum": n_elements * 2.0**-SUM_FRACTION * unit,
        "sum rounded down": 2.0 ** -(RECIPROCAL_ARGUMENT + 1) * unit,
        "reciprocal": float(reciprocal_table().error) * unit,
        "reciprocal rounded down": 2.0 ** -(FRACTION + 1) * unit,
        "factor": 2.0**-FRACTION * unit,
        "product": product * 2.0**-PRODUCT_FRACTION * unit,
        "rounding": 0.5,
    }


def error_bound(n_elements=MAX_ELEMENTS):
    """Ulps by which a result for a row of so many elements may differ from the exact one; a factor counted in."""
    return sum(error_budget(n_elements).values())


def report():
    lines = [f"{bound:.3f} {source}" for source, bound in error_budget(4096).items()]
    return "\n".join([*lines, f"{error_bound(4096):.3f} ulp for 4096 elements, {error_bound():.3f} for {MAX_ELEMENTS}"])


if __name__ == "__main__":
    print(report())
