"""Rounding a normalised magnitude once to a floating-point word, ties to even."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from golden.spec.formats import FORMATS, float_format
from golden.spec.parameters import Parameters, choice, integer
from hw.arith.shifter import LogShifter
from hw.lib.block import Block

__all__ = ["SubnormalDistance", "SubnormalShift", "RoundPack", "FloatRounder"]

_GROUP = 4
"""Bits that a carry skips in one step."""


@dataclass(frozen=True, kw_only=True)
class SubnormalShiftParameters(Parameters):
    width: int = integer(24, low=1, high=1024, doc="bits of the significand")
    exponent_width: int = integer(10, low=2, high=24, doc="bits of the signed exponent")


class SubnormalDistance(Block):
    """Right shift that makes the biased exponent of a significand 1; 0 for normal numbers. Combinational."""

    Parameters = SubnormalShiftParameters
    members_doc = {
        "exponent": "signed biased exponent of the significand's top bit",
        "distance": "saturated where it is more than the significand's width",
    }

    @staticmethod
    def members(p):
        return {"exponent": In(signed(p.exponent_width)), "distance": Out(min(bits_for(p.width), p.exponent_width))}

    def circuit(self):
        m = Module()
        exact = Signal(self.exponent_width + 1)
        m.d.comb += exact.eq(1 - self.exponent)
        width = len(self.distance)
        with m.If(self.exponent >= 1):
            m.d.comb += self.distance.eq(0)
        with m.Else():
            m.d.comb += self.distance.eq(exact[:width] | exact[width:].any().replicate(width))
        return m


class SubnormalShift(Block):
    """A significand whose biased exponent is below 1 is shifted right until it is 1, as a subnormal. Combinational."""

    Parameters = SubnormalShiftParameters
    members_doc = {
        "exponent": "signed biased exponent of the significand's top bit",
        "significand": "top bit set, unless the number is zero",
        "shifted": "top bit set for normal numbers only",
        "lost": "whether a one was shifted out",
    }

    @staticmethod
    def members(p):
        return {
            "exponent": In(signed(p.exponent_width)),
            "significand": In(p.width),
            "shifted": Out(p.width),
            "lost": Out(1),
        }

    def circuit(self):
        m = Module()
        m.submodules.distance = distance = SubnormalDistance(width=self.width, exponent_width=self.exponent_width)
        m.submodules.shifter = shifter = LogShifter(width=self.width, amount_width=len(distance.distance), sticky=True)
        m.d.comb += [
            distance.exponent.eq(self.exponent),
            shifter.value.eq(self.significand),
            shifter.amount.eq(distance.distance),
            self.shifted.eq(shifter.shifted),
            self.lost.eq(shifter.lost),
        ]
        return m


@dataclass(frozen=True, kw_only=True)
class RoundPackParameters(Parameters):
    format: str = choice("fp16", *FORMATS, doc="format of the word")
    width: int = integer(24, low=2, high=1024, doc="bits of the significand before rounding")
    exponent_width: int = integer(10, low=2, high=24, doc="bits of the signed exponent")


class RoundPack(Block):
    """The word nearest to a number, ties to even; overflow gives infinity. Combinational.

    The hidden bit of the significand marks normal numbers: subnormals (see :class:`SubnormalShift`) and
    zeros come with the hidden bit clear and get the exponent field 0, whatever ``exponent`` is.
    """

    Parameters = RoundPackParameters
    members_doc = {
        "sign": "1 for negative",
        "exponent": "signed biased exponent of a normal number; may be above the format's largest",
        "significand": "the hidden bit, then the fraction and all bits below",
        "sticky": "whether there is a one below the significand",
        "is_inf": "infinity of that sign instead of the number",
        "is_nan": "the canonical NaN instead of the number",
        "word": "the result",
    }

    @staticmethod
    def members(p):
        return {
            "sign": In(1),
            "exponent": In(signed(p.exponent_width)),
            "significand": In(p.width),
            "sticky": In(1),
            "is_inf": In(1),
            "is_nan": In(1),
            "word": Out(float_format(p.format).width),
        }

    def circuit(self):
        m = Module()
        fmt = float_format(self.format)
        below = max(self.width - fmt.precision, 0)
        padded = Cat(Const(0, max(fmt.precision - self.width, 0)), self.significand)
        fraction, hidden = padded[below : below + fmt.fraction_width], padded[-1]
        half = padded[below - 1] if below else Const(0, 1)
        rest = (padded[: below - 1].any() if below > 1 else Const(0, 1)) | self.sticky
        up = Signal()
        m.d.comb += up.eq(half & (rest | fraction[0]))

        overflow = Signal()
        m.d.comb += overflow.eq(hidden & (self.exponent >= fmt.max_exponent))
        field = Signal(fmt.exponent_width)
        m.d.comb += field.eq(Mux(hidden, self.exponent[: fmt.exponent_width], 0))
        # A carry out of the fraction makes the exponent one larger, and the largest number infinite.
        exact = Signal(fmt.width - 1)
        rounded = Signal(fmt.width - 1)
        m.d.comb += [exact.eq(Cat(fraction, field)), rounded.eq(exact ^ _carries(m, exact, up))]
        magnitude = Signal(fmt.width - 1)
        m.d.comb += magnitude.eq(Mux(self.is_inf | overflow, fmt.infinity, rounded))
        m.d.comb += self.word.eq(Mux(self.is_nan, fmt.nan, Cat(magnitude, self.sign)))
        return m


def _carries(m, value, carry):
    """The bits of ``value`` that an addition of the late ``carry`` inverts: three gates from the carry."""
    carries, full = Signal.like(value, name="carries"), Const(1, 1)
    for low in range(0, len(value), _GROUP):
        group = value[low : low + _GROUP]
        into = Signal(name=f"carry_{low}")
        next_full = Signal(name=f"full_{low}")
        m.d.comb += [into.eq(carry & full), next_full.eq(full & group.all()), carries[low].eq(into)]
        m.d.comb += [carries[low + n].eq(into & group[:n].all()) for n in range(1, len(group))]
        full = next_full
    return carries


class FloatRounder(Block):
    """:class:`SubnormalShift` and :class:`RoundPack` together: any exponent, one rounding. Combinational."""

    Parameters = RoundPackParameters
    members_doc = RoundPack.members_doc | {
        "exponent": "signed biased exponent of the significand's top bit, any value",
        "significand": "top bit set, unless the number is zero",
    }

    members = staticmethod(RoundPack.members)

    def circuit(self):
        m = Module()
        # The bit below the fraction must stay separate from the lost ones.
        width = max(self.width, float_format(self.format).precision + 1)
        m.submodules.subnormal = subnormal = SubnormalShift(width=width, exponent_width=self.exponent_width)
        m.submodules.pack = pack = RoundPack(format=self.format, width=width, exponent_width=self.exponent_width)
        m.d.comb += [
            subnormal.exponent.eq(self.exponent),
            subnormal.significand.eq(Cat(Const(0, width - self.width), self.significand)),
            pack.sign.eq(self.sign),
            pack.exponent.eq(self.exponent),
            pack.significand.eq(subnormal.shifted),
            pack.sticky.eq(self.sticky | subnormal.lost),
            pack.is_inf.eq(self.is_inf),
            pack.is_nan.eq(self.is_nan),
            self.word.eq(pack.word),
        ]
        return m
