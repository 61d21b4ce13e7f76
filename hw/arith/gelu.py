"""GELU of a floating-point number, at most two units in the last place or 2**-15 from the exact value."""

from golden.spec.formats import FORMATS
from golden.spec.functions import gelu_tables
from hw.arith.gated import GatedFunction

__all__ = ["Gelu"]


class Gelu(GatedFunction):
    """``y = x * Phi(x)``, Phi the normal distribution (the erf form), for every x, subnormal results included.

    All values are scaled by the power of two of x, so that no aligner is needed: with the significand m and a linear
    segment selected by exponent and leading fraction bits, the result is ``m / 2 + line`` or, for negative x,
    ``m / 2 - line``; from 2 on ``m - line`` or, for negative x, ``line``. Both subtractions invert the minuend and the
    sum. The result is normalised and rounded half up. Below 2**-11 it is x / 2. -Inf gives -0, +Inf +Inf, NaN the
    canonical NaN.

    Latency 3, one result a clock; the input is not registered, the output is. Golden: ``golden.arith.functions.gelu``.
    """

    def prepare(self):
        tables = gelu_tables(FORMATS[self.format])
        self.even, self.rest, self.tail = tables.even, (tables.rest,), tables.tail
