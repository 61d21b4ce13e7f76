"""Widths and tables of the layer-norm unit, which its golden model and its hardware share, and the error they allow.

``python -m golden.arith.layer_norm_tables`` prints the error budget.
"""

from decimal import Decimal
from fractions import Fraction
from functools import cache

from golden.arith.function_tables import fit, twice_reciprocal, twice_reciprocal_root

__all__ = ["reciprocal_table", "root_table", "error_budget", "absolute_error", "error_bound"]

MAX_ELEMENTS = 1 << 12
"""Elements of a row up to which the widths suffice."""
COUNT_FRACTION = 11
"""Fraction bits of the number of elements as a significand in [1, 2): all there are."""
FRAME_FRACTION = 32
"""Fraction bits of a deviation in the frame, in which the row's range is from 1/4 to 1/2."""
DEVIATION_WIDTH = 14
"""Bits of a deviation's significand."""
SQUARE_FRACTION = 32
"""Fraction bits of the squares that are summed."""
SUM_WIDTH = 15
"""Bits of the sum of squares that are multiplied with the reciprocal of the number of elements."""
RECIPROCAL_FRACTION = 14
"""Fraction bits of that reciprocal, in [1, 2)."""
EPSILON_FRACTION, EPSILON_EXPONENT_WIDTH, EPSILON_BIAS = 12, 6, 48
"""Epsilon's fields: its fraction, its exponent, and what that is for epsilons in [1, 2)."""
SPREAD_FRACTION = 14
"""Fraction bits of the square of the number of elements' significand that are multiplied with epsilon."""
VARIANCE_WIDTH = 18
"""Bits of both addends of the variance."""
ROOT_ARGUMENT = 13
"""Fraction bits of the variance that its reciprocal root depends on."""
ROOT_FRACTION = 14
"""Fraction bits of that root, in [1, 2)."""
PRODUCT_DROPPED, PRODUCT_CENTRE = 10, 4
"""Columns that the multiplier of deviation and root leaves out, and what is added for them."""

PRODUCT_FRACTION = DEVIATION_WIDTH + ROOT_FRACTION + 1 - PRODUCT_DROPPED
"""Fraction bits of their product, which is below 1."""


@cache
def reciprocal_table():
    """2 / (1 + f), rounded down: fitted half a last place up."""
    return fit(
        lambda f: twice_reciprocal(f) + Decimal(2) ** -(RECIPROCAL_FRACTION + 1),
        index_width=6,
        offset_width=COUNT_FRACTION - 6,
        fraction_width=16,
        slope_shift=3,
        slope_width=9,
        falling=True,
    )


@cache
def root_table():
    """2 / sqrt(m) for m in [1, 2) and [2, 4), fitted half a unit above m, which was rounded down, and half one up."""
    return fit(
        lambda m: twice_reciprocal_root(m) + Decimal(2) ** -(ROOT_FRACTION + 1),
        index_width=6,
        offset_width=ROOT_ARGUMENT - 5,
        fraction_width=16,
        slope_shift=6,
        slope_width=9,
        falling=True,
        centre=Fraction(1, 2),
    )


def error_budget(n_elements=MAX_ELEMENTS):
    """``{source: bound}``: relative errors of a normalised element in units of 2**-11, what an ulp is at least.

    What is wrong with the variance counts half. Deviations are rounded down, and so is then the root of their mean
    square: of these errors only the larger one counts.
    """
    unit = 2.0**11
    # The squares of two deviations whose distance is at least 1/4 sum up to 1/32 at least.
    variance = {
        "squares rounded down": n_elements * 2.0**-SQUARE_FRACTION * 32,
        "sum rounded down": 2.0 ** (1 - SUM_WIDTH),
        "reciprocal": float(reciprocal_table().error) + 2.0 ** -(RECIPROCAL_FRACTION + 1),
        "square of the number of elements": 2.0**-SPREAD_FRACTION,
        "addends rounded down": 2.0 ** (3 - VARIANCE_WIDTH),
        "smaller addend aligned": 2.0 ** (3 - VARIANCE_WIDTH),
        "variance rounded down": 2.0 ** -(ROOT_ARGUMENT + 1),
    }
    lost = max(PRODUCT_DROPPED - 1 - PRODUCT_CENTRE, PRODUCT_CENTRE)
    return {
        **{source: bound / 2 * unit for source, bound in variance.items()},
        "deviation rounded down": 2.0 ** (1 - DEVIATION_WIDTH) * unit,
        "root": (float(root_table().error) + 2.0 ** -(ROOT_FRACTION + 1)) * unit,
        "product": lost * 4 * 2.0**-PRODUCT_FRACTION * unit,
    }


def absolute_error(n_elements=MAX_ELEMENTS):
    """By what a normalised element may be wrong besides: element, mean and sign, each less than 1 unit of the frame."""
    return 3 * 2.0**-FRAME_FRACTION * (32 * n_elements) ** 0.5


def error_bound(n_elements=MAX_ELEMENTS):
    """Ulps by which a normalised element may be wrong, apart from :func:`absolute_error`."""
    return sum(error_budget(n_elements).values()) + 0.5


def report():
    lines = [f"{bound:.3f} {source}" for source, bound in error_budget(1024).items()]
    return "\n".join(
        [
            *lines,
            *(
                f"{error_bound(n):.3f} ulp and {absolute_error(n) * 2**24:.2f} * 2^-24 for {n} elements"
                for n in (1024, MAX_ELEMENTS)
            ),
        ]
    )


if __name__ == "__main__":
    print(report())
