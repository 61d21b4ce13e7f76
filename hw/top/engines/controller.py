"""EnginesController: SPMM on the engines, and the writes into their banks."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import ceil_log2

from golden.spec.commands import FLAGS
from golden.spec.sizes import spmm_array_of, words_for
from hw.lib.division import quotient, remainder
from hw.lib.stream import StreamQueue
from hw.top.interfaces import ArbitratedBankReadPort, UnitControl, bank_write, imem_write, mask_read, value_write
from hw.top.parameters import CorePart, HeadDim, ImemDepth, KeyMask, Lanes, OmemDepth, SimdLanes, VmemDepth
from hw.top.rows.mask_scanner import mask_address, used_slots
from hw.top.rows.row_address_generator import RowAddressGenerator
from hw.top.rows.row_sequencer import RowSequencer
from hw.top.rows.row_writer import RowWriter
from hw.units.spmm_array.unit import SpmmArray

__all__ = ["EnginesController"]


@dataclass(frozen=True, kw_only=True)
class EnginesControllerParameters(OmemDepth, VmemDepth, ImemDepth, HeadDim, SimdLanes, Lanes, KeyMask):
    pass


class EnginesController(CorePart):
    """Executes SPMM: each row in as many passes as its result has parts of simd_lanes elements.

    An engine takes a clock for each of its elements in the row, in each pass, and may be ahead of others. Results come
    in order; a row is done when all of it is written. ``value_write`` and ``word_write`` go to the banks at once;
    ``value_write`` waits for ``word_write``.

    Probabilities come one clock after a read that is accepted. ``counters`` are the increments of one clock, delayed.
    """

    Parameters = EnginesControllerParameters
    members_doc = {
        "control": "what to do, and how far it is",
        "mask": "rows of the mask memory",
        "probabilities": "probabilities, by bank",
        "imem_write": "parts of a word of IMEM to write",
        "value_write": "an element for every engine's bank",
        "word_write": "a word for one engine's bank, always taken",
        "counters": "terms, and engines that wait",
    }

    def prepare(self):
        self._array = SpmmArray(**spmm_array_of(self.parameters))

    @staticmethod
    def members(p):
        engines = range(p.n_banks + 1)
        return {
            "control": In(UnitControl(p.max_tokens)),
            "mask": Out(mask_read(p)),
            "probabilities": Out(ArbitratedBankReadPort(p.n_banks, p.omem_depth)),
            "imem_write": Out(stream.Signature(imem_write(p))),
            "value_write": In(stream.Signature(value_write(p))),
            "word_write": In(bank_write(p, p.vmem_depth, p.simd_lanes)),
            "counters": Out(
                data.StructLayout(dict.fromkeys(("terms", "waits_for_engines", "waits_for_sink"), engines))
            ),
        }

    def circuit(self):
        m = Module()
        m.submodules.array = self._array
        places = self._feed_rows(m)
        self._write_banks(m)
        self._collect(m, places)
        self._count(m)
        return m

    def _feed_rows(self, m):
        """Each row's mask to the array, and the first word of its result to the writer. Returns these."""
        p, array, control = self.parameters, self._array, self.control
        command = control.command
        gated = (command.flags & FLAGS["gated"]).any()
        m.submodules.loop = loop = RowSequencer(max_tokens=self.max_tokens)
        m.submodules.placing = placing = RowAddressGenerator(
            max_tokens=self.max_tokens, imem_depth=self.imem_depth, n_matrices=1
        )
        placed = placing.placed
        m.submodules.places = places = StreamQueue(
            width=len(placed.payload.places[0]), depth=self._rows_inside, storage="memory"
        )
        row = Signal(p.token_width, name="marked_row")
        slots = used_slots(p, command.n_out)
        n_slots = Signal(range(p.key_slots + 1))
        # The number of slots is a power of two: one more than the highest that is used.
        m.d.comb += n_slots.eq(1)
        for power in (2 << level for level in range(ceil_log2(p.key_slots))):
            with m.If(slots[power - 1]):
                m.d.comb += n_slots.eq(power)
        m.d.comb += [
            loop.token.eq(control.token),
            loop.start.eq(control.start),
            loop.gated.eq(gated),
            loop.first.eq(command.first_row),
            loop.n_active.eq(control.n_active),
            loop.limit.eq(control.limit),
            placing.rows.payload.eq(loop.rows.payload.row),
            placing.rows.valid.eq(loop.rows.valid),
            loop.rows.ready.eq(placing.rows.ready),
            placing.first[0].eq(command.destination + quotient(command.column, p.row_word)),
            placing.stride[0].eq(command.destination_stride),
            row.eq(placed.payload.row + Mux(gated, 0, command.first_row)),
            self.mask.address.payload.eq(mask_address(p, command.mask, row)),
            self.mask.address.valid.eq(placed.valid & places.source.ready),
            places.source.payload.eq(placed.payload.places[0]),
            places.source.valid.eq(placed.valid & self.mask.address.ready),
            placed.ready.eq(places.source.ready & self.mask.address.ready),
            array.bitmap.payload.eq(self.mask.word.payload & Cat(slots).replicate(p.n_banks)),
            array.bitmap.valid.eq(self.mask.word.valid),
            self.mask.word.ready.eq(array.bitmap.ready),
            array.start.eq(control.start),
            array.first_probability.eq(command.source),
            array.passes.eq(self._last_pass(m) + 1),
            array.value_base.eq(command.bank_address),
            array.value_stride.eq(n_slots),
        ]
        reads = self.probabilities
        m.d.comb += [
            reads.enable.eq(array.probability_enable),
            reads.address.eq(array.probability_address),
            array.probability_ready.eq(reads.ready),
            array.probability_word.eq(reads.word),
        ]
        return places

    @property
    def _rows_inside(self):
        """Rows of one pass that are in flight at most, from the read of their mask to the write of their result."""
        return self._array.latency + self._array.parameters.queue_depth + self._array.parameters.run_ahead + 8

    def _last_pass(self, m):
        p = self.parameters
        last_pass = Signal(range(max(2, words_for(p.max_head_dim, p.simd_lanes))), name="last_pass")
        m.d.comb += last_pass.eq(quotient((self.control.command.n_in - 1)[:16], p.simd_lanes))
        return last_pass

    def _write_banks(self, m):
        array, word, value = self._array, self.word_write, self.value_write
        m.d.comb += [
            array.write.payload["values"].eq(word.words),
            array.write.payload.address.eq(word.address),
            array.write.payload.engine.eq(word.bank),
            array.write.valid.eq(word.valid),
            array.write_lane.payload.eq(value.payload),
            array.write_lane.valid.eq(value.valid),
            value.ready.eq(array.write_lane.ready),
        ]

    def _collect(self, m, places):
        """Results to IMEM, and the number of rows written."""
        p, result, control = self.parameters, self._array.result, self.control
        m.submodules.writer = writer = RowWriter(
            imem_depth=p.imem_depth,
            word=p.row_word,
            part=p.row_part,
            group=p.simd_lanes,
            max_groups=words_for(p.max_head_dim, p.simd_lanes),
        )
        connect(m, places.sink, writer.places)
        m.d.comb += [
            writer.first_position.eq(quotient(remainder(control.command.column, p.row_word), p.simd_lanes)),
            writer.last_result.eq(self._array.passes - 1),
            writer.results.payload.eq(result.payload.rounded),
            writer.results.valid.eq(result.valid),
            result.ready.eq(writer.results.ready),
        ]
        write = self.imem_write
        m.d.comb += [
            *(write.payload[name].eq(writer.write.payload[name]) for name in ("address", "values", "enable")),
            write.valid.eq(writer.write.valid),
            writer.write.ready.eq(write.ready),
        ]
        is_running = Signal()
        n_written = Signal.like(control.rows_done, name="n_written")
        m.d.comb += [control.rows_done.eq(n_written), control.done.eq(is_running & (n_written == control.n_active))]
        with m.If(control.start):
            m.d.sync += [is_running.eq(1), n_written.eq(0)]
        with m.Else():
            m.d.sync += n_written.eq(n_written + writer.row_is_written)
            with m.If(control.done):
                m.d.sync += is_running.eq(0)

    def _count(self, m):
        activity = self._array.activity
        for name, bits in (
            ("terms", activity.terms),
            ("waits_for_engines", activity.waits_for_engines),
            ("waits_for_sink", activity.waits_for_result),
        ):
            total = Signal.like(self.counters[name], name=f"n_{name}")
            m.d.sync += total.eq(sum(bits))
            m.d.comb += self.counters[name].eq(total)
