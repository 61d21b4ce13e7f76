"""From the accumulator to words: normalise once, round the same value to FP32 and to the input format."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.rounding import RoundPack, SubnormalShift
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
    latency = 4
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
        flags = pipe.register(flags, name="flags", stages=3)
        reference = pipe.register(self.reference, name="reference_1")

        # Stage 2: the leading one on top, everything below FP32's half bit in one sticky bit.
        m.submodules.zeros = zeros = LeadingZeroCounter(width=self.width)
        m.submodules.normaliser = normaliser = LogShifter(
            width=self.width, amount_width=len(zeros.count), direction="left", small_steps_first=False
        )
        highest = self.unit_exponent + self.width - 1 + FP32.bias
        exponent = Signal(signed(2 + max(bits_for(abs(highest) + self.width), self.reference_width)))
        m.d.comb += [
            zeros.value.eq(magnitude),
            normaliser.value.eq(magnitude),
            normaliser.amount.eq(zeros.count),
            exponent.eq(reference + highest - zeros.count),
        ]
        significand = pipe.register(_fold(normaliser.shifted, FP32.precision + 2), name="significand_2")
        exponent = pipe.register(exponent, name="exponent_2")

        # Stage 3: subnormals. Sums of FP16 products are normal in FP32; BF16 has FP32's exponents, and shares the shift.
        shares = fmt.exponent_width == FP32.exponent_width
        narrow_exponent = Signal.like(exponent)
        m.d.comb += narrow_exponent.eq(exponent - (FP32.bias - fmt.bias))
        shifted = significand if shares else _fold(significand, fmt.precision + 2)
        m.submodules.subnormal = subnormal = SubnormalShift(width=len(shifted), exponent_width=len(exponent))
        m.d.comb += [subnormal.significand.eq(shifted), subnormal.exponent.eq(narrow_exponent)]
        shifted = pipe.register(Cat(subnormal.shifted[0] | subnormal.lost, subnormal.shifted[1:]), name="narrow_3")
        significand = shifted if shares else pipe.register(significand, name="wide_3")
        exponents = {
            "narrow": pipe.register(narrow_exponent, name="narrow_exponent_3"),
            "wide": pipe.register(exponent, name="wide_exponent_3"),
        }

        # Stage 4: rounding.
        for name, value, target in (("wide", significand, FP32), ("narrow", shifted, fmt)):
            m.submodules[f"round_{name}"] = pack = RoundPack(
                format=target.name, width=len(value), exponent_width=len(exponent)
            )
            m.d.comb += [
                pack.sign.eq(flags[0]),
                pack.is_inf.eq(flags[1]),
                pack.is_nan.eq(flags[2]),
                pack.exponent.eq(exponents[name]),
                pack.significand.eq(value),
                getattr(self, name).eq(pipe.register(pack.word, name=f"{name}_4")),
            ]
        return m


def _fold(value, width):
    """The top ``width`` bits; the lowest of them says whether there is a one in it or below."""
    excess = len(value) - width
    if excess <= 0:
        return Cat(Const(0, -excess), value)
    return Cat(value[:excess + 1].any(), value[excess + 1:])
