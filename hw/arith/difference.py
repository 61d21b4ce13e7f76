"""Whether two FP16 numbers differ by more than a threshold, decided exactly, without rounding."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.formats import FP16
from golden.spec.parameters import Parameters, flag
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline

__all__ = ["DECODED_THRESHOLD", "ThresholdDecoder", "DifferenceExceeds"]

DECODED_THRESHOLD = data.StructLayout(
    {
        "significand": FP16.precision,
        "exponent": FP16.exponent_width,  # at least 1: subnormals share the exponent of 1
        "is_illegal": 1,
    }
)


_SUM_WIDTH = FP16.precision + 3  # of twice a significand, and of four times one, with a sign
_GAP = data.StructLayout({"above": 1, "one_above": 1, "equal": 1, "one_below": 1})
_PLACE = data.StructLayout({"gap": _GAP, "amount": 4})


def effective_exponent(word):
    """The exponent field with 0 read as 1, and whether the number is normal."""
    is_normal = word.exponent.any()
    return Cat(word.exponent[0] | ~is_normal, word.exponent[1:]), is_normal


class ThresholdDecoder(Block):
    """Splits an FP16 threshold once for all lanes.

    An infinite threshold becomes the largest significand at the exponent of infinity, which no sum of two finite
    numbers exceeds. A negative number or NaN is illegal; -0 is zero. Combinational.
    """

    members_doc = {"threshold": "FP16 word", "decoded": "significand, exponent from 1 on, is_illegal"}

    @staticmethod
    def members(p):
        return {"threshold": In(float_layout(FP16)), "decoded": Out(DECODED_THRESHOLD)}

    def circuit(self):
        m = Module()
        word = self.threshold
        exponent, is_normal = effective_exponent(word)
        is_special = word.exponent.all()
        m.d.comb += [
            self.decoded.exponent.eq(exponent),
            self.decoded.significand.eq(Cat(word.fraction | is_special.replicate(FP16.fraction_width), is_normal)),
            self.decoded.is_illegal.eq(
                is_special & word.fraction.any() | word.sign & (is_normal | word.fraction.any())
            ),
        ]
        return m


def _carry_out(m, generate, propagate):
    """The carry out of an addition, by a tree over generate and propagate bits."""
    missing = (1 << ceil_log2(len(generate))) - len(generate)
    generate = Cat(generate, Const(0, missing))
    propagate = Cat(propagate, Const(-1, missing))
    while len(generate) > 1:
        half = len(generate) // 2
        either = Signal(half, name=f"propagate_{half}")
        carry = Signal(half, name=f"generate_{half}")
        m.d.comb += [
            carry.eq(generate[1::2] | propagate[1::2] & generate[::2]),
            either.eq(propagate[1::2] & propagate[::2]),
        ]
        generate, propagate = carry, either
    return generate


@dataclass(frozen=True, kw_only=True)
class DifferenceExceedsParameters(Parameters):
    registered: bool = flag(True, doc="whether a register row splits the decision into two stages")


class DifferenceExceeds(Block):
    """``exceeds = |current - previous| > threshold`` on the exact values; 1 if either is infinite or NaN.

    With x >= y the magnitudes and t the threshold, the decision is ``x > t + y`` for equal signs and ``x > t - y`` for
    opposite ones. The right-hand side is computed at the larger exponent of t and y. It only matters if x's exponent is
    near that one (the same or one above; for ``t - y`` the same or one below), otherwise the exponents decide. x then
    is a multiple of half a unit in the last place of that exponent, so that rounding the right-hand side down to such
    half units does not change the decision: one shifter, no normalisation.

    Latency: one advance if registered, else combinational. ``threshold`` belongs to the beat of ``current``,
    ``threshold_later`` to the one that is behind the register row (the same beat where there is none).
    """

    Parameters = DifferenceExceedsParameters
    members_doc = {
        "advance": "enable of the register row",
        "current": "FP16 word",
        "previous": "FP16 word",
        "threshold": "decoded threshold of the first half",
        "threshold_later": "decoded threshold of the second half",
        "exceeds": "the decision",
    }

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "current": In(float_layout(FP16)),
            "previous": In(float_layout(FP16)),
            "threshold": In(DECODED_THRESHOLD),
            "threshold_later": In(DECODED_THRESHOLD),
            "exceeds": Out(1),
        }

    @property
    def latency(self):
        return int(self.registered)

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)

        def keep(value, name):
            named = Signal.like(value, name=f"{name}_early")
            m.d.comb += named.eq(value)
            return pipe.register(named, name=name) if self.registered else named

        # Compare the exponents of both numbers with each other and with the threshold's, then order by magnitude.
        current_exponent, current_is_normal = effective_exponent(self.current)
        previous_exponent, previous_is_normal = effective_exponent(self.previous)
        current_significand = Cat(self.current.fraction, current_is_normal)
        previous_significand = Cat(self.previous.fraction, previous_is_normal)
        apart = Signal(range(-32, 32))
        swap = Signal()
        opposite = Signal()
        m.d.comb += [
            apart.eq(current_exponent - previous_exponent),
            swap.eq((apart < 0) | (apart == 0) & (current_significand < previous_significand)),
            opposite.eq(self.current.sign ^ self.previous.sign),
        ]
        current_place = self._place(m, current_exponent, "current")
        previous_place = self._place(m, previous_exponent, "previous")
        larger = Signal.like(current_place, name="larger_place")
        smaller = Signal.like(current_place, name="smaller_place")
        m.d.comb += [
            larger.eq(Mux(swap, previous_place, current_place)),
            smaller.eq(Mux(swap, current_place, previous_place)),
        ]

        # Difference between the larger exponent and the leading one, the maximum of the threshold's and the smaller's.
        leads = ~smaller.gap.above
        gap = Signal(_GAP)
        with m.If(leads):
            m.d.comb += gap.eq(larger.gap)
        with m.Else():
            m.d.comb += [
                gap.equal.eq(apart == 0),
                gap.one_above.eq((apart == 1) | (apart == -1)),
                gap.above.eq(apart != 0),
            ]
        is_special = self.current.exponent.all() | self.previous.exponent.all()
        wins = Mux(opposite, gap.above | ~leads, gap.above & ~gap.one_above)
        is_above = keep(wins | is_special, "is_above")
        is_near = keep(gap.equal | Mux(opposite, gap.one_below, gap.one_above), "is_near")
        steps = keep(Cat(gap.equal, gap.one_above), "steps")
        amount = keep(smaller.amount, "amount")
        opposite = keep(opposite, "is_opposite")
        threshold_leads = keep(leads, "threshold_leads")
        larger = keep(Mux(swap, previous_significand, current_significand), "larger_significand")
        smaller = keep(Mux(swap, current_significand, previous_significand), "smaller_significand")

        # Compare in half units of the leading exponent: is bound - larger * 2**steps negative?
        threshold = self.threshold_later.significand
        m.submodules.align = align = LogShifter(width=FP16.precision + 1, amount_width=4, sticky=True)
        leading = Signal(FP16.precision)
        m.d.comb += [
            leading.eq(Mux(threshold_leads, threshold, smaller)),
            align.value.eq(Mux(threshold_leads, Cat(Const(0, 1), smaller), threshold)),
            align.amount.eq(amount),
        ]
        twice_leading = Signal(_SUM_WIDTH)
        trailing = Signal(_SUM_WIDTH)
        scaled_larger = Signal(_SUM_WIDTH)
        either = Signal(_SUM_WIDTH)
        carries = Signal(_SUM_WIDTH)
        rest = Signal(_SUM_WIDTH)
        m.d.comb += [
            twice_leading.eq(leading << 1),
            trailing.eq(Cat(align.shifted, Const(0, _SUM_WIDTH - len(align.shifted))) ^ opposite.replicate(_SUM_WIDTH)),
            scaled_larger.eq(larger << steps),
            either.eq(twice_leading ^ ~scaled_larger),
            carries.eq(Cat(opposite & ~align.lost, twice_leading & ~scaled_larger | trailing & either)),
            rest.eq(either ^ trailing),
        ]
        # The sign of rest + carries + 1.
        carry = _carry_out(m, Cat(1, (rest & carries)[:-1]), Cat(1, (rest | carries)[:-1]))
        m.d.comb += self.exceeds.eq(is_above | is_near & (rest[-1] ^ carries[-1] ^ carry))
        return m

    def _place(self, m, exponent, name):
        """Position of an exponent relative to the threshold's."""
        distance = Signal(range(-32, 32), name=f"{name}_distance")
        place = Signal(_PLACE, name=f"{name}_place")
        m.d.comb += [
            distance.eq(self.threshold.exponent - exponent),
            place.gap.equal.eq(distance == 0),
            place.gap.one_above.eq(distance == -1),
            place.gap.one_below.eq(distance == 1),
            place.gap.above.eq(distance < 0),
            # The distance to shift by is -distance = ~distance + 1, whose 1 is a fixed shift of the threshold.
            place.amount.eq(distance[:4] ^ (distance < 0).replicate(4) | (distance[4] ^ (distance < 0)).replicate(4)),
        ]
        return place
