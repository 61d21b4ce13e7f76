"""Fit of the tables of the layer-norm unit, and the error budget of tables and widths.

``python -m golden.arith.layer_norm_tables`` prints the error budget.
"""

from decimal import Decimal
from fractions import Fraction

from golden.arith.fit import fit, twice_reciprocal, twice_reciprocal_root
from golden.spec import layer_norm_unit as spec

__all__ = ["fit_reciprocal", "fit_root", "error_budget", "absolute_error", "error_bound"]


def fit_reciprocal():
    """The fit of :func:`golden.spec.layer_norm_unit.reciprocal_table`."""
    return fit(
        lambda f: twice_reciprocal(f) + Decimal(2) ** -(spec.RECIPROCAL_FRACTION + 1),
        index_width=6,
        offset_width=spec.COUNT_FRACTION - 6,
        fraction_width=16,
        slope_shift=3,
        slope_width=9,
        falling=True,
    )


def fit_root():
    """The fit of :func:`golden.spec.layer_norm_unit.root_table`."""
    return fit(
        lambda m: twice_reciprocal_root(m) + Decimal(2) ** -(spec.ROOT_FRACTION + 1),
        index_width=6,
        offset_width=spec.ROOT_ARGUMENT - 5,
        fraction_width=16,
        slope_shift=6,
        slope_width=9,
        falling=True,
        centre=Fraction(1, 2),
    )


def error_budget(n_elements=spec.MAX_ELEMENTS):
    """``{source: bound}``: relative errors of a normalised element in units of 2**-11, the smallest relative ulp.

    Errors of the variance are halved by the root. Deviations and the root of their mean square are rounded down: the
    two errors partly cancel, and only the larger one is added.
    """
    unit = 2.0**11
    # The squares of two deviations whose distance is at least 1/4 sum up to 1/32 at least.
    variance = {
        "squares rounded down": n_elements * 2.0**-spec.SQUARE_FRACTION * 32,
        "sum rounded down": 2.0 ** (1 - spec.SUM_WIDTH),
        "reciprocal": float(spec.reciprocal_table().error) + 2.0 ** -(spec.RECIPROCAL_FRACTION + 1),
        "square of the number of elements": 2.0**-spec.SPREAD_FRACTION,
        "addends rounded down": 2.0 ** (3 - spec.VARIANCE_WIDTH),
        "smaller addend aligned": 2.0 ** (3 - spec.VARIANCE_WIDTH),
        "variance rounded down": 2.0 ** -(spec.ROOT_ARGUMENT + 1),
    }
    lost = max(spec.PRODUCT_DROPPED - 1 - spec.PRODUCT_CENTRE, spec.PRODUCT_CENTRE)
    return {
        **{source: bound / 2 * unit for source, bound in variance.items()},
        "deviation rounded down": 2.0 ** (1 - spec.DEVIATION_WIDTH) * unit,
        "root": (float(spec.root_table().error) + 2.0 ** -(spec.ROOT_FRACTION + 1)) * unit,
        "product": lost * 4 * 2.0**-spec.PRODUCT_FRACTION * unit,
    }


def absolute_error(n_elements=spec.MAX_ELEMENTS):
    """Additional absolute error of a normalised element: element, mean and sign, each below 1 unit of the frame."""
    return 3 * 2.0**-spec.FRAME_FRACTION * (32 * n_elements) ** 0.5


def error_bound(n_elements=spec.MAX_ELEMENTS):
    """Error bound of a normalised element in ulps, in addition to :func:`absolute_error`."""
    return sum(error_budget(n_elements).values()) + 0.5


def report():
    lines = [f"{bound:.3f} {source}" for source, bound in error_budget(1024).items()]
    return "\n".join(
        [
            *lines,
            *(
                f"{error_bound(n):.3f} ulp and {absolute_error(n) * 2**24:.2f} * 2^-24 for {n} elements"
                for n in (1024, spec.MAX_ELEMENTS)
            ),
        ]
    )


if __name__ == "__main__":
    print(report())
