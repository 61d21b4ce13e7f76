"""Fit of the tables of the softmax unit, and the error budget of tables and widths.

``python -m golden.arith.softmax_tables`` prints the error budget.
"""

from decimal import Decimal
from fractions import Fraction

from golden.arith.fit import fit, power_of_two, twice_reciprocal
from golden.spec import softmax_unit as spec

__all__ = ["fit_power", "fit_reciprocal", "error_budget", "error_bound"]


def fit_power():
    """The fit of :func:`golden.spec.softmax_unit.power_table`."""
    return fit(
        power_of_two,
        index_width=5,
        offset_width=spec.EXPONENT_FRACTION - 5,
        fraction_width=15,
        slope_shift=6,
        slope_width=9,
        centre=Fraction(1, 2),
    )


def fit_reciprocal():
    """The fit of :func:`golden.spec.softmax_unit.reciprocal_table`."""
    return fit(
        lambda f: twice_reciprocal(f) + Decimal(2) ** -(spec.FRACTION + 1),
        index_width=6,
        offset_width=spec.RECIPROCAL_ARGUMENT - 6,
        fraction_width=16,
        slope_shift=6,
        slope_width=9,
        falling=True,
        centre=Fraction(1, 2),
    )


def error_budget(n_elements):
    """``{source: bound}``: relative errors of a normal result in units of 2**-11, the smallest relative ulp.

    Errors of an exponential count twice, since those of all others may have the opposite sign.
    """
    ln2, unit = 0.6931472, 2.0**11
    lost = spec.EXPONENT_DROPPED - 1  # at most one unit for each truncated row of the multiplier, less 1
    exponent = 2.0 ** -(spec.EXPONENT_FRACTION + spec.EXPONENT_GUARD) * max(
        lost - spec.EXPONENT_CENTRE, spec.EXPONENT_CENTRE
    )
    exponential = {
        "score in the frame": 2 * 2.0**-spec.FRAME_FRACTION * ln2 * unit,
        "exponent": (exponent + 2.0 ** -(spec.EXPONENT_FRACTION + 1)) * ln2 * unit,
        "power of two": float(spec.power_table().error) * unit,
        "exponential rounded down": 2.0 ** -(spec.FRACTION + 1) * unit,
    }
    product = max(spec.PRODUCT_DROPPED - 1 - spec.PRODUCT_CENTRE, spec.PRODUCT_CENTRE)
    return {
        **{f"{source}, twice": 2 * bound for source, bound in exponential.items()},
        "sum": n_elements * 2.0**-spec.SUM_FRACTION * unit,
        "sum rounded down": 2.0 ** -(spec.RECIPROCAL_ARGUMENT + 1) * unit,
        "reciprocal": float(spec.reciprocal_table().error) * unit,
        "reciprocal rounded down": 2.0 ** -(spec.FRACTION + 1) * unit,
        "factor": 2.0**-spec.FRACTION * unit,
        "product": product * 2.0**-spec.PRODUCT_FRACTION * unit,
        "rounding": 0.5,
    }


def error_bound(n_elements=spec.MAX_ELEMENTS):
    """Error bound in ulps of a result for a row of that many elements, factor included."""
    return sum(error_budget(n_elements).values())


def report():
    lines = [f"{bound:.3f} {source}" for source, bound in error_budget(4096).items()]
    return "\n".join(
        [*lines, f"{error_bound(4096):.3f} ulp for 4096 elements, {error_bound():.3f} for {spec.MAX_ELEMENTS}"]
    )


if __name__ == "__main__":
    print(report())
