"""From a lane's sum over the engines to words: normalise, and round once to the format and once to FP32."""

from dataclasses import dataclass

from amaranth.hdl import Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP32
from golden.spec.parameters import flag, integer
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.rounding import RoundPack, SubnormalShift
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.spmm_array.layouts import SpmmLaneParameters
from hw.units.vector_unit.arithmetic import SPECIALS

__all__ = ["SumRounder"]


@dataclass(frozen=True, kw_only=True)
class SumRounderParameters(SpmmLaneParameters):
    width: int = integer(39, low=1, high=64, doc="bits of a total, in two's complement")
    wide: bool = flag(False, doc="whether to round to FP32 as well")

    @property
    def targets(self):
        """The formats of the words, by name."""
        return {"rounded": self.float_format} | ({"single": FP32} if self.wide else {})

    @property
    def kept_width(self):
        """Bits of a significand for the widest of them: one below its last, the rest is sticky."""
        return min(self.width, 1 + max(target.precision for target in self.targets.values()))


class SumRounder(Block):
    """``total * 2**(exponent - last_bit_exponent)`` and its specials, rounded to nearest, ties to even.

    A total every clock, without enables.
    """

    Parameters = SumRounderParameters
    members_doc = {
        "total": "the sum's integer, in two's complement",
        "exponent": "the sum's exponent code",
        "specials": "specials that went into the sum",
        "rounded": "word of the format",
        "single": "FP32 word",
    }

    @staticmethod
    def members(p):
        return {
            "total": In(signed(p.width)),
            "exponent": In(p.exponent_width),
            "specials": In(SPECIALS),
            **{name: Out(target.width) for name, target in p.targets.items()},
        }

    def prepare(self):
        if not self.wide:
            self.members_doc = {name: text for name, text in self.members_doc.items() if name != "single"}

    latency = 5

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=Const(1, 1))
        p = self.parameters

        # Stage 0: sign and magnitude.
        specials, is_infinite = self.specials, Signal()
        m.d.comb += is_infinite.eq(specials.positive_infinity | specials.negative_infinity)
        flags = {
            "sign": Mux(is_infinite, specials.negative_infinity, self.total[-1]),
            "is_inf": is_infinite,
            "is_nan": specials.nan | (specials.positive_infinity & specials.negative_infinity),
        }
        flags = {name: pipe.register(value, name=f"{name}_4", stages=4) for name, value in flags.items()}
        magnitude = Signal(p.width)
        m.d.comb += magnitude.eq(Mux(self.total[-1], -self.total, self.total))
        magnitude = pipe.register(magnitude, name="magnitude_1")
        exponent = pipe.register(self.exponent, name="exponent_1")

        # Stage 1: leading zeros.
        m.submodules.zeros = zeros = LeadingZeroCounter(width=p.width)
        m.d.comb += zeros.value.eq(magnitude)
        count = pipe.register(zeros.count, name="count_2")
        magnitude = pipe.register(magnitude, name="magnitude_2")
        exponent = pipe.register(exponent, name="exponent_2")

        # Stage 2: normalise; the exponent becomes the biased one of the top bit.
        m.submodules.shifter = shifter = LogShifter(width=p.width, amount_width=len(count), direction="left")
        biased = Signal(signed(max(p.exponent_width, FP32.exponent_width) + 2))
        m.d.comb += [
            shifter.value.eq(magnitude),
            shifter.amount.eq(count),
            biased.eq(exponent - count + (p.width - 1 - p.last_bit_exponent + p.float_format.bias)),
        ]
        below = p.width - p.kept_width
        significand = pipe.register(shifter.shifted[below:], name="significand_3")
        sticky = pipe.register(shifter.shifted[:below].any() if below else Const(0, 1), name="sticky_3")
        biased = pipe.register(biased, name="biased_3")

        # Stages 3 and 4: subnormals, then rounding.
        for name, target in p.targets.items():
            rebiased = Signal.like(biased, name=f"{name}_biased")
            m.submodules[f"{name}_subnormal"] = subnormal = SubnormalShift(
                width=p.kept_width, exponent_width=len(biased)
            )
            m.submodules[f"{name}_pack"] = pack = RoundPack(
                format=target.name, width=p.kept_width, exponent_width=len(biased)
            )
            m.d.comb += [
                rebiased.eq(biased + (target.bias - p.float_format.bias)),
                subnormal.exponent.eq(rebiased),
                subnormal.significand.eq(significand),
                pack.sign.eq(flags["sign"]),
                pack.exponent.eq(pipe.register(rebiased, name=f"{name}_biased_4")),
                pack.significand.eq(pipe.register(subnormal.shifted, name=f"{name}_significand_4")),
                pack.sticky.eq(pipe.register(sticky | subnormal.lost, name=f"{name}_sticky_4")),
                pack.is_inf.eq(flags["is_inf"]),
                pack.is_nan.eq(flags["is_nan"]),
                getattr(self, name).eq(pipe.register(pack.word, name=f"{name}_5")),
            ]
        return m
