"""The floating-point dot product: lanes, the search for their largest exponent, adder tree, accumulator, rounding."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Mux, Signal
from amaranth.utils import bits_for, ceil_log2

from golden.spec.dot_product_unit import ALIGNMENT_SLACK_BITS
from hw.arith.compressor import Heap, dadda_heights, n_levels
from hw.arith.maximum import DigitMaximum
from hw.arith.prefix_adder import PrefixAdder
from hw.lib.pipeline import Pipeline
from hw.units.dot_product_unit.accumulator import AlignedAccumulator
from hw.units.dot_product_unit.lane import DotProductLane, Window
from hw.units.dot_product_unit.rounding import ScoreRounder

__all__ = ["FloatPlan", "FloatDatapath"]

# Levels of full adders of a stage: after the alignment, alone, and before the carry propagation.
LEVELS_AFTER_ALIGNMENT = 4
LEVELS_ALONE = 7
LEVELS_BEFORE_TOTAL = 3
SHIFTED_SUM_TIME = 300
"""Arrival time of the shifted running sum, in hundredths of such a level."""

# Bits of the alignment exponent that are decided before the first registers, and in each stage after them.
EARLY_BITS = {"fp16": 2, "bf16": 3}
SEARCH_BITS, SEARCH_BITS_OF_MANY = 4, 2
MANY_LANES = 65


@dataclass(frozen=True)
class FloatPlan:
    """Widths and register stages that follow from the parameters."""

    format: str
    n_lanes: int
    align_width: int
    max_terms: int
    wide_score: bool = True

    @property
    def window(self):
        return Window(self.format, self.align_width)

    @property
    def accumulator_width(self):
        return self.window.width + ceil_log2(self.max_terms) + 1

    @property
    def digit_groups(self):
        """Bits of the alignment exponent that are decided before the first registers, and in each later stage."""
        early = EARLY_BITS[self.format]
        most = SEARCH_BITS if self.n_lanes < MANY_LANES else SEARCH_BITS_OF_MANY
        rest = self.window.reference_width - early
        return [early, *(min(most, rest - done) for done in range(0, rest, most))]

    @property
    def tree(self):
        """Adder levels of each stage from the alignment to the last one before the accumulation."""
        heights = [self.n_lanes + 1, *dadda_heights(self.n_lanes + 1)]
        stages = [min(len(heights) - 1, LEVELS_AFTER_ALIGNMENT)]
        while n_levels(heights[sum(stages)] + 1) > LEVELS_BEFORE_TOTAL:
            most = next(level for level, height in enumerate(heights) if n_levels(height + 1) <= LEVELS_BEFORE_TOTAL)
            stages.append(min(most - sum(stages), LEVELS_ALONE))
        return stages

    @property
    def product_stage(self):
        """The register stage of the products and of the beat's alignment exponent; that of the decoders is 1."""
        return len(self.digit_groups)

    @property
    def sum_stage(self):
        """The register stage of the accumulator."""
        return self.product_stage + len(self.tree) + 1

    @property
    def latency(self):
        return self.sum_stage + ScoreRounder.latency


