"""From an unrounded total to words: normalise, and round once to FP32 and once to the format."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP32
from golden.spec.parameters import flag, integer, subset
from golden.spec.vector_unit import FORMS
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.rounding import RoundPack, SubnormalShift
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline
from hw.units.vector_unit.arithmetic import SPECIALS, AccumulatorParameters

__all__ = ["TotalRounder"]


@dataclass(frozen=True, kw_only=True)
class TotalRounderParameters(AccumulatorParameters):
    width: int = integer(51, low=FP32.precision + 1, high=64, doc="bits of a total, in two's complement")
    forms: tuple[str, ...] = subset(FORMS, *FORMS, doc="the forms of the word")
    has_sums: bool = flag(True, doc="whether totals may be sums")
    has_maximum: bool = flag(True, doc="whether totals may be maxima")

    @property
    def targets(self):
        """``{form: format of the words}``."""
        return {form: FP32 if form == "single" else self.float_format for form in self.forms}

    @property
    def kept_width(self):
        """Bits of the significand for all roundings: the longest, and one bit below; a sticky bit is apart."""
        return max(target.precision for target in self.targets.values()) + 1


class TotalRounder(Block):
    """``single`` and ``rounded`` are a total rounded to nearest, ties to even, to FP32 and to the format.

    A total is ``total * 2**(exponent - last_bit_exponent)`` with its specials, or, for a maximum, the word of a
    key (see :class:`hw.units.vector_unit.accumulator.LaneAccumulator`). Where ``used`` is 0 both words are
    0.
    """

    Parameters = TotalRounderParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "used": "whether there is a total",
        "is_maximum": "take the key, not the sum",
        "total": "the sum's integer, in two's complement",
        "exponent": "the sum's exponent code",
        "specials": "specials that went into the sum",
        "maximum_key": "the maximum's key",
        "single": "FP32 word",
        "rounded": "word of the format",
    }

    @staticmethod
    def members(p):
        sums = {"total": In(signed(p.width)), "exponent": In(p.exponent_width), "specials": In(SPECIALS)}
        return {
            "advance": In(1),
            "used": In(1),
            **(sums if p.has_sums else {}),
            **({"maximum_key": In(p.float_format.width)} if p.has_maximum else {}),
            **({"is_maximum": In(1)} if p.has_sums and p.has_maximum else {}),
            **{form: Out(target.width) for form, target in p.targets.items()},
        }

    latency = 5

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        p, kept_width = self.parameters, self.parameters.kept_width

        # Stage 0: sign and magnitude, of the total or of the maximum.
        flags = {name: Signal(name=name) for name in ("used", "sign", "is_inf", "is_nan")}
        magnitude = Signal(p.width)
        exponent = Signal(p.exponent_width)
        m.d.comb += flags["used"].eq(self.used)
        parts = (flags["sign"], flags["is_inf"], flags["is_nan"], magnitude, exponent)
        of_sum = self._of_sum(m) if p.has_sums else None
        of_maximum = self._of_maximum(m) if p.has_maximum else None
        for target, sum_part, maximum_part in zip(parts, of_sum or of_maximum, of_maximum or of_sum, strict=True):
            both = of_sum and of_maximum
            m.d.comb += target.eq(Mux(self.is_maximum, maximum_part, sum_part) if both else sum_part)
        magnitude = pipe.register(magnitude, name="magnitude_1")
        exponent = pipe.register(exponent, name="exponent_1")
        flags = {name: pipe.register(flag, name=f"{name}_4", stages=4) for name, flag in flags.items()}

        # Stage 1: leading zeros.
        m.submodules.zeros = zeros = LeadingZeroCounter(width=p.width)
        m.d.comb += zeros.value.eq(magnitude)
        count = pipe.register(zeros.count, name="count_2")
        magnitude = pipe.register(magnitude, name="magnitude_2")
        exponent = pipe.register(exponent, name="exponent_2")

        # Stage 2: normalise; the exponent becomes FP32's biased exponent of the top bit.
        m.submodules.shifter = shifter = LogShifter(width=p.width, amount_width=len(count), direction="left")
        biased_width = max(p.exponent_width, FP32.exponent_width) + 2
        biased = Signal(signed(biased_width))
        m.d.comb += [
            shifter.value.eq(magnitude),
            shifter.amount.eq(count),
            biased.eq(exponent - count + (p.width - 1 - p.last_bit_exponent + FP32.bias)),
        ]
        below = p.width - kept_width
        significand = pipe.register(shifter.shifted[below:], name="significand_3")
        sticky = pipe.register(shifter.shifted[:below].any() if below else Const(0, 1), name="sticky_3")
        biased = pipe.register(biased, name="biased_3")

        # Stages 3 and 4: subnormals, then rounding, for each of the two words.
        for name, target in p.targets.items():
            rebiased = Signal(signed(biased_width), name=f"{name}_biased")
            m.d.comb += rebiased.eq(biased + (target.bias - FP32.bias))
            m.submodules[f"{name}_subnormal"] = subnormal = SubnormalShift(
                width=kept_width, exponent_width=biased_width
            )
            m.submodules[f"{name}_pack"] = pack = RoundPack(
                format=target.name, width=kept_width, exponent_width=biased_width
            )
            rounding = pack.word & flags["used"].replicate(target.width)
            m.d.comb += [
                subnormal.exponent.eq(rebiased),
                subnormal.significand.eq(significand),
                pack.sign.eq(flags["sign"]),
                pack.exponent.eq(pipe.register(rebiased, name=f"{name}_biased_4")),
                pack.significand.eq(pipe.register(subnormal.shifted, name=f"{name}_significand_4")),
                pack.sticky.eq(pipe.register(sticky | subnormal.lost, name=f"{name}_sticky_4")),
                pack.is_inf.eq(flags["is_inf"]),
                pack.is_nan.eq(flags["is_nan"]),
                getattr(self, name).eq(pipe.register(rounding, name=f"{name}_5")),
            ]
        return m

    def _of_sum(self, m):
        """Sign, is_inf, is_nan, magnitude and exponent of a sum."""
        specials, infinite = self.specials, Signal()
        m.d.comb += infinite.eq(specials.positive_infinity | specials.negative_infinity)
        return (
            Mux(infinite, specials.negative_infinity, self.total[-1]),
            infinite,
            specials.nan | (specials.positive_infinity & specials.negative_infinity),
            Mux(self.total[-1], -self.total, self.total),
            self.exponent,
        )

    def _of_maximum(self, m):
        """The same of a maximum, whose key is 0 without any element and 1 for NaN."""
        fmt, key = self.parameters.float_format, self.maximum_key
        nothing = Signal()
        word_bits = Signal(fmt.width)
        m.d.comb += [nothing.eq(key == 0), word_bits.eq(Mux(key[-1], key ^ (1 << (fmt.width - 1)), ~key))]
        word = float_layout(fmt)(word_bits)
        is_subnormal = Signal()
        m.d.comb += is_subnormal.eq(word.exponent == 0)
        # The weight of the word's last bit, as a bus number's exponent code.
        offset = self.parameters.last_bit_exponent - fmt.bias - fmt.fraction_width
        return (
            word.sign | nothing,
            (word.exponent == fmt.max_exponent) | nothing,
            key == 1,
            Cat(word.fraction, ~is_subnormal),
            word.exponent + is_subnormal + offset,
        )
