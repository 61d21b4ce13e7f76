"""Reconstruction: the number that a quantised value represents, as an FP16 word."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.rounding import FloatRounder
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.quantizer_unit.layouts import EXPONENT, VALUE

__all__ = ["Reconstruction"]


class Reconstruction(Block):
    """``word = value / 2**exponent``, exact, or infinite above FP16's range. Timing: two advances."""

    members_doc = {
        "advance": "lock-step enable",
        "value": "quantised value",
        "exponent": "of its scale",
        "word": "FP16",
    }
    latency = 2

    @staticmethod
    def members(p):
        return {"advance": In(1), "value": In(VALUE), "exponent": In(EXPONENT), "word": Out(FP16.width)}

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        magnitude = Signal(VALUE.width)
        m.d.comb += magnitude.eq(Mux(self.value < 0, -self.value, self.value))
        m.submodules.zeros = zeros = LeadingZeroCounter(width=len(magnitude))
        m.submodules.normalise = shifter = LogShifter(
            width=len(magnitude), amount_width=len(zeros.count), direction="left"
        )
        biased = Signal(signed(8))
        m.d.comb += [
            zeros.value.eq(magnitude),
            shifter.value.eq(magnitude),
            shifter.amount.eq(zeros.count),
            biased.eq(FP16.bias + len(magnitude) - 1 - zeros.count - self.exponent),
        ]
        m.submodules.pack = pack = FloatRounder(format="fp16", width=len(magnitude), exponent_width=8)
        m.d.comb += [
            pack.sign.eq(pipe.register(self.value < 0, name="sign")),
            pack.exponent.eq(pipe.register(biased, name="biased")),
            pack.significand.eq(pipe.register(shifter.shifted, name="normalised")),
            pack.sticky.eq(0),
            pack.is_inf.eq(0),
            pack.is_nan.eq(0),
            self.word.eq(pipe.register(pack.word, name="word_register")),
        ]
        return m
