"""Fit of the tables of exponential, reciprocal and reciprocal square root.

``python -m golden.arith.function_tables`` prints every table and its error.
"""

from decimal import Context, Decimal, localcontext
from fractions import Fraction

from golden.arith.fit import PRECISION, fit, power_of_two, twice_reciprocal, twice_reciprocal_root
from golden.spec.formats import BF16, FP16
from golden.spec.functions import ExponentialTables, exponential_tables, reciprocal_root_table, reciprocal_table

__all__ = ["fit_exponential", "fit_reciprocal", "fit_reciprocal_root", "signed_digits"]


def signed_digits(value):
    """``[(sign, weight), ...]``: the fewest signed powers of two that sum to a positive integer, largest first."""
    digits, weight = [], 0
    while value:
        if value & 1:
            # 3 is 2 + 1 here, not 4 - 1: as few digits, without a carry into another column.
            sign = 1 if value == 3 else 2 - (value & 3)
            digits.append((sign, weight))
            value -= sign
        value >>= 1
        weight += 1
    return digits[::-1]


def fit_exponential(fmt):
    """The fit of :func:`golden.spec.functions.exponential_tables`."""
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
    with localcontext(Context(prec=PRECISION)):
        # The smallest result that is not zero is half the smallest subnormal.
        largest_argument = (fmt.bias + fmt.fraction_width) * Decimal(2).ln()
        log2e = int((ExponentialTables.product_fraction * Decimal(2).ln()).exp() / Decimal(2).ln() + Decimal("0.5"))
    return ExponentialTables(power, int(largest_argument).bit_length() - 1, tuple(signed_digits(log2e)))


def fit_reciprocal(fmt):
    """The fit of :func:`golden.spec.functions.reciprocal_table`."""
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


def fit_reciprocal_root(fmt):
    """The fit of :func:`golden.spec.functions.reciprocal_root_table`."""
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
