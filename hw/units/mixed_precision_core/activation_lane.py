"""ActivationLane: an FP32 output to FP16, through GELU or not."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16, FP32
from hw.arith.gelu import Gelu
from hw.arith.rounding import RoundPack, SubnormalShift
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline

__all__ = ["ActivationLane"]

_EXPONENT_WIDTH = FP32.exponent_width + 2


class ActivationLane(Block):
    """``activation = GELU(round(output))`` or ``round(output)``, rounded to FP16, ties to even. Nothing stalls.

    GELU is that of :func:`golden.arith.functions.gelu`, on the rounded number.
    """

    members_doc = {
        "output": "FP32",
        "is_gelu": "whether GELU follows the conversion; constant",
        "activation": "FP16, ``latency`` clocks later",
    }
    latency = 2 + Gelu.latency

    @staticmethod
    def members(p):
        return {"output": In(float_layout(FP32)), "is_gelu": In(1), "activation": Out(FP16.width)}

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=1)
        word = self.output
        hidden, special = word.exponent.any(), word.exponent.all()
        m.submodules.shift = shift = SubnormalShift(width=FP32.precision, exponent_width=_EXPONENT_WIDTH)
        exponent = Signal(signed(_EXPONENT_WIDTH))
        m.d.comb += [
            exponent.eq(word.exponent - (FP32.bias - FP16.bias)),
            shift.exponent.eq(exponent),
            # What is subnormal in FP32 is far below half of the smallest number.
            shift.significand.eq(Cat(word.fraction, 1) & hidden.replicate(FP32.precision)),
        ]
        m.submodules.pack = pack = RoundPack(format="fp16", width=FP32.precision, exponent_width=_EXPONENT_WIDTH)
        m.d.comb += [
            pack.sign.eq(pipe.register(word.sign, name="sign")),
            pack.exponent.eq(pipe.register(exponent, name="exponent_register")),
            pack.significand.eq(pipe.register(shift.shifted, name="significand")),
            pack.sticky.eq(pipe.register(shift.lost, name="sticky")),
            pack.is_inf.eq(pipe.register(special & ~word.fraction.any(), name="is_inf")),
            pack.is_nan.eq(pipe.register(special & word.fraction.any(), name="is_nan")),
        ]
        rounded = pipe.register(pack.word, name="rounded")
        m.submodules.gelu = gelu = Gelu(format="fp16")
        m.d.comb += [
            gelu.advance.eq(1),
            gelu.x.eq(rounded),
            self.activation.eq(Mux(self.is_gelu, gelu.y, pipe.register(rounded, name="late", stages=Gelu.latency))),
        ]
        return m
