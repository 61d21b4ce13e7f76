"""Fit of the tables of SiLU, one for each octave of the argument, from the definition.

``python -m golden.arith.silu_tables`` prints every table and its error. :mod:`golden.spec.functions` defines
them.
"""

from decimal import Context, Decimal, localcontext

from golden.arith.fit import PRECISION, fit
from golden.spec.formats import BF16, FP16
from golden.spec.functions import GELU_FRACTION, GELU_OCTAVES, SILU_OCTAVES, SiluTables, silu_tables

__all__ = ["fit_silu", "sigmoid"]

_REST_INDEX_WIDTH = 5
"""Bits of the fraction that choose the line from 2 on."""
_INDEX_WIDTHS = {FP16: {0: 4, -1: 3}, BF16: {0: 3, -1: 2}}
"""The same for e = 0, and for e = -1 and less."""
_SLOPE_WIDTH = 11


def sigmoid(a):
    """1 / (1 + exp(-a)) of a Decimal."""
    with localcontext(Context(prec=PRECISION)):
        return 1 / (1 + (-a).exp())


def _even(fraction, e):
    with localcontext(Context(prec=PRECISION)):
        m = 1 + Decimal(fraction.numerator) / fraction.denominator
        return m * (sigmoid(m * Decimal(2) ** e) - Decimal("0.5"))


def _rest(fraction, e):
    with localcontext(Context(prec=PRECISION)):
        a = (1 + Decimal(fraction.numerator) / fraction.denominator) * Decimal(2) ** e
        return a * sigmoid(-a) / 2


def fit_silu(fmt):
    """The fit of :func:`golden.spec.functions.silu_tables`."""
    half = Decimal(2) ** -(GELU_FRACTION + 1)

    def line(function, index_width, falling):
        return fit(
            function,
            index_width=index_width,
            offset_width=fmt.fraction_width - index_width,
            fraction_width=GELU_FRACTION,
            slope_shift=fmt.fraction_width + _SLOPE_WIDTH - GELU_FRACTION,
            slope_width=_SLOPE_WIDTH,
            falling=falling,
        )

    widths = _INDEX_WIDTHS[fmt]
    even = tuple(line(lambda f, e=e: _even(f, e) + half, widths[max(e, -1)], False) for e in range(1 - GELU_OCTAVES, 1))
    rest = tuple(line(lambda f, e=e: _rest(f, e) + half, _REST_INDEX_WIDTH, True) for e in range(1, SILU_OCTAVES + 1))
    return SiluTables(even, rest)


def report():
    """One line a table: its size and its error in units of 2**-15, absolute."""
    lines = []
    for fmt in (FP16, BF16):
        tables = silu_tables(fmt)
        for e, table in enumerate((*tables.even, *tables.rest), start=1 - GELU_OCTAVES):
            unit = min(e, 1)
            lines.append(
                f"{fmt.name} SiLU from 2^{e}: {len(table.slopes)} lines of {1 << table.offset_width}, error "
                f"{float(table.error) * 2.0 ** (15 + unit):.3f} units of 2^-15"
            )
        lines.append(f"{fmt.name} SiLU from 2^{SILU_OCTAVES + 1}: x or 0")
    return "\n".join(lines)


if __name__ == "__main__":
    print(report())
