"""The piecewise linear evaluator shared by the function units."""

from dataclasses import dataclass

from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from golden.spec import functions, layer_norm_unit, softmax_unit
from golden.spec.formats import FORMATS, OPERAND_FORMATS
from golden.spec.parameters import Parameters, choice, integer
from hw.arith.compressor import Heap
from hw.arith.multiplier import add_unsigned_product
from hw.arith.tables import look_up
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline

__all__ = ["LinearSegments"]

TABLES = {
    "power_of_two": lambda fmt: functions.exponential_tables(fmt).power,
    "reciprocal": functions.reciprocal_table,
    "reciprocal_root": functions.reciprocal_root_table,
    "softmax_power": lambda fmt: softmax_unit.power_table(),
    "softmax_reciprocal": lambda fmt: softmax_unit.reciprocal_table(),
    "layer_norm_reciprocal": lambda fmt: layer_norm_unit.reciprocal_table(),
    "layer_norm_root": lambda fmt: layer_norm_unit.root_table(),
}


@dataclass(frozen=True, kw_only=True)
class LinearSegmentsParameters(Parameters):
    function: str = choice("power_of_two", *TABLES, doc="the function, see golden/spec/functions.py")
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, doc="format whose precision the result has")
    fraction_width: int | None = integer(None, low=1, high=24, doc="the result's; none: one more than the format's")
    n_roundings: int = integer(1, low=1, high=16, doc="positions at which the result can be rounded")


class LinearSegments(Block):
    """``excess = function(argument) - 1`` for a function with values in [1, 2], by linear segments.

    The high bits of the argument select intercept and slope, which are registered with the offset (the low
    bits); then one bit heap adds the intercept, the product of slope and offset, and the rounding. The sum is truncated
    to ``fraction_width`` bits. One register row (latency 1): the result is combinational after it. The tables, and the
    golden model of the sum, are :class:`golden.spec.tables.LinearTable` and :func:`golden.arith.lines.evaluate`.
    """

    Parameters = LinearSegmentsParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "argument": "fraction in [0, 1)",
        "rounding": "with the registered row: bit n adds 2**n units of the excess' last place",
        "excess": "function value minus 1; the top bit has the weight 1",
    }
    latency = 1

    @staticmethod
    def members(p):
        fmt = FORMATS[p.format]
        return {
            "advance": In(1),
            "argument": In(TABLES[p.function](fmt).argument_width),
            "rounding": In(p.n_roundings),
            "excess": Out(1 + (p.fraction_width or fmt.fraction_width + 1)),
        }

    def prepare(self):
        self.table = TABLES[self.function](FORMATS[self.format])

    def circuit(self):
        m = Module()
        table = self.table
        pipe = Pipeline(m, advance=self.advance)

        index, offset = self.argument[table.offset_width :], self.argument[: table.offset_width]
        one = 1 << table.fraction_width
        fractions = [value - one for value in table.intercepts]
        intercept = look_up(m, "intercept", index, fractions, table.fraction_width)
        slope = look_up(m, "slope", index, table.slopes, table.slope_width)
        intercept = pipe.register(intercept, name="intercept_1")
        slope = pipe.register(slope, name="slope_1")
        offset = pipe.register(~offset if table.falling else offset, name="offset_1")

        below = table.value_fraction - (len(self.excess) - 1)  # truncated bits
        heap = Heap(m, "heap", table.value_fraction + 1)
        heap.add(self.rounding, below)
        heap.add(intercept, table.slope_shift)
        add_unsigned_product(m, heap, slope, offset, "partial")
        m.d.comb += self.excess.eq(heap.total()[below:])
        return m
