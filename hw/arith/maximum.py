"""The largest of many numbers, found digit by digit from the top."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.parameters import Parameters, integer
from hw.lib.block import Block

__all__ = ["DigitMaximum"]


@dataclass(frozen=True, kw_only=True)
class DigitMaximumParameters(Parameters):
    n: int = integer(16, low=1, high=4096, doc="numbers")
    width: int = integer(6, low=1, high=64, doc="bits of a number")


class DigitMaximum(Block):
    """The maximum of the numbers that are still in the running, and who is still in the running then. Combinational.

    Digits of two bits are decided one after the other: the OR over all candidates gives the largest digit, and those
    with a smaller one drop out. That is two gates and an OR tree a digit, where a tree of comparators would have a
    carry chain and a multiplexer on each of its log2(n) levels; and it can be cut between digits.
    """

    Parameters = DigitMaximumParameters
    members_doc = {
        "plane": "one port a bit of the numbers, all numbers' bits side by side",
        "candidates": "which numbers take part; if none does, the maximum is 0",
        "maximum": "the largest of them",
        "largest": "which of them are equal to it",
    }

    @staticmethod
    def members(p):
        return {"plane": In(p.n).array(p.width), "candidates": In(p.n), "maximum": Out(p.width), "largest": Out(p.n)}

    def circuit(self):
        m = Module()
        candidates = self.candidates
        top = self.width
        while top:
            bottom = max(0, top - 2)
            low, low_bit = self.plane[bottom], self.maximum[bottom]
            left = Signal(self.n, name=f"candidates_{bottom}")
            if top - bottom == 2:
                high, high_bit = self.plane[top - 1], self.maximum[top - 1]
                m.d.comb += high_bit.eq((candidates & high).any())
                m.d.comb += low_bit.eq(Mux(high_bit, (candidates & high & low).any(), (candidates & low).any()))
                m.d.comb += left.eq(
                    candidates & (high | (~high_bit).replicate(self.n)) & (low | (~low_bit).replicate(self.n))
                )
            else:
                m.d.comb += low_bit.eq((candidates & low).any())
                m.d.comb += left.eq(candidates & (low | (~low_bit).replicate(self.n)))
            candidates, top = left, bottom
        m.d.comb += self.largest.eq(candidates)
        return m