class FloatDatapath:
    """Builds the pipeline of a :class:`FloatPlan` between two streams, stage by stage."""

    def __init__(self, m, plan, operands, score):
        self.m, self.plan, self.window = m, plan, plan.window
        self.pipe = Pipeline(m, source=operands, sink=score)
        self._control(operands, score)
        lanes = self._lanes(operands.payload)
        specials = self._accumulate_specials(lanes)
        found, reference = self._largest_reference(lanes)
        m.d.comb += [lane.reference.eq(found) for lane in lanes]
        self._finish(self._accumulate(reference, self._add(lanes)), specials, score.payload)

    def _control(self, operands, score):
        """Which stages hold a beat, and where dot products begin and end."""
        m, pipe, beat = self.m, self.pipe, operands.payload
        open_sum = Signal()
        with m.If(operands.valid & operands.ready):
            m.d.sync += open_sum.eq(~beat.last)
        begins, valid, last = beat.first | ~open_sum, operands.valid, beat.last
        self.valid, self.begins = {0: valid}, {0: begins}
        for stage in range(1, self.plan.sum_stage):
            self.valid[stage] = valid = pipe.control(valid, name=f"valid_{stage}")
            last = pipe.register(last, name=f"last_{stage}")
            if stage <= self.plan.product_stage:
                self.begins[stage] = begins = pipe.register(begins, name=f"begins_{stage}")
        done = valid & last
        for stage in range(self.plan.sum_stage, self.plan.latency + 1):
            done = pipe.control(done, name=f"done_{stage}")
        m.d.comb += score.valid.eq(done)

    def _lanes(self, beat):
        lanes = []
        for index in range(self.plan.n_lanes):
            lane = DotProductLane(
                format=self.plan.format, align_width=self.plan.align_width, search_stages=self.plan.product_stage - 1
            )
            self.m.submodules[f"lane_{index}"] = lane
            self.m.d.comb += [
                lane.advance.eq(self.pipe.advance),
                lane.query_word.eq(beat.query[index]),
                lane.key_word.eq(beat.key[index]),
            ]
            lanes.append(lane)
        return lanes

    def _accumulate_specials(self, lanes):
        """Running NaN, plus and minus infinity flags, at the accumulator's stage."""
        m, pipe = self.m, self.pipe
        found = Cat(Cat(lane.specials[kind] for lane in lanes).any() for kind in range(3))
        found = pipe.register(found, name="specials_found")
        specials = Signal(3, name="specials", reset_less=True)
        with m.If(pipe.advance & self.valid[1]):
            m.d.sync += specials.eq(found | Mux(self.begins[1], 0, specials))
        return pipe.register(specials, name="specials_later", stages=self.plan.sum_stage - 2)

    def _largest_reference(self, lanes):
        """The running alignment exponent, before and after the product stage, without its slack bits.

        It is searched from the top, a few digits a stage. The last stage also compares the exponent of the beats before
        or, at the beginning of a dot product, the minimum.
        """
        m, pipe, plan = self.m, self.pipe, self.plan
        bits = range(ALIGNMENT_SLACK_BITS, self.window.exponent_width)
        planes = [Cat(lane.effective[bit] for lane in lanes) for bit in bits]
        candidates, decided = Cat(lane.is_candidate for lane in lanes), Const(0, 0)
        *groups, last = plan.digit_groups
        for number, group in enumerate(groups):
            m.submodules[f"maximum_{number}"] = digits = DigitMaximum(n=plan.n_lanes, width=group)
            rest = len(planes) - group
            m.d.comb += [port.eq(plane) for port, plane in zip(digits.plane, planes[rest:], strict=True)]
            m.d.comb += digits.candidates.eq(candidates)
            decided = pipe.register(Cat(digits.maximum, decided), name=f"reference_top_{number}")
            candidates = pipe.register(digits.largest, name=f"candidates_{number}")
            planes = [pipe.register(plane, name=f"plane_{number}_{bit}") for bit, plane in enumerate(planes[:rest])]

        stage = plan.product_stage - 1
        reference = Signal(self.window.reference_width, name="reference", reset_less=True)
        before = Signal.like(reference, name="reference_before")
        found = Signal.like(reference, name="reference_found")
        m.submodules.maximum = digits = DigitMaximum(n=plan.n_lanes + 1, width=last)
        for bit, (port, plane) in enumerate(zip(digits.plane, planes, strict=True)):
            m.d.comb += port.eq(Cat(plane, before[bit]))
        is_higher = before[last:] > decided
        m.d.comb += digits.candidates.eq(
            Cat(candidates & (~is_higher).replicate(plan.n_lanes), before[last:] >= decided)
        )
        m.d.comb += found.eq(Cat(digits.maximum, Mux(is_higher, before[last:], decided)))
        with m.If(pipe.advance):
            m.d.sync += reference.eq(found)
            with m.If(self.begins[stage - 1] & self.valid[stage - 1]):
                m.d.sync += before.eq(self.window.minimum_exponent >> ALIGNMENT_SLACK_BITS)
            with m.Elif(self.valid[stage]):
                m.d.sync += before.eq(found)
        return found, reference

    def _add(self, lanes):
        """A bit heap of registered rows whose total is the exact signed sum of a beat."""
        heap = Heap(self.m, "tree", self.plan.accumulator_width)
        for lane in lanes:
            heap.add(lane.row)
        # In a window of w bits, -x is ~x + 1 - 2**w: the corrections of all negative rows are one more row.
        count = Heap(self.m, "negatives", bits_for(self.plan.n_lanes))
        for lane in lanes:
            count.add(lane.negative)
        count = self.pipe.register(count.total(), name="negatives")
        borrow, extension = Signal(len(count)), count.any()
        self.m.d.comb += borrow.eq(-count)
        heap.add(count)
        heap.add(borrow, self.window.width)

        for stage, levels in enumerate(self.plan.tree, start=1):
            reduced = heap.reduce(levels=levels)
            heap = Heap(self.m, f"tree_{stage}", self.plan.accumulator_width)
            for index, (offset, row) in enumerate(reduced):
                heap.add(self.pipe.register(row, name=f"tree_{stage}_row_{index}"), offset)
            extension = self.pipe.register(extension, name=f"extension_{stage}")
        top = self.window.width + len(borrow)
        heap.add(extension.replicate(self.plan.accumulator_width - top), top)
        return heap

    def _accumulate(self, reference, heap):
        """The running sum of the beats."""
        m, plan = self.m, self.plan
        m.submodules.accumulator = accumulator = AlignedAccumulator(
            reference_width=len(reference),
            unit_log2=ALIGNMENT_SLACK_BITS,
            width=plan.accumulator_width,
            lead=len(plan.tree),
        )
        heap.add(accumulator.shifted, time=SHIFTED_SUM_TIME)
        m.d.comb += [
            accumulator.advance.eq(self.pipe.advance),
            accumulator.valid.eq(self.valid[plan.product_stage]),
            accumulator.begins.eq(self.begins[plan.product_stage]),
            accumulator.reference.eq(reference),
            accumulator.total.eq(heap.total(adder=PrefixAdder)),
        ]
        return accumulator

    def _finish(self, accumulator, specials, payload):
        m, plan, window = self.m, self.plan, self.window
        m.submodules.rounder = rounder = ScoreRounder(
            format=plan.format,
            width=plan.accumulator_width,
            reference_width=window.exponent_width,
            unit_exponent=window.unit_exponent,
            wide=plan.wide_score,
        )
        m.d.comb += [
            rounder.advance.eq(self.pipe.advance),
            rounder.sum.eq(accumulator.sum),
            rounder.reference.eq(Cat(Const(window.slack, ALIGNMENT_SLACK_BITS), accumulator.sum_reference)),
            Cat(rounder.is_nan, rounder.plus_inf, rounder.minus_inf).eq(specials),
            payload.narrow.eq(rounder.narrow_word),
        ]
        if plan.wide_score:
            m.d.comb += payload.wide.eq(rounder.wide_word)
