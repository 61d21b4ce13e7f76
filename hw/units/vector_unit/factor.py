"""Splitting a word into a normalised significand and its exponent."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from golden.spec import vector_unit as spec
from hw.arith.fused_layouts import operand_layout
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.formats import float_layout

__all__ = ["Factor"]


@dataclass(frozen=True, kw_only=True)
class FactorParameters(spec.FactorParameters):
    pass


class Factor(Block):
    """A word of the format as an operand of :class:`hw.arith.elementwise.ElementwiseLane`, subnormals normalised.

    A number that is not zero, and Inf and NaN, have ``hidden`` set; the exponent of a subnormal is below 1. The
    significand of zero is 0, its exponent is undefined. Combinational.
    """

    Parameters = FactorParameters
    members_doc = {"word": "the word", "factor": "its parts, see hw.arith.fused_layouts.operand_layout"}

    @staticmethod
    def members(p):
        return {"word": In(p.float_format.width), "factor": Out(operand_layout(p.float_format))}

    def circuit(self):
        m = Module()
        fmt = self.parameters.float_format
        word = float_layout(fmt)(self.word)
        is_subnormal = Signal()
        m.submodules.zeros = zeros = LeadingZeroCounter(width=fmt.fraction_width)
        m.submodules.shifter = shifter = LogShifter(
            width=fmt.fraction_width, amount_width=len(zeros.count), direction="left"
        )
        m.d.comb += [
            is_subnormal.eq(word.exponent == 0),
            zeros.value.eq(word.fraction),
            shifter.value.eq(word.fraction),
            shifter.amount.eq(zeros.count),
            self.factor.sign.eq(word.sign),
            self.factor.exponent.eq(Mux(is_subnormal, -zeros.count, word.exponent)),
            self.factor.hidden.eq(~is_subnormal | word.fraction.any()),
            self.factor.fraction.eq(Mux(is_subnormal, shifter.shifted << 1, word.fraction)),
        ]
        return m
