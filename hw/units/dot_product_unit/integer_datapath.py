"""The INT8 dot product: one bit heap of partial products, built in groups of lanes, and a 32-bit accumulator."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.parameters import Parameters, integer
from hw.arith.compressor import Heap, n_levels, reduced_heights, row_spans
from hw.arith.multiplier import add_signed_product, signed_product_constant
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline

__all__ = ["IntegerPlan", "IntegerDatapath", "ProductGroup"]

FACTOR_WIDTH = 8
SUM_WIDTH = 32
GROUP = 16
"""Lanes whose partial products share one module."""

# Levels of full adders of a stage: alone, and before the carry propagation.
LEVELS_ALONE = 7
LEVELS_BEFORE_TOTAL = 4
GROUP_HEIGHT = 9


@dataclass(frozen=True, kw_only=True)
class ProductGroupParameters(Parameters):
    n_lanes: int = integer(16, low=1, high=GROUP, doc="products")
    width: int = integer(20, low=16, high=SUM_WIDTH, doc="bits of the sum, modulo which the rows are right")


class ProductGroup(Block):
    """The sum of some products of signed bytes as rows of no more than 9 bits a column, modulo ``2**width``.

    Timing: the words are registered, and so are the rows; they come two advances after the words. The attribute
    ``spans`` has offset and width of each row.
    """

    Parameters = ProductGroupParameters
    members_doc = {
        "advance": "lock-step enable",
        "query_words": "n_lanes bytes, lane 0 in the lowest bits",
        "key_words": "n_lanes bytes, lane 0 in the lowest bits",
        "rows": "the rows, one after the other",
    }

    def members(self, p):
        words = data.ArrayLayout(FACTOR_WIDTH, p.n_lanes)
        self.spans = row_spans(_heights(p))
        return {
            "advance": In(1),
            "query_words": In(words),
            "key_words": In(words),
            "rows": Out(data.StructLayout({f"row_{index}": width for index, (_, width) in enumerate(self.spans)})),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        queries, keys = pipe.register(self.query_words, name="queries"), pipe.register(self.key_words, name="keys")
        heap = Heap(m, "heap", self.width)
        for index in range(self.n_lanes):
            add_signed_product(m, heap, queries[index], keys[index], f"partial_{index}")
        for index, (_, row) in enumerate(heap.reduce(GROUP_HEIGHT)):
            m.d.comb += self.rows[f"row_{index}"].eq(pipe.register(row, name=f"sum_row_{index}"))
        return m


def _heights(p):
    """The heights of the group's columns: a parallelogram of bits a lane, all lanes' constants in one, reduced."""
    constant = p.n_lanes * signed_product_constant(FACTOR_WIDTH, FACTOR_WIDTH)
    heights = [
        p.n_lanes * max(0, min(column + 1, FACTOR_WIDTH, 2 * FACTOR_WIDTH - 1 - column)) + (constant >> column & 1)
        for column in range(p.width)
    ]
    return reduced_heights(heights, GROUP_HEIGHT)


@dataclass(frozen=True)
class IntegerPlan:
    """Widths and register stages that follow from the number of lanes."""

    n_lanes: int

    @property
    def total_width(self):
        """Bits of a beat's signed sum."""
        return 2 * FACTOR_WIDTH + ceil_log2(self.n_lanes)

    @property
    def groups(self):
        """Lanes of each group."""
        return [min(GROUP, self.n_lanes - start) for start in range(0, self.n_lanes, GROUP)]

    @property
    def tree(self):
        """Adder levels in each stage from the groups' rows to the carry-propagate addition."""
        rest, stages = n_levels(GROUP_HEIGHT * len(self.groups)), []
        while rest > LEVELS_BEFORE_TOTAL:
            stages.append(min(rest - LEVELS_BEFORE_TOTAL, LEVELS_ALONE))
            rest -= stages[-1]
        return [*stages, rest]

    @property
    def latency(self):
        """The groups' two stages, the tree, the accumulator."""
        return 2 + len(self.tree) + 1


class IntegerDatapath:
    """Builds the pipeline of an :class:`IntegerPlan` between two streams."""

    def __init__(self, m, plan, operands, score):
        self.m, self.plan = m, plan
        self.pipe = Pipeline(m, source=operands, sink=score)
        self._control(operands, score)
        total = self._add(self._groups(operands.payload))
        accumulator = Signal(signed(SUM_WIDTH), reset_less=True)
        with m.If(self.pipe.advance & self.valid):
            m.d.sync += accumulator.eq(Mux(self.begins, 0, accumulator) + total)
        m.d.comb += score.payload.wide.eq(accumulator)

    def _control(self, operands, score):
        """Which stages hold a beat, and where dot products begin and end."""
        m, pipe, beat = self.m, self.pipe, operands.payload
        open_sum = Signal()
        with m.If(operands.valid & operands.ready):
            m.d.sync += open_sum.eq(~beat.last)
        begins, valid, last = beat.first | ~open_sum, operands.valid, beat.last
        for stage in range(1, self.plan.latency):
            valid = pipe.control(valid, name=f"valid_{stage}")
            begins = pipe.register(begins, name=f"begins_{stage}")
            last = pipe.register(last, name=f"last_{stage}")
        self.valid, self.begins = valid, begins
        m.d.comb += score.valid.eq(pipe.control(valid & last, name="done"))

    def _groups(self, beat):
        groups, start = [], 0
        for index, n_lanes in enumerate(self.plan.groups):
            group = ProductGroup(n_lanes=n_lanes, width=self.plan.total_width)
            self.m.submodules[f"group_{index}"] = group
            self.m.d.comb += group.advance.eq(self.pipe.advance)
            for lane in range(n_lanes):
                self.m.d.comb += group.query_words[lane].eq(beat.query[start + lane])
                self.m.d.comb += group.key_words[lane].eq(beat.key[start + lane])
            start += n_lanes
            groups.append(group)
        return groups

    def _add(self, groups):
        """The exact signed sum of a beat."""
        heap = Heap(self.m, "tree", self.plan.total_width)
        for group in groups:
            for index, (offset, _) in enumerate(group.spans):
                heap.add(group.rows[f"row_{index}"], offset)
        for stage, levels in enumerate(self.plan.tree[:-1], start=1):
            reduced = heap.reduce(levels=levels)
            heap = Heap(self.m, f"tree_{stage}", self.plan.total_width)
            for index, (offset, row) in enumerate(reduced):
                heap.add(self.pipe.register(row, name=f"tree_{stage}_row_{index}"), offset)
        return self.pipe.register(heap.total().as_signed(), name="total")
