"""Whether two FP16 numbers differ by more than a threshold, decided exactly and without rounding anything."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.arith.shifter import LogShifter
from hw.block import Block
from hw.formats import FP16
from hw.params import Parameters, flag
from hw.pipeline import Pipeline

__all__ = ["DECODED_THRESHOLD", "ThresholdDecoder", "DifferenceExceeds"]

DECODED_THRESHOLD = data.StructLayout({
    "significand": FP16.precision,
    "exponent": FP16.exponent_width,  # at least 1: subnormals share the exponent of 1
    "is_illegal": 1,
})


def _effective_exponent(word):
    """The exponent field with 0 read as 1, and whether the number is normal."""
    is_normal = word.exponent.any()
    return Cat(word.exponent[0] | ~is_normal, word.exponent[1:]), is_normal


class ThresholdDecoder(Block):
    """Splits an FP16 threshold once for all lanes.

    An infinite threshold becomes the largest significand at the exponent of infinity, which no sum of two finite
    numbers exceeds. A negative number or NaN is illegal; -0 is zero. Combinational.
    """

    members_doc = {"threshold": "FP16 word", "decoded": "significand, exponent from 1 on, is_illegal"}

    def __init__(self, **parameters):
        super().__init__(parameters, lambda p: {"threshold": In(FP16.layout), "decoded": Out(DECODED_THRESHOLD)})

    def circuit(self):
        m = Module()
        word = self.threshold
        exponent, is_normal = _effective_exponent(word)
        is_special = word.exponent.all()
        m.d.comb += [
            self.decoded.exponent.eq(exponent),
            self.decoded.significand.eq(Cat(word.fraction | is_special.replicate(FP16.fraction_width), is_normal)),
            self.decoded.is_illegal.eq(
                is_special & word.fraction.any() | word.sign & (is_normal | word.fraction.any())
            ),
        ]
        return m


@dataclass(frozen=True, kw_only=True)
class DifferenceExceedsParameters(Parameters):
    registered: bool = flag(True, doc="whether a register row cuts the decision in two")


class DifferenceExceeds(Block):
    """``exceeds = |current - reference| > threshold`` on the exact values; 1 if either is infinite or NaN.

    With x >= y the magnitudes and t the threshold, equal signs ask for ``x > t + y`` and opposite ones for
    ``x > t - y``. The right-hand side is formed at the larger exponent of t and y. Only if x's exponent is near that
    one (the same or one above; for ``t - y`` the same or one below) does it matter, otherwise the exponents decide.
    x then is a whole number of half units in the last place of that exponent, so that rounding the right-hand side
    down to such half units leaves the decision as it is: one shifter, no normalisation.

    Latency: one advance if registered, else combinational. ``threshold`` belongs to the beat of ``current``,
    ``threshold_later`` to the one that is behind the register row (the same beat where there is none).
    """

    Parameters = DifferenceExceedsParameters
    members_doc = {
        "advance": "enable of the register row",
        "current": "FP16 word",
        "reference": "FP16 word",
        "threshold": "decoded threshold of the first half",
        "threshold_later": "decoded threshold of the second half",
        "exceeds": "the decision",
    }

    def __init__(self, **parameters):
        super().__init__(parameters, lambda p: {
            "advance": In(1),
            "current": In(FP16.layout),
            "reference": In(FP16.layout),
            "threshold": In(DECODED_THRESHOLD),
            "threshold_later": In(DECODED_THRESHOLD),
            "exceeds": Out(1),
        })

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

        # Order by magnitude, and compare exponents.
        magnitude_width = FP16.width - 1
        swap, opposite = Signal(), Signal()
        larger, smaller = Signal(FP16.layout), Signal(FP16.layout)
        m.d.comb += [
            swap.eq(self.current.as_value()[:magnitude_width] < self.reference.as_value()[:magnitude_width]),
            opposite.eq(self.current.sign ^ self.reference.sign),
            larger.eq(Mux(swap, self.reference, self.current)),
            smaller.eq(Mux(swap, self.current, self.reference)),
        ]
        larger_exponent, larger_is_normal = _effective_exponent(larger)
        smaller_exponent, smaller_is_normal = _effective_exponent(smaller)
        above = Signal(range(-32, 32))  # of the threshold over the smaller number
        threshold_leads = Signal()
        lead = Signal(FP16.exponent_width)
        gap = Signal(range(-32, 32))  # of the larger number over the leading exponent
        m.d.comb += [
            above.eq(self.threshold.exponent - smaller_exponent),
            threshold_leads.eq(above >= 0),
            lead.eq(Mux(threshold_leads, self.threshold.exponent, smaller_exponent)),
            gap.eq(larger_exponent - lead),
        ]
        far_above = Mux(opposite, (gap > 0) | ~threshold_leads, gap > 1)
        is_above = keep(far_above | larger.exponent.all(), "is_above")
        is_near = keep(Mux(opposite, gap >= -1, gap >= 0), "is_near")
        # The exponents' distance is above, or -above = ~above + 1, whose 1 is a fixed shift of the threshold.
        amount = Signal(5)
        m.d.comb += amount.eq(above[:5] ^ (~threshold_leads).replicate(5))
        amount = keep(Cat(amount[:4] | amount[4].replicate(4)), "amount")
        steps = keep((gap + 1)[:2], "steps")
        opposite = keep(opposite, "is_opposite")
        threshold_leads = keep(threshold_leads, "leads")
        larger = keep(Cat(larger.fraction, larger_is_normal), "larger_significand")
        smaller = keep(Cat(smaller.fraction, smaller_is_normal), "smaller_significand")

        # Compare in half units of the leading exponent.
        threshold = self.threshold_later.significand
        m.submodules.align = align = LogShifter(width=FP16.precision + 1, amount_width=4, sticky=True)
        leading = Signal(FP16.precision)
        m.d.comb += [
            leading.eq(Mux(threshold_leads, threshold, smaller)),
            align.value.eq(Mux(threshold_leads, Cat(Const(0, 1), smaller), threshold)),
            align.amount.eq(amount),
        ]
        bound = Signal(range(-(1 << 13), 1 << 13))
        trailing = Signal(FP16.precision + 2)
        m.d.comb += [
            trailing.eq(Cat(align.shifted ^ opposite.replicate(len(align.shifted)), opposite)),
            bound.eq((leading << 1) + trailing.as_signed() + (opposite & ~align.lost)),
            self.exceeds.eq(is_above | is_near & ((larger << steps) > bound)),
        ]
        return m
