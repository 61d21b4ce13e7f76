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
    """The maximum of the candidates, and which candidates are equal to it. Combinational.

    Digits of two bits are decided from the top: an OR over all candidates gives the largest digit, and candidates with
    a smaller digit are eliminated. The delay is two gates and an OR tree for each digit, where a comparator tree has a
    carry chain and a multiplexer on each of its log2(n) levels; and it can be pipelined between digits.
    """

    Parameters = DigitMaximumParameters
    members_doc = {
        "plane": "one port for each bit position, with that bit of all numbers",
        "candidates": "which numbers are compared; if none, the maximum is 0",
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
