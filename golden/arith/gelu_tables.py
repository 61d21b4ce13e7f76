"""Fit of the tables of GELU, one for each octave of the argument, from the definition.

``python -m golden.arith.gelu_tables`` prints every table and its error. :mod:`golden.spec.functions` defines
them.
"""

from decimal import Context, Decimal, localcontext
from functools import cache

from golden.arith.fit import PRECISION, fit
from golden.spec.formats import BF16, FP16
from golden.spec.functions import GELU_FRACTION, GELU_OCTAVES, GELU_TAIL_INDEX_WIDTH, GeluTables, gelu_tables

__all__ = ["fit_gelu", "normal_distribution"]

_INDEX_WIDTHS = {FP16: {1: 6, 0: 4, -1: 3}, BF16: {1: 5, 0: 3, -1: 2}}
"""Bits of the fraction that choose the line, for e = 1, 0, and -1 and less."""


def normal_distribution(a):
    """Phi(a) - 1/2 of a Decimal of a few units, by its power series."""
    with localcontext(Context(prec=PRECISION)):
        power, total, n = a, a, 0
        while abs(power) > Decimal(10) ** -(PRECISION - 8):
            n += 1
            power = -power * a * a / (2 * n)
            total += power / (2 * n + 1)
        return total / (2 * _pi()).sqrt()


@cache
def _pi():
    """By Machin's formula."""

    def arctangent(n):
        power, total, k = Decimal(1) / n, Decimal(0), 0
        while abs(power) > Decimal(10) ** -(PRECISION + 5):
            total += power / (2 * k + 1)
            power, k = -power / (n * n), k + 1
        return total

    with localcontext(Context(prec=PRECISION + 5)):
        return 4 * (4 * arctangent(5) - arctangent(239))


def _even(fraction, e):
    with localcontext(Context(prec=PRECISION)):
        m = 1 + Decimal(fraction.numerator) / fraction.denominator
        return m * normal_distribution(m * Decimal(2) ** e)


def _rest(a):
    with localcontext(Context(prec=PRECISION)):
        return a * (Decimal("0.5") - normal_distribution(a)) / 2


def fit_gelu(fmt):
    """The fit of :func:`golden.spec.functions.gelu_tables`."""
    half = Decimal(2) ** -(GELU_FRACTION + 1)
    widths = _INDEX_WIDTHS[fmt]

    slope_width = max(9, GELU_FRACTION - fmt.fraction_width)

    def line(e, function, falling):
        index_width = widths[max(e, -1)]
        return fit(
            function,
            index_width=index_width,
            offset_width=fmt.fraction_width - index_width,
            fraction_width=GELU_FRACTION,
            slope_shift=fmt.fraction_width + slope_width - GELU_FRACTION,
            slope_width=slope_width,
            falling=falling,
        )

    even = tuple(line(e, lambda f, e=e: _even(f, e) + half, False) for e in range(1 - GELU_OCTAVES, 1))
    rest = line(1, lambda f: _rest(2 * (1 + Decimal(f.numerator) / f.denominator)) + half, True)
    # The midpoint of each step.
    ends = [_rest(4 + Decimal(step) / 16) for step in range(1 << GELU_TAIL_INDEX_WIDTH)]
    tail = [
        int((upper + lower) * (1 << GELU_FRACTION - 1) + Decimal("0.5"))
        for upper, lower in zip(ends, ends[1:], strict=False)
    ]
    return GeluTables(even, rest, tuple(value for value in tail if value))


def report():
    """One line a table: its size and its error in units of 2**-15, absolute."""
    lines = []
    for fmt in (FP16, BF16):
        tables = gelu_tables(fmt)
        for e, table in enumerate((*tables.even, tables.rest), start=1 - GELU_OCTAVES):
            lines.append(
                f"{fmt.name} GELU from 2^{e}: {len(table.slopes)} lines of {1 << table.offset_width}, error "
                f"{float(table.error) * 2.0 ** (15 + e):.3f} units of 2^-15"
            )
        lines.append(f"{fmt.name} GELU from 2^2: {len(tables.tail)} constants, then 0")
    return "\n".join(lines)


if __name__ == "__main__":
    print(report())
