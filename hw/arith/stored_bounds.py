"""Whether an FP16 number is outside reference ± threshold, by two integer comparisons with stored bounds."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from hw.arith.difference import DECODED_THRESHOLD, effective_exponent
from hw.arith.end_around import prefix_tree
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline

__all__ = ["STORED_BOUNDS", "BoundsMaker", "OutsideBounds"]

STORED_BOUNDS = data.StructLayout(
    {
        "outer": FP16.width - 1,  # the largest magnitude, with the reference's sign, that is not above
        "inner": FP16.width - 1,  # with the reference's sign: the largest that is below; with the other: not beyond
        "keeps_sign": 1,  # whether only numbers with the reference's sign are inside
        "sign": 1,  # of the reference
    }
)
"""Magnitudes are exponent and fraction of FP16 as one integer, which orders them."""

_LARGEST = FP16.infinity - 1
_WIDTH = FP16.precision + 1  # of twice a significand


class OutsideBounds(Block):
    """``outside = |current - reference| > threshold`` from the bounds that :class:`BoundsMaker` made. Combinational.

    Infinities and NaNs are outside: their magnitude exceeds every bound.
    """

    members_doc = {"current": "FP16 word", "bounds": "of the reference and the threshold", "outside": "the decision"}

    @staticmethod
    def members(p):
        return {"current": In(FP16.width), "bounds": In(STORED_BOUNDS), "outside": Out(1)}

    def circuit(self):
        m = Module()
        magnitude = self.current[:-1]
        beyond_outer = Signal()
        beyond_inner = Signal()
        other_sign = Signal()
        m.d.comb += [
            beyond_outer.eq(magnitude > self.bounds.outer),
            beyond_inner.eq(magnitude > self.bounds.inner),
            other_sign.eq(self.current[-1] ^ self.bounds.sign),
            self.outside.eq(
                Mux(
                    other_sign,
                    self.bounds.keeps_sign | beyond_inner,
                    beyond_outer | self.bounds.keeps_sign & ~beyond_inner,
                )
            ),
        ]
        return m


class BoundsMaker(Block):
    """The bounds of the numbers within ``threshold`` of ``reference``, for :class:`OutsideBounds`.

    Let r be the reference's magnitude, t the threshold. ``outer = RD(r + t)``, rounded down to FP16. If r > t, the
    interval does not reach the other sign, and ``inner`` is the largest number below r - t; else it is RD(t - r). Both
    are at most the largest finite number. An infinite or NaN reference, or an illegal threshold, gives bounds
    that exclude everything: ``keeps_sign`` and the largest ``inner``.

    The largest number below r - t is that difference minus an infinitesimal, rounded down: the subtraction borrows half
    a unit in the last place, and normalisation shifts in ones.

    Latency: two advances.
    """

    latency = 2
    members_doc = {
        "advance": "enable of the register rows",
        "reference": "FP16 word",
        "threshold": "decoded threshold, beside the reference",
        "bounds": "of that reference",
    }

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "reference": In(float_layout(FP16)),
            "threshold": In(DECODED_THRESHOLD),
            "bounds": Out(STORED_BOUNDS),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        threshold = self.threshold

        # Order reference and threshold.
        exponent, is_normal = effective_exponent(self.reference)
        significand = Cat(self.reference.fraction, is_normal)
        exceeds = Signal()
        apart = Signal(range(-32, 32))
        distance = Signal(FP16.exponent_width)
        m.d.comb += [
            exceeds.eq(Cat(significand, exponent) > Cat(threshold.significand, threshold.exponent)),
            apart.eq(exponent - threshold.exponent),
            distance.eq(Mux(exceeds, apart, -apart)),
        ]
        # The low bits of the distance arrive first: the shift begins with them.
        m.submodules.begin = begin = LogShifter(width=_WIDTH, amount_width=2, sticky=True)
        m.d.comb += [
            begin.value.eq(Mux(exceeds, threshold.significand, significand) << 1),
            begin.amount.eq(distance[:2]),
        ]
        smaller = pipe.register(begin.shifted, name="smaller")
        lost = pipe.register(begin.lost, name="lost")
        larger = pipe.register(Mux(exceeds, significand, threshold.significand), name="larger")
        exponent = pipe.register(Mux(exceeds, exponent, threshold.exponent), name="exponent")
        # Any distance beyond the width shifts everything out.
        amount = pipe.register(distance[2:4] | distance[4].replicate(2), name="amount")
        keeps_sign = pipe.register(exceeds, name="keeps_sign")
        sign = pipe.register(self.reference.sign, name="sign")
        is_open = pipe.register(self.reference.exponent.all() | threshold.is_illegal, name="is_open")

        # Sum, and difference in half units in the last place of the larger one.
        m.submodules.align = align = LogShifter(width=_WIDTH, amount_width=4, sticky=True)
        m.d.comb += [align.value.eq(smaller), align.amount.eq(amount << 2)]
        total = Signal(_WIDTH)
        difference = Signal(_WIDTH)
        m.d.comb += total.eq(larger + align.shifted[1:])
        minuend = Signal(_WIDTH)
        subtrahend = Signal(_WIDTH)
        m.d.comb += [minuend.eq(larger << 1), subtrahend.eq(~align.shifted)]
        generate, propagate = prefix_tree(m, minuend & subtrahend, minuend | subtrahend)
        # The lost bits arrive last and are the carry in.
        carries = generate | propagate & (~(lost | align.lost | keeps_sign)).replicate(_WIDTH)
        m.d.comb += difference.eq(minuend ^ subtrahend ^ Cat(~(lost | align.lost | keeps_sign), carries[:-1]))
        total = pipe.register(total, name="total")
        difference = pipe.register(difference, name="difference")
        exponent = pipe.register(exponent, name="exponent_later")
        keeps_sign = pipe.register(keeps_sign, name="keeps_sign_later")
        sign = pipe.register(sign, name="sign_later")
        is_open = pipe.register(is_open, name="is_open_later")

        # Round down: the sum needs at most one shift to the right, the difference shifts to the left until it is
        # normal or its exponent is 1, where a stop bit ends the count.
        outer = Signal(FP16.width)
        overflows = total[-1]
        m.d.comb += outer.eq(
            Cat(Mux(overflows, total[1:-1], total[:-2]), Mux(overflows, exponent + 1, Mux(total[-2], exponent, 0)))
        )
        m.submodules.count = count = LeadingZeroCounter(width=_WIDTH)
        m.submodules.normalise = normalise = LogShifter(
            width=2 * _WIDTH, amount_width=len(count.count), direction="left", small_steps_first=False
        )
        stop = Cat(exponent == _WIDTH - place for place in range(_WIDTH))
        m.d.comb += [
            count.value.eq(difference | stop),
            normalise.value.eq(Cat(keeps_sign.replicate(_WIDTH), difference)),
            normalise.amount.eq(count.count),
        ]
        inner = Signal(FP16.width - 1)
        normal = normalise.shifted[_WIDTH:]
        m.d.comb += inner.eq(Cat(normal[1:-1], Mux(normal[-1], exponent - count.count, 0)[: FP16.exponent_width]))
        m.d.comb += [
            self.bounds.outer.eq(Mux(outer > _LARGEST, _LARGEST, outer)[:-1]),
            self.bounds.inner.eq(Mux(inner > _LARGEST, _LARGEST, inner) | is_open.replicate(FP16.width - 1)),
            self.bounds.keeps_sign.eq(keeps_sign | is_open),
            self.bounds.sign.eq(sign),
        ]
        return m
