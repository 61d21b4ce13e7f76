"""From the accumulator to words: normalise once, round the same value to FP32 and to the input format."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.rounding import RoundPack, SubnormalDistance
from hw.arith.shifter import LogShifter
from hw.block import Block
from hw.formats import FP32, float_format
from hw.params import Parameters, choice, integer
from hw.pipeline import Pipeline

__all__ = ["ScoreRounder"]


@dataclass(frozen=True, kw_only=True)
class ScoreRounderParameters(Parameters):
    format: str = choice("fp16", "fp16", "bf16", doc="format of the narrow word")
    width: int = integer(47, low=2, high=96, doc="bits of the sum")
    reference_width: int = integer(6, low=1, high=16, doc="bits of the sum's reference")
    unit_exponent: int = integer(-50, low=-400, high=0, doc="the sum's unit is 2 to the power of this, at reference 0")


class ScoreRounder(Block):
    """``sum * 2**(reference + unit_exponent)``, rounded to nearest, ties to even, to two formats at once.

    Timing: words come ``latency`` advances after the sum.
    """

    Parameters = ScoreRounderParameters
    latency = 3
    members_doc = {
        "advance": "lock-step enable",
        "sum": "two's complement",
        "reference": "exponent to which the sum is aligned",
        "is_nan": "a term is not a number",
        "plus_inf": "a term is plus infinity",
        "minus_inf": "a term is minus infinity",
        "wide": "FP32",
        "narrow": "the format",
    }

    def __init__(self, **parameters):
        super().__init__(parameters, lambda p: {
            "advance": In(1),
            "sum": In(signed(p.width)),
            "reference": In(p.reference_width),
            "is_nan": In(1),
            "plus_inf": In(1),
            "minus_inf": In(1),
            "wide": Out(FP32.width),
            "narrow": Out(float_format(p.format).width),
        })

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        fmt = float_format(self.format)

        # Stage 1: sign and magnitude.
        magnitude = Signal(self.width)
        m.d.comb += magnitude.eq(Mux(self.sum[-1], -self.sum, self.sum))
        magnitude = pipe.register(magnitude, name="magnitude_1")
        is_inf = self.plus_inf | self.minus_inf
        flags = Cat(
            Mux(is_inf, self.minus_inf, self.sum[-1]), is_inf, self.is_nan | (self.plus_inf & self.minus_inf)
        )
        flags = pipe.register(flags, name="flags", stages=2)
        reference = pipe.register(self.reference, name="reference_1")

        # Stage 2: the leading one on top, everything below FP32's half bit in one sticky bit.
        m.submodules.zeros = zeros = LeadingZeroCounter(width=self.width)
        m.submodules.normaliser = normaliser = LogShifter(
            width=self.width, amount_width=len(zeros.count), direction="left", small_steps_first=False
        )
        m.d.comb += [
            zeros.value.eq(magnitude),
            normaliser.value.eq(magnitude),
            normaliser.amount.eq(zeros.count),
        ]
        significand = pipe.register(_fold(normaliser.shifted, FP32.precision + 2), name="significand_2")
        exponents = {}
        highest = self.unit_exponent + self.width - 1
        shape = signed(2 + max(bits_for(abs(highest) + FP32.bias + self.width), self.reference_width))
        for name, target in (("wide", FP32), ("narrow", fmt)):
            exponent = Signal(shape, name=f"{name}_exponent")
            m.d.comb += exponent.eq(reference + (highest + target.bias) - zeros.count)
            exponents[name] = pipe.register(exponent, name=f"{name}_exponent_2")

        # A sum of FP16 products is normal in FP32; BF16 has FP32's exponents, so that both results share one shift.
        shared = fmt.exponent_width == FP32.exponent_width
        folded = significand if shared else _fold(significand, fmt.precision + 2)
        m.submodules.distance = distance = SubnormalDistance(width=len(folded), exponent_width=shape.width)
        m.d.comb += distance.exponent.eq(exponent)
        amount = pipe.register(distance.distance, name="distance_2")

        # Stage 3: subnormals, rounding.
        m.submodules.subnormal = subnormal = LogShifter(width=len(folded), amount_width=len(amount), sticky=True)
        m.d.comb += [subnormal.value.eq(folded), subnormal.amount.eq(amount)]
        values = {"narrow": (subnormal.shifted, subnormal.lost)}
        values["wide"] = values["narrow"] if shared else (significand, 0)
        for name, target in (("wide", FP32), ("narrow", fmt)):
            value, lost = values[name]
            m.submodules[f"round_{name}"] = pack = RoundPack(
                format=target.name, width=len(value), exponent_width=shape.width
            )
            m.d.comb += [
                pack.sign.eq(flags[0]),
                pack.is_inf.eq(flags[1]),
                pack.is_nan.eq(flags[2]),
                pack.exponent.eq(exponents[name]),
                pack.significand.eq(value),
                pack.sticky.eq(lost),
                getattr(self, name).eq(pipe.register(pack.word, name=f"{name}_3")),
            ]
        return m


def _fold(value, width):
    """The top ``width`` bits; the lowest of them says whether there is a one in it or below."""
    excess = len(value) - width
    if excess <= 0:
        return Cat(Const(0, -excess), value)
    return Cat(value[:excess + 1].any(), value[excess + 1:])
