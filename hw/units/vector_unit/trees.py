"""Pipelined trees that take a beat a clock: the sum and the maximum of many numbers, and a bus made of them."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.parameters import Parameters, integer
from hw.arith.compressor import Heap, n_levels
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.vector_unit.arithmetic import SPECIALS

__all__ = ["SumTree", "MaximumTree", "ReductionBus", "tree_latency"]

_LEVELS_BEFORE_ADDITION = 2
_LEVELS_PER_STAGE = 6


def tree_latency(n_inputs):
    """Register stages of a sum: carry-save stages where the adders are too many levels deep, and the addition."""
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
        "advance": "registers move on",
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
    members_doc = {"advance": "registers move on", "values": "unsigned numbers", "largest": "the largest of them"}

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


@dataclass(frozen=True, kw_only=True)
class ReductionBusParameters(Parameters):
    n_inputs: int = integer(4, low=1, high=128, doc="accumulators on the bus")
    width: int = integer(47, low=1, high=64, doc="bits of an aligned accumulator")
    exponent_width: int = integer(7, low=1, high=16, doc="bits of an accumulator's exponent code")
    key_width: int = integer(16, low=1, high=32, doc="bits of a maximum's key")


class ReductionBus(Block):
    """The inter-engine (or inter-lane) bus: largest exponent, sum, specials and largest key of n accumulators.

    Each of the four paths has its own latency, in advances: ``exponents`` to ``largest_exponent`` 2, ``specials`` to
    ``any_special`` 1, ``sums`` to ``total`` and ``keys`` to ``largest_key`` :func:`tree_latency`. The accumulators are
    aligned to ``largest_exponent`` outside, on their way from the first path to the third.
    """

    Parameters = ReductionBusParameters
    members_doc = {
        "advance": "registers move on",
        "exponents": "exponent codes of the accumulators",
        "largest_exponent": "the largest of them",
        "specials": "specials of the accumulators",
        "any_special": "their union",
        "sums": "aligned accumulators, in two's complement",
        "total": "their sum",
        "keys": "keys of the lanes' maxima",
        "largest_key": "the largest of them",
    }

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "exponents": In(data.ArrayLayout(p.exponent_width, p.n_inputs)),
            "largest_exponent": Out(p.exponent_width),
            "specials": In(data.ArrayLayout(SPECIALS, p.n_inputs)),
            "any_special": Out(SPECIALS),
            "sums": In(data.ArrayLayout(signed(p.width), p.n_inputs)),
            "total": Out(signed(p.width + ceil_log2(p.n_inputs))),
            "keys": In(data.ArrayLayout(p.key_width, p.n_inputs)),
            "largest_key": Out(p.key_width),
        }

    exponent_latency = 2
    special_latency = 1

    @property
    def latency(self):
        """Of the sums and of the keys."""
        return tree_latency(self.n_inputs)

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        m.submodules.exponent_tree = exponents = MaximumTree(
            n_inputs=self.n_inputs, width=self.exponent_width, n_stages=self.exponent_latency
        )
        m.submodules.sum_tree = sums = SumTree(n_inputs=self.n_inputs, width=self.width)
        m.submodules.key_tree = keys = MaximumTree(n_inputs=self.n_inputs, width=self.key_width, n_stages=self.latency)
        m.d.comb += [
            exponents.advance.eq(self.advance),
            exponents.values.eq(self.exponents),
            self.largest_exponent.eq(exponents.largest),
            sums.advance.eq(self.advance),
            sums.addends.eq(self.sums),
            self.total.eq(sums.total),
            keys.advance.eq(self.advance),
            keys.values.eq(self.keys),
            self.largest_key.eq(keys.largest),
        ]
        union = Signal(SPECIALS)
        for name in SPECIALS.members:
            m.d.comb += union[name].eq(_any(special[name] for special in self.specials))
        m.d.comb += self.any_special.eq(pipe.register(union, name="union"))
        return m


def _any(bits):
    result = 0
    for bit in bits:
        result = result | bit
    return result
