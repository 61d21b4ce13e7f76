"""Pipelined sum and maximum trees, one beat a clock."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.parameters import Parameters, integer
from hw.arith.compressor import Heap, n_levels
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline

__all__ = ["SumTree", "MaximumTree", "tree_latency"]

_LEVELS_BEFORE_ADDITION = 2
_LEVELS_PER_STAGE = 6


def tree_latency(n_inputs):
    """Register stages of a sum: carry-save stages if the adders have too many levels, and the final addition."""
    if n_inputs == 1:
        return 0
    levels = n_levels(n_inputs)
    return 1 if levels <= _LEVELS_BEFORE_ADDITION else 1 + -(-levels // _LEVELS_PER_STAGE)


@dataclass(frozen=True, kw_only=True)
class SumTreeParameters(Parameters):
    n_inputs: int = integer(4, low=1, high=256, doc="numbers to add")
    width: int = integer(47, low=1, high=64, doc="bits of a number, in two's complement")


class SumTree(Block):
    """``total`` is the exact sum of the inputs, ``latency`` advances later: full adders, then one addition."""

    Parameters = SumTreeParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "addends": "numbers in two's complement",
        "total": "their sum, wide enough for any",
    }

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "addends": In(data.ArrayLayout(signed(p.width), p.n_inputs)),
            "total": Out(signed(p.width + ceil_log2(p.n_inputs))),
        }

    @property
    def latency(self):
        return tree_latency(self.n_inputs)

    def circuit(self):
        m = Module()
        if self.n_inputs == 1:
            m.d.comb += self.total.eq(self.addends[0])
            return m
        pipe = Pipeline(m, advance=self.advance)
        heap = Heap(m, "heap", len(self.total))
        for addend in self.addends:
            heap.add_signed(addend)
        compressing = self.latency - 1
        for stage in range(1, compressing + 1):
            rows = heap.reduce(levels=-(-n_levels(self.n_inputs) // compressing))
            heap = Heap(m, f"heap_{stage}", len(self.total))
            heap.add_rows(
                [(offset, pipe.register(row, name=f"rows_{stage}_{index}")) for index, (offset, row) in enumerate(rows)]
            )
        m.d.comb += self.total.eq(pipe.register(heap.total(), name="total_register"))
        return m


@dataclass(frozen=True, kw_only=True)
class MaximumTreeParameters(Parameters):
    n_inputs: int = integer(4, low=1, high=128, doc="numbers to compare")
    width: int = integer(7, low=1, high=64, doc="bits of a number")
    n_stages: int = integer(2, low=0, high=8, doc="register rows, spread over the levels; the last one is at the end")


class MaximumTree(Block):
    """``largest`` is the largest of unsigned inputs, ``n_stages`` advances later: a balanced tree of comparators."""

    Parameters = MaximumTreeParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "values": "unsigned numbers",
        "largest": "the largest of them",
    }

    @staticmethod
    def members(p):
        return {"advance": In(1), "values": In(data.ArrayLayout(p.width, p.n_inputs)), "largest": Out(p.width)}

    @property
    def latency(self):
        return self.n_stages

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        levels = max(1, ceil_log2(self.n_inputs))
        ends = [-(-levels * stage // self.n_stages) for stage in range(1, self.n_stages + 1)]
        values = list(self.values)
        for level in range(1, levels + 1):
            values = [
                self._larger(m, values[index : index + 2], f"maximum_{level}_{index // 2}")
                for index in range(0, len(values), 2)
            ]
            for count in range(ends.count(level)):
                values = [
                    pipe.register(value, name=f"register_{level}_{count}_{index}") for index, value in enumerate(values)
                ]
        m.d.comb += self.largest.eq(values[0])
        return m

    def _larger(self, m, pair, name):
        if len(pair) == 1:
            return pair[0]
        larger = Signal(self.width, name=name)
        m.d.comb += larger.eq(Mux(pair[0] < pair[1], pair[1], pair[0]))
        return larger
