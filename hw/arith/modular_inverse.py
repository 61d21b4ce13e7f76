"""The inverse of an odd number modulo a power of two, one bit a clock."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.parameters import Parameters, integer
from hw.lib.block import Block


@dataclass(frozen=True, kw_only=True)
class ModularInverseParameters(Parameters):
    width: int = integer(8, low=1, high=64, doc="bits of the number and of its inverse")


class ModularInverse(Block):
    """``inverse = number**-1 mod 2**width`` for an odd number, recomputed whenever the number changes.

    Division of 1 by the number, least significant bit first: the remainder's lowest bit is the next quotient bit; if it
    is set the number is subtracted, and the even remainder is halved. One subtractor, no multiplier.

    ``ready`` indicates that ``inverse`` belongs to the current ``number``; it falls in the clock in which the number
    changes and rises width + 1 clocks later. The number may change at any time, also while ready is 0.
    """

    Parameters = ModularInverseParameters
    members_doc = {
        "number": "odd; a change restarts the division",
        "inverse": "number * inverse = 1 modulo 2**width, while ready is 1",
        "ready": "the inverse is that of the current number",
    }

    @staticmethod
    def members(p):
        return {"number": In(p.width), "inverse": Out(p.width), "ready": Out(1)}

    def circuit(self):
        m = Module()
        divisor = Signal(self.width, reset_less=True)
        remainder = Signal(max(1, self.width - 1), reset_less=True)
        # Bits are shifted in at the top after a marker; the division ends when the marker reaches the bottom.
        quotient = Signal(self.width + 1, reset_less=True)
        loaded = Signal()
        changed = Signal()
        finished = quotient[0]
        subtrahend = Signal(self.width)
        difference = Signal(self.width)
        m.d.comb += [
            changed.eq(~loaded | (divisor != self.number)),
            subtrahend.eq(divisor & remainder[0].replicate(self.width)),
            difference.eq(remainder - subtrahend),
            self.inverse.eq(quotient[1:]),
            self.ready.eq(finished & ~changed),
        ]
        with m.If(changed):
            m.d.sync += [
                loaded.eq(1),
                divisor.eq(self.number),
                remainder.eq(1),
                quotient.eq(Const(1 << self.width, self.width + 1)),
            ]
        with m.Elif(~finished):
            m.d.sync += [remainder.eq(difference[1:]), quotient.eq(Cat(quotient[1:], remainder[0]))]
        return m
