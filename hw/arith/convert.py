"""Split of an FP32 word into two operands whose sum a narrower fused multiply-add rounds exactly."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP32, OPERAND_FORMATS, float_format
from golden.spec.parameters import Parameters, choice
from hw.arith.fused_layouts import operand_layout
from hw.lib.block import Block
from hw.lib.formats import float_layout

__all__ = ["SplitSingle"]


@dataclass(frozen=True, kw_only=True)
class SplitSingleParameters(Parameters):
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, doc="format of the operands")


class SplitSingle(Block):
    """``word = upper + lower``, exact up to a sticky bit, so that it rounds as the word does. Combinational.

    ``upper`` is the leading bits of the significand, ``lower`` the next ones, of the same sign; bits below are ORed
    into its last bit. Numbers that overflow the format become Inf, those below half of its smallest one
    signed zeros.
    """

    Parameters = SplitSingleParameters
    members_doc = {
        "word": "FP32",
        "upper": "see operand_layout; Inf and NaN are here",
        "lower": "see operand_layout; finite, its exponent is smaller by the precision",
    }

    @staticmethod
    def members(p):
        operand = operand_layout(float_format(p.format))
        return {"word": In(FP32.width), "upper": Out(operand), "lower": Out(operand)}

    def circuit(self):
        m = Module()
        fmt = float_format(self.format)
        p = fmt.precision
        word = data.View(float_layout(FP32), self.word)
        special = Signal()
        hidden = Signal()
        m.d.comb += [special.eq(word.exponent.all()), hidden.eq(word.exponent.any())]

        exponent = Signal(signed(FP32.exponent_width + 2))
        m.d.comb += exponent.eq(Cat(word.exponent[0] | ~hidden, word.exponent[1:]) - (FP32.bias - fmt.bias))
        large = Signal()
        tiny = Signal()
        m.d.comb += [
            large.eq(exponent >= fmt.max_exponent),
            tiny.eq(exponent < -fmt.fraction_width if fmt.bias < FP32.bias else 0),
        ]
        clear = Signal()
        m.d.comb += clear.eq(tiny | (large & ~special))

        below = FP32.fraction_width - fmt.fraction_width
        fraction = word.fraction[below:]
        rest = Signal(p)
        low_bits = word.fraction[max(below - p + 1, 0) : below]
        m.d.comb += rest.eq(Cat(word.fraction[: below - len(low_bits)].any(), low_bits))
        number = ~(clear | special)
        kept_exponent = Signal.like(self.upper.exponent)
        m.d.comb += kept_exponent.eq(Mux(large, fmt.max_exponent, Mux(tiny, 0, exponent)))
        m.d.comb += [
            self.upper.fraction.eq(fraction & ~clear.replicate(fmt.fraction_width)),
            self.upper.hidden.eq(hidden & ~tiny),
            self.upper.exponent.eq(kept_exponent),
            self.upper.sign.eq(word.sign),
            Cat(self.lower.fraction, self.lower.hidden).eq(rest & number.replicate(p)),
            self.lower.exponent.eq(kept_exponent - p),
            self.lower.sign.eq(word.sign),
        ]
        # A NaN whose fraction is in the lower half only must not become Inf.
        with m.If(special & word.fraction.any()):
            m.d.comb += self.upper.fraction[-1].eq(1)
        return m
