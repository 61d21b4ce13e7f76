"""QuantiserLane: one FP16 word to an integer of at most 127 in magnitude."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from golden.spec.mixed_precision import CEILINGS
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.units.quantizer_unit.layouts import VALUE

__all__ = ["QuantiserLane"]

_DISTANCE_WIDTH = 7
_GUARD = 1
"""Fraction bits of the shifter's output; those below are one sticky bit."""


class QuantiserLane(Block):
    """``value = round(word * 2**exponent)``, ties to even, clipped to 127 in magnitude. Combinational.

    ``distance = 25 - exponent`` is the same for a vector, so that the significand is shifted right by ``distance -
    field``.
    """

    members_doc = {"word": "finite FP16 word", "distance": "25 - exponent of the scale", "value": "two's complement"}

    @staticmethod
    def members(p):
        return {"word": In(FP16.width), "distance": In(_DISTANCE_WIDTH), "value": Out(VALUE)}

    def circuit(self):
        m = Module()
        sign, field = self.word[-1], self.word[FP16.fraction_width : -1]
        is_normal = field != 0
        significand = Cat(self.word[: FP16.fraction_width], is_normal)
        right = Signal(_DISTANCE_WIDTH + 1)
        m.d.comb += right.eq(self.distance - Mux(is_normal, field, 1))
        # A normal number shifted by fewer than 4 bits is at least 128; subnormal ones are never shifted left.
        is_left = right[-1]
        width = FP16.precision + _GUARD
        m.submodules.shifter = shifter = LogShifter(width=width, amount_width=4, sticky=True)
        is_far = right[4:_DISTANCE_WIDTH].any() & ~is_left
        m.d.comb += [shifter.value.eq(Cat(Const(0, _GUARD), significand)), shifter.amount.eq(right[:4])]
        whole = shifter.shifted[_GUARD:]
        top = VALUE.width - 1  # bits of the largest magnitude
        up = Signal()
        m.d.comb += up.eq(shifter.shifted[0] & (shifter.lost | whole[0]) & ~is_far)
        # A negative value is the complement plus 1, which rounding up cancels: one increment for both.
        magnitude = Mux(is_far, 0, whole[:top])
        is_clipped = ~is_far & (is_left | whole[top:].any() | (whole[:top].all() & up))
        low = Signal(VALUE.width)
        m.d.comb += low.eq((magnitude ^ sign.replicate(VALUE.width)) + (sign ^ up))
        limit = Mux(sign, -CEILINGS[-1], CEILINGS[-1])
        m.d.comb += self.value.eq(Mux(is_clipped, limit, low.as_signed()))
        return m
