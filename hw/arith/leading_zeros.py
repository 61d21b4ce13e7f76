"""Counting leading zeros with a tree."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from golden.spec.parameters import Parameters, integer
from hw.lib.block import Block

__all__ = ["LeadingZeroCounter"]


@dataclass(frozen=True, kw_only=True)
class LeadingZeroCounterParameters(Parameters):
    width: int = integer(32, low=1, high=4096, doc="bits of the value")


class LeadingZeroCounter(Block):
    """``count`` is the number of zeros above the most significant one, ``width`` where there is none. Combinational."""

    Parameters = LeadingZeroCounterParameters
    members_doc = {"value": "unsigned", "count": "0 to width"}

    @staticmethod
    def members(p):
        return {"value": In(p.width), "count": Out(bits_for(p.width))}

    def circuit(self):
        m = Module()
        # Ones below the value limit the count to its width.
        padding = (1 << bits_for(self.width)) // (1 if self.width & (self.width - 1) else 2) - self.width
        padded = Cat(Const((1 << padding) - 1, padding), self.value)
        # A node is (whether its bits are all zero, the count where they are not), most significant node first.
        nodes = [(~bit, Const(0, 0)) for bit in reversed(padded)]
        level = 0
        while len(nodes) > 1:
            pairs = []
            for index in range(0, len(nodes), 2):
                (empty, count), (next_empty, next_count) = nodes[index : index + 2]
                both = Signal(name=f"empty_{level}_{index // 2}")
                joined = Signal(level + 1, name=f"count_{level}_{index // 2}")
                m.d.comb += both.eq(empty & next_empty)
                m.d.comb += joined.eq(Cat(Mux(empty, next_count, count), empty))
                pairs.append((both, joined))
            nodes, level = pairs, level + 1
        empty, count = nodes[0]
        if padding:
            m.d.comb += self.count.eq(count)
        else:
            m.d.comb += self.count.eq(Mux(empty, self.width, count))
        return m
