"""ArrayController: the commands of the dot-product units: MATMUL, WEIGHTED_SUM, SDDMM and PROJECT."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from golden.spec.commands import FLAGS, Opcode
from golden.spec.dot_product_unit import DEFAULT_MAX_TERMS
from golden.spec.formats import FP16
from hw.arith.compressor import Heap
from hw.lib.stream import StreamFork, StreamQueue
from hw.top.array.column_writer import ColumnWriter
from hw.top.array.group_collector import GroupCollector
from hw.top.array.hash_order import HashOrder
from hw.top.array.mask_feeder import MaskFeeder
from hw.top.array.partial_sums import PartialSums
from hw.top.array.plan import ArrayPlan, ArrayPlanParameters, item_layout
from hw.top.array.probability_feeder import ProbabilityFeeder
from hw.top.array.query_feeder import QueryFeeder
from hw.top.array.value_column_writer import ValueColumnWriter
from hw.top.interfaces import (
    BankReadPort,
    UnitControl,
    bank_write,
    imem_read,
    imem_write,
    mask_read,
    score_write,
    value_write,
)
from hw.top.parameters import CorePart, OmemDepth, PmemDepth, VmemDepth
from hw.top.rows.row_address_generator import RowAddressGenerator
from hw.top.rows.row_sequencer import RowSequencer
from hw.units.dot_product_array.slice import slice_activity
from hw.units.dot_product_array.unit import DotProductArray

__all__ = ["ArrayController"]


def any_of(values):
    """The OR of some values, 0 if there are none."""
    result = None
    for value in values:
        result = value if result is None else result | value
    return 0 if result is None else result


@dataclass(frozen=True, kw_only=True)
class ArrayControllerParameters(PmemDepth, OmemDepth, VmemDepth, ArrayPlanParameters):
    pass


class ArrayController(CorePart):
    """Executes the commands of the array, one after the other, on a dot-product array of n_banks units.

    Weights and keys are in the units' weight banks, beats of n_lanes elements: beat i of slot a at word
    ``bank_address + i * slots + a``; a bias is in lane 0 of one more beat. A score takes b beats, without a bubble, and
    a row takes at least one clock for each of its words.

    * MATMUL: column c is slot c // n_banks of unit c % n_banks. A row is written into IMEM in groups of n_banks
      elements; elements beyond the last column are +0, words beyond the last group are not written.
    * WEIGHTED_SUM: the same with rows of probabilities, each slot a beat (:class:`ProbabilityFeeder`).
    * A product in pieces goes to the units' partial sums, or from there to IMEM (:class:`PartialSums`).
    * SDDMM: each unit scans its part of the row's mask and writes its scores to its own bank, from
      ``destination`` on, in the order of their rows, those of a row by rising slot.
    * PROJECT: the product of all rows in the order of the hash (:class:`~hw.top.array.hash_order.HashOrder`), group by
      group through the aligner into the weight banks, as keys, or to the engines' banks, as values; or without the
      aligner into the weight banks, as columns of values.

    ``weight_write`` is always taken. ``counters`` are the increments of one clock: beats and waiting units delayed by
    two clocks, scores by one; ``rows`` are rows completed by the array, in PROJECT one for each group. Rows of MATMUL
    and SDDMM are done when they are written; those of PROJECT all at the end.

    Defined by :mod:`golden.core.array`.
    """

    Parameters = ArrayControllerParameters
    members_doc = {
        "control": "what to do, and how far it is",
        "imem": "words of IMEM",
        "mask": "rows of the mask memory",
        "probabilities": "WEIGHTED_SUM: probabilities, by bank",
        "imem_write": "MATMUL, WEIGHTED_SUM: a group of a row",
        "score_write": "SDDMM: one score a bank, always taken",
        "value_write": "PROJECT: an element for every engine's bank",
        "weight_write": "a word for one weight bank; only while idle",
        "counters": "activity of the units, scores written, rows done",
    }

    def prepare(self):
        p = self.parameters
        most = p.max_beats * p.n_lanes
        self._array = DotProductArray(
            n_units=p.n_banks,
            n_lanes=p.n_lanes,
            n_slots=p.array_slots,
            max_beats=p.max_beats,
            weight_depth=p.wmem_depth,
            query_beats=p.query_beats,
            query_depth=p.query_depth,
            run_ahead=p.run_ahead,
            wide_score=p.pmem_depth > 0,
            max_terms=None if most <= DEFAULT_MAX_TERMS else 1 << (most - 1).bit_length(),
        )

    @staticmethod
    def members(p):
        units = range(p.n_banks + 1)
        counters = {**dict.fromkeys(slice_activity(1).members, units), "scores": units, "rows": 1}
        return {
            "control": In(UnitControl(p.max_tokens)),
            "imem": Out(imem_read(p)),
            "mask": Out(mask_read(p)),
            "probabilities": Out(BankReadPort(p.n_banks, p.omem_depth)),
            "imem_write": Out(stream.Signature(imem_write(p))),
            "score_write": Out(score_write(p.n_banks, p.omem_depth)),
            "value_write": Out(stream.Signature(value_write(p))),
            "weight_write": In(bank_write(p, p.wmem_depth, p.n_lanes)),
            "counters": Out(data.StructLayout(counters)),
        }

    @property
    def latency(self):
        """Clocks from start to the first write of MATMUL, for a row of one beat whose word comes at once."""
        to_first_beat = RowSequencer.latency + QueryFeeder.latency + 2
        return to_first_beat + self._array.parameters.plan.latency + GroupCollector.latency

    def circuit(self):
        m = Module()
        m.submodules.array = array = self._array
        m.submodules.plan = planned = ArrayPlan.for_core(self.parameters)
        self._plan = plan = planned.plan
        m.d.comb += [
            planned.command.eq(self.control.command),
            array.weight_base.eq(plan.weight_base),
            array.weight_stride.eq(plan.weight_stride),
            array.row_words.eq(plan.ring.row_words),
            array.max_rows.eq(plan.ring.max_rows),
            array.restart.eq(self.control.start),
        ]
        starts_project = Signal()
        m.d.comb += starts_project.eq(self.control.start & (self.control.command.opcode == Opcode.PROJECT))
        items = self._items(m, starts_project)
        self._feed(m, items)
        collector = self._collect(m, items[2])
        finished = self._put(m, collector, starts_project)
        self._write_weights(m)
        n_scores = self._write_scores(m)
        self._follow(m, collector, finished)
        self._count(m, n_scores)
        return m

    def _items(self, m, starts_project):
        """Rows, or groups of rows in hash order, forked to all consumers."""
        p, plan = self.parameters, self._plan
        m.submodules.loop = loop = RowSequencer(max_tokens=self.max_tokens)
        m.submodules.order = order = HashOrder.for_core(p)
        layout = order.items.payload.shape()
        m.submodules.fork = fork = StreamFork(width=layout.size, n=3)
        item = Signal(layout)
        m.d.comb += [
            loop.token.eq(self.control.token),
            loop.start.eq(self.control.start & ~starts_project),
            loop.gated.eq((self.control.command.flags & FLAGS["gated"]).any()),
            loop.first.eq(self.control.command.first_row),
            loop.n_active.eq(self.control.n_active),
            loop.limit.eq(self.control.limit),
            order.start.eq(starts_project),
            order.plan.eq(plan),
            order.multiplier.eq(self.control.command.multiplier),
            order.n_rows.eq(self.control.command.n_rows),
            fork.source.payload.eq(item),
            fork.source.valid.eq(Mux(plan.kind.project, order.items.valid, loop.rows.valid)),
            order.items.ready.eq(fork.source.ready & plan.kind.project),
            loop.rows.ready.eq(fork.source.ready & ~plan.kind.project),
        ]
        with m.If(plan.kind.project):
            m.d.comb += item.eq(order.items.payload)
        with m.Else():
            m.d.comb += item.row.eq(loop.rows.payload.row)
        return fork.sink

    def _feed(self, m, items):
        """Queries and masks of all non-empty items."""
        p, plan, array, control = self.parameters, self._plan, self._array, self.control
        m.submodules.queries = queries = QueryFeeder.for_core(p)
        m.submodules.weighted = weighted = ProbabilityFeeder.for_core(p)
        m.submodules.masks = masks = MaskFeeder.for_core(p)
        row = data.View(item_layout(self.parameters), items[0].payload)
        is_weighted = plan.kind.weighted
        m.d.comb += [
            queries.rows.payload.eq(row.row),
            queries.rows.valid.eq(items[0].valid & ~row.is_empty & ~is_weighted),
            queries.source.eq(control.command.source),
            queries.stride.eq(control.command.source_stride),
            queries.plan.eq(plan.query),
            weighted.start.eq(control.start),
            weighted.source.eq(control.command.source),
            weighted.plan.eq(plan.mask),
            weighted.rows.payload.eq(row.row),
            weighted.rows.valid.eq(items[0].valid & is_weighted),
            items[0].ready.eq(Mux(is_weighted, weighted.rows.ready, queries.rows.ready | row.is_empty)),
            masks.items.payload.eq(items[1].payload),
            masks.items.valid.eq(items[1].valid),
            items[1].ready.eq(masks.items.ready),
            masks.plan.eq(plan),
            array.query.payload.eq(Mux(is_weighted, weighted.query.payload, queries.query.payload)),
            array.query.valid.eq(queries.query.valid | weighted.query.valid),
            queries.query.ready.eq(array.query.ready),
            weighted.query.ready.eq(array.query.ready),
        ]
        # One of them reads masks at a time.
        readers = ((weighted.mask, is_weighted), (masks.mask, ~is_weighted))
        m.d.comb += [
            self.mask.address.payload.eq(Mux(is_weighted, *(reader.address.payload for reader, _ in readers))),
            self.mask.address.valid.eq(Mux(is_weighted, *(reader.address.valid for reader, _ in readers))),
            self.mask.word.ready.eq(Mux(is_weighted, *(reader.word.ready for reader, _ in readers))),
        ]
        for reader, is_chosen in readers:
            m.d.comb += [
                reader.address.ready.eq(self.mask.address.ready & is_chosen),
                reader.word.payload.eq(self.mask.word.payload),
                reader.word.valid.eq(self.mask.word.valid & is_chosen),
            ]
        connect(m, queries.imem, flipped(self.imem))
        connect(m, weighted.probabilities, flipped(self.probabilities))
        connect(m, masks.bitmap, array.mask)

    def _collect(self, m, items):
        """Scores of a group, and its destination, which waits in a queue for them."""
        p, plan, array = self.parameters, self._plan, self._array
        m.submodules.collector = collector = GroupCollector.for_core(p)
        m.submodules.placing = placing = RowAddressGenerator(
            max_tokens=self.max_tokens, imem_depth=self.imem_depth, n_matrices=1
        )
        place = placing.placed.payload.places[0]
        is_written = Signal(name="rows_are_written")
        m.d.comb += is_written.eq(plan.kind.dense & ~plan.kind.sums)
        item = data.View(item_layout(self.parameters), items.payload)
        # As many as the array can hold, and some for those on their way to it.
        m.submodules.waiting = waiting = StreamQueue(
            width=max(len(place), len(items.payload)), depth=(1 << array.parameters.row_width) + 4, storage="memory"
        )
        m.d.comb += [
            placing.first[0].eq(self.control.command.destination + plan.columns.skipped),
            placing.stride[0].eq(self.control.command.destination_stride),
            placing.rows.payload.eq(item.row),
            placing.rows.valid.eq(items.valid & is_written),
            placing.placed.ready.eq(waiting.source.ready & plan.kind.dense),
            waiting.source.payload.eq(Mux(plan.kind.project, items.payload, place)),
            waiting.source.valid.eq(Mux(plan.kind.project, items.valid, placing.placed.valid)),
            items.ready.eq(Mux(plan.kind.project, waiting.source.ready, placing.rows.ready | ~is_written)),
            collector.plan.eq(plan),
            collector.places.payload.eq(waiting.sink.payload),
            collector.places.valid.eq(waiting.sink.valid & plan.kind.dense),
            collector.items.payload.eq(waiting.sink.payload[: len(items.payload)]),
            collector.items.valid.eq(waiting.sink.valid & plan.kind.project),
            waiting.sink.ready.eq(Mux(plan.kind.project, collector.items.ready, collector.places.ready)),
        ]
        for unit, score in enumerate(collector.scores):
            source = array.score[unit]
            m.d.comb += [
                score.payload.eq(source.payload.narrow),
                score.valid.eq(source.valid),
                source.ready.eq(score.ready | plan.kind.sddmm),
            ]
            if p.pmem_depth:
                self._sum(m, unit, source, score)
        return collector

    def _sum(self, m, unit, source, score):
        """The partial sums of a unit, between its scores and the groups."""
        p, plan, command = self.parameters, self._plan, self.control.command
        m.submodules[f"partial_sums_{unit}"] = sums = PartialSums(depth=p.pmem_depth, n_slots=p.array_slots)
        is_partial = plan.kind.sums | plan.kind.gives
        m.d.comb += [
            sums.start.eq(self.control.start),
            sums.first.eq(command.source_2),
            sums.slots.eq(plan.weight_stride),
            sums.adds.eq(plan.kind.adds),
            sums.gives.eq(plan.kind.gives),
            sums.terms.payload["value"].eq(source.payload.wide),
            sums.terms.payload.slot.eq(source.payload.slot),
            sums.terms.payload.last_of_row.eq(source.payload.last_of_row),
            sums.terms.valid.eq(source.valid & is_partial),
            sums.sums.ready.eq(score.ready),
        ]
        with m.If(is_partial):
            m.d.comb += [
                score.payload.eq(sums.sums.payload),
                score.valid.eq(sums.sums.valid),
                source.ready.eq(sums.terms.ready),
            ]

    def _put(self, m, collector, starts_project):
        """Groups to IMEM, or through the aligner to the banks; returns the condition that the latter are complete."""
        plan = self._plan
        m.submodules.writer = writer = ColumnWriter.for_core(self.parameters)
        m.submodules.value_columns = values = ValueColumnWriter.for_core(self.parameters)
        is_columns = plan.kind.to_columns
        group = collector.groups.payload
        self._place_group(m, group)
        m.d.comb += [
            self.imem_write.valid.eq(collector.groups.valid & plan.kind.dense),
            writer.start.eq(starts_project),
            writer.plan.eq(plan),
            writer.destination.eq(self.control.command.destination),
            writer.groups.payload.eq(group.elements),
            writer.groups.valid.eq(collector.groups.valid & plan.kind.project & ~is_columns),
            values.start.eq(starts_project),
            values.plan.eq(plan),
            values.destination.eq(self.control.command.destination),
            values.groups.payload.eq(group.elements),
            values.groups.valid.eq(collector.groups.valid & plan.kind.project & is_columns),
            collector.groups.ready.eq(
                Mux(plan.kind.project, Mux(is_columns, values.groups.ready, writer.groups.ready), self.imem_write.ready)
            ),
        ]
        lane = self._array.weight_lane
        m.d.comb += [
            lane.payload.eq(Mux(writer.keys.valid, writer.keys.payload, values.columns.payload)),
            lane.valid.eq(writer.keys.valid | values.columns.valid),
            writer.keys.ready.eq(lane.ready),
            values.columns.ready.eq(lane.ready),
        ]
        connect(m, writer.values, flipped(self.value_write))
        return writer.finished | values.finished

    def _place_group(self, m, group):
        """The group's elements in the parts of a word of IMEM from ``offset`` on, the rest in the next word."""
        p, word = self.parameters, self.imem_write.payload
        m.d.comb += word.address.eq(group.address)
        n_pieces, width = p.n_banks // p.row_part, FP16.width * p.row_part
        pieces = [Cat(group.elements).word_select(piece, width) for piece in range(n_pieces)]
        for part in range(p.row_parts):
            here = word["values"].as_value().word_select(part, width)
            if not p.groups_straddle:
                # Groups begin at multiples of their size.
                m.d.comb += [
                    here.eq(pieces[part % n_pieces]),
                    word.enable[part].eq(group.offset == part - part % n_pieces),
                ]
                continue
            starts = [(part - piece) % p.row_parts for piece in range(n_pieces)]
            is_here = [group.offset == start for start in starts]
            is_next = any_of(is_here[part + 1 :])
            m.d.comb += [
                here.eq(
                    any_of(piece & is_first.replicate(width) for piece, is_first in zip(pieces, is_here, strict=True))
                ),
                word.enable[part].eq(any_of(is_here) & ~(is_next & group.is_in_last_word)),
                word.is_next[part].eq(is_next),
            ]

    def _write_weights(self, m):
        weight = self._array.weight
        m.d.comb += [
            weight.payload.key.eq(self.weight_write.words),
            weight.payload.address.eq(self.weight_write.address),
            weight.payload.unit.eq(self.weight_write.bank),
            weight.valid.eq(self.weight_write.valid),
        ]

    def _write_scores(self, m):
        """Each bank's scores one after the other, a clock after they were taken; returns how many."""
        written = Signal(self.n_banks, name="score_is_written")
        for unit, write in enumerate(self.score_write):
            score = self._array.score[unit]
            pointer = Signal(len(write.address), name=f"score_pointer_{unit}", reset_less=True)
            address = Signal.like(pointer, name=f"score_address_{unit}")
            value = Signal(FP16.width, name=f"score_{unit}", reset_less=True)
            takes = Signal(name=f"takes_score_{unit}")
            m.d.comb += [
                takes.eq(score.valid & self._plan.kind.sddmm),
                write.valid.eq(written[unit]),
                write.address.eq(address),
                write.value.eq(value),
            ]
            m.d.sync += [written[unit].eq(takes), address.eq(pointer), value.eq(score.payload.narrow)]
            with m.If(self.control.start):
                m.d.sync += pointer.eq(self.control.command.destination)
            with m.Elif(takes):
                m.d.sync += pointer.eq(pointer + 1)
        return written

    def _follow(self, m, collector, finished):
        """Count the rows written; when all are, the array has reported each of them and is empty."""
        array, plan = self._array, self._plan
        n_done = Signal.like(self.control.rows_done, name="n_done")
        is_running = Signal()
        row_is_done, row_is_summed = Signal(), array.row_done.valid & plan.kind.sums
        if self.pmem_depth:
            # Partial sums are in their memory some clocks after they were taken.
            for stage in range(1, PartialSums.latency + 1):
                delayed = Signal(name=f"row_summed_{stage}")
                m.d.sync += delayed.eq(row_is_summed)
                row_is_summed = delayed
        m.d.comb += [
            array.row_done.ready.eq(1),
            row_is_done.eq(
                (array.row_done.valid & plan.kind.sddmm)
                | row_is_summed
                | (self.imem_write.valid & self.imem_write.ready & collector.groups.payload.ends_row)
            ),
            self.control.rows_done.eq(n_done),
            self.control.done.eq(is_running & (n_done == self.control.n_active)),
        ]
        with m.If(self.control.start):
            m.d.sync += [is_running.eq(1), n_done.eq(0)]
        with m.Else():
            with m.If(finished):
                m.d.sync += n_done.eq(self.control.n_active)
            with m.Elif(row_is_done):
                m.d.sync += n_done.eq(n_done + 1)
            with m.If(self.control.done):
                m.d.sync += is_running.eq(0)

    def _count(self, m, scores):
        """Registered counts of units."""
        activity = self._array.activity
        for name, bits in (*((name, activity[name]) for name in activity.shape().members), ("scores", scores)):
            port = self.counters[name]
            heap = Heap(m, f"count_{name}", len(port))
            for bit in bits:
                heap.add(bit)
            total = Signal(len(port), name=f"n_{name}")
            m.d.sync += total.eq(heap.total())
            m.d.comb += port.eq(total)
        m.d.comb += self.counters.rows.eq(self._array.row_done.valid)
