"""Splitting a word into a normalised significand and an exponent code."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.units.spmm_array.layouts import FactorParameters, factor_layout

__all__ = ["SpmmFactor"]


class SpmmFactor(Block):
    """A word of the format as ``significand * 2**exponent``, subnormals normalised. Combinational.

    Only a zero has the top bit of its significand clear. Exponent codes begin at 0, that of the format's smallest
    subnormal; the exponent of zero is undefined.
    """

    Parameters = FactorParameters
    members_doc = {"word": "the word", "factor": "its parts"}

    @staticmethod
    def members(p):
        return {"word": In(p.float_format.width), "factor": Out(factor_layout(p))}

    def circuit(self):
        m = Module()
        p = self.parameters
        fmt = p.float_format
        word = float_layout(fmt)(self.word)
        is_subnormal, is_special, has_fraction = Signal(), Signal(), Signal()
        m.d.comb += [
            is_subnormal.eq(word.exponent == 0),
            is_special.eq(word.exponent == fmt.max_exponent),
            has_fraction.eq(word.fraction.any()),
        ]
        m.submodules.zeros = zeros = LeadingZeroCounter(width=fmt.fraction_width)
        m.submodules.shifter = shifter = LogShifter(
            width=fmt.fraction_width, amount_width=len(zeros.count), direction="left"
        )
        subnormal_exponent = Signal(p.factor_exponent_width)
        m.d.comb += [
            zeros.value.eq(word.fraction),
            shifter.value.eq(word.fraction),
            shifter.amount.eq(zeros.count),
            subnormal_exponent.eq(fmt.fraction_width - 1 - zeros.count),
            self.factor.sign.eq(word.sign),
            self.factor.is_inf.eq(is_special & ~has_fraction),
            self.factor.is_nan.eq(is_special & has_fraction),
            self.factor.exponent.eq(Mux(is_subnormal, subnormal_exponent, word.exponent + (p.precision - 2))),
            self.factor.significand.eq(
                Mux(is_subnormal, shifter.shifted << 1, word.fraction | 1 << fmt.fraction_width)
            ),
        ]
        return m
