"""FP16 numbers as integers."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.units.layer_norm_unit.layouts import FIXED_WIDTH

__all__ = ["FixedMagnitude", "significand_of"]


def significand_of(m, word, name):
    """``(significand, exponent field from 1 on, sign)`` of an FP16 word."""
    number = float_layout(FP16)(word)
    hidden = Signal(name=f"{name}_hidden")
    m.d.comb += hidden.eq(number.exponent.any())
    field = Cat(number.exponent[0] | ~hidden, number.exponent[1:])
    return Cat(number.fraction, hidden), field, number.sign


class FixedMagnitude(Block):
    """An FP16 word's magnitude in units of the smallest one, and its sign. Combinational."""

    members_doc = {"word": "FP16, finite", "magnitude": "an integer", "sign": "1 for negative"}

    @staticmethod
    def members(p):
        return {"word": In(FP16.width), "magnitude": Out(FIXED_WIDTH), "sign": Out(1)}

    def circuit(self):
        m = Module()
        significand, field, sign = significand_of(m, self.word, "word")
        m.submodules.shifter = shifter = LogShifter(
            width=FIXED_WIDTH, amount_width=FP16.exponent_width, direction="left"
        )
        m.d.comb += [
            shifter.value.eq(Cat(significand, Const(0, FIXED_WIDTH - FP16.precision))),
            shifter.amount.eq(field - 1),
            self.magnitude.eq(shifter.shifted),
            self.sign.eq(sign),
        ]
        return m
