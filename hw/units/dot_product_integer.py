"""The INT8 dot product: the partial products of all lanes in one heap, and a 32-bit accumulator."""

from dataclasses import dataclass

from amaranth.hdl import Mux, Signal, signed
from amaranth.utils import ceil_log2

from hw.arith.compressor import Heap, n_levels
from hw.arith.multiplier import add_signed_product
from hw.pipeline import Pipeline

__all__ = ["IntegerPlan", "IntegerDatapath"]

FACTOR_WIDTH = 8
SUM_WIDTH = 32

# Levels of full adders that fit into a stage: alone, and in front of the carry propagation.
LEVELS_ALONE = 7
LEVELS_BEFORE_TOTAL = 4


@dataclass(frozen=True)
class IntegerPlan:
    """Widths and register stages that follow from the number of lanes."""

    n_lanes: int

    @property
    def total_width(self):
        """Bits of a beat's signed sum."""
        return 2 * FACTOR_WIDTH + ceil_log2(self.n_lanes)

    @property
    def tree(self):
        """Adder levels in each stage from the operands to the carry-propagate addition."""
        rest, stages = n_levels(FACTOR_WIDTH * self.n_lanes + 1), []
        while rest > LEVELS_BEFORE_TOTAL:
            stages.append(min(rest - LEVELS_BEFORE_TOTAL, LEVELS_ALONE))
            rest -= stages[-1]
        return [*stages, rest]

    @property
    def latency(self):
        return 1 + len(self.tree) + 1


class IntegerDatapath:
    """Builds the pipeline of an :class:`IntegerPlan` between two streams."""

    def __init__(self, m, plan, operands, score):
        self.m, self.plan = m, plan
        self.pipe = Pipeline(m, source=operands, sink=score)
        self._control(operands, score)
        beat = operands.payload
        total = self._add(self.pipe.register(beat.query, name="queries"), self.pipe.register(beat.key, name="keys"))
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

    def _add(self, queries, keys):
        """The exact signed sum of a beat."""
        heap = Heap(self.m, "tree", self.plan.total_width)
        for index in range(self.plan.n_lanes):
            add_signed_product(self.m, heap, queries[index], keys[index], f"partial_{index}")
        for stage, levels in enumerate(self.plan.tree[:-1], start=1):
            reduced = heap.reduce(levels=levels)
            heap = Heap(self.m, f"tree_{stage}", self.plan.total_width)
            for index, (offset, row) in enumerate(reduced):
                heap.add(self.pipe.register(row, name=f"tree_{stage}_row_{index}"), offset)
        return self.pipe.register(heap.total().as_signed(), name="total")
