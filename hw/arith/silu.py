"""SiLU of a floating-point number, at most two units in the last place or 2**-15 from the exact value."""

from golden.spec.formats import FORMATS
from golden.spec.functions import silu_tables
from hw.arith.gated import GatedFunction

__all__ = ["Silu"]


class Silu(GatedFunction):
    """``y = x / (1 + exp(-x))``, x times the logistic function, for every x, subnormal results included.

    It works as :class:`hw.arith.gelu.Gelu` does; its lines go on to 16. From 4 on, those of positive x are shifted
    right to the scale of x. Below 2**-11 the result is x / 2. -Inf gives -0, +Inf +Inf, NaN the canonical NaN.

    Latency 3, one result a clock; the input is not registered, the output is. Golden: ``golden.arith.functions.silu``.
    """

    def prepare(self):
        tables = silu_tables(FORMATS[self.format])
        self.even, self.rest = tables.even, tables.rest
