"""VectorController: SPMM, ELEMENTWISE and LAYER_NORM on the vector unit, and the writes into its banks."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from golden.spec.commands import FLAGS, Opcode
from golden.spec.vector_operations import Scope, VectorOp
from hw.lib.stream import StreamQueue
from hw.top.interfaces import BankReadPort, UnitControl, bank_write, imem_read, imem_write, mask_read, value_write
from hw.top.parameters import CorePart, ImemDepth, Lanes, OmemDepth, RowDim, VmemDepth
from hw.top.rows.mask_scanner import MaskScannerParameters
from hw.top.rows.row_address_generator import RowAddressGenerator
from hw.top.rows.row_sequencer import RowSequencer
from hw.top.vector.layer_norm_controller import LayerNormController
from hw.top.vector.row_reader import RowReader
from hw.top.vector.row_writer import RowWriter
from hw.top.vector.spmm_issue import SpmmIssue
from hw.units.vector_unit.unit import VectorUnit

__all__ = ["VectorController"]


@dataclass(frozen=True, kw_only=True)
class VectorControllerParameters(OmemDepth, VmemDepth, ImemDepth, RowDim, Lanes, MaskScannerParameters):
    pass


class VectorController(CorePart):
    """Executes the commands of the vector unit, one of its commands a clock.

    * SPMM: a row whose fullest bank has c elements takes max(c, 1) clocks for simd_lanes elements of its result.
    * ELEMENTWISE: a clock a word, two if there are two operands. Element e of a word is in lane e % simd_lanes of
      engine e // simd_lanes.
    * LAYER_NORM: a clock a word, in a unit of its own. Gamma and beta are read first, regardless of ``limit``.

    Results come in order, whole words or groups of simd_lanes elements; a row is done when all of it is written.
    ``value_write`` has priority, so a projection can fill the banks while a command runs. ``word_write`` waits
    in a register until the unit takes it; while it does, ``word_ready`` is 0 and the next word must wait.

    The mask's word and those of IMEM may come any time after their address; probabilities are read with one clock of
    latency, and the word must stay until the next read. ``counters`` are the increments of one clock, delayed by a
    clock.
    """

    Parameters = VectorControllerParameters
    members_doc = {
        "control": "what to do, and how far it is",
        "mask": "rows of the mask memory",
        "probabilities": "probabilities, by bank",
        "imem": "words of IMEM",
        "imem_write": "parts of a word of IMEM to write",
        "value_write": "an element for every engine's bank",
        "word_write": "a word for one engine's bank, taken where word_ready is set",
        "word_ready": "whether word_write is taken",
        "counters": "commands of the unit, terms of its SPMM commands, clocks waiting for results or rows",
    }

    def prepare(self):
        self._unit = VectorUnit(n_engines=self.n_banks, n_lanes=self.simd_lanes, bank_depth=self.vmem_depth)

    @staticmethod
    def members(p):
        counters = {"issues": 1, "spmm_terms": range(p.n_banks + 1), "waits_for_write": 1, "waits_for_rows": 1}
        return {
            "control": In(UnitControl(p.max_tokens)),
            "mask": Out(mask_read(p)),
            "probabilities": Out(BankReadPort(p.n_banks, p.omem_depth)),
            "imem": Out(imem_read(p)),
            "imem_write": Out(stream.Signature(imem_write(p))),
            "value_write": In(stream.Signature(value_write(p))),
            "word_write": In(bank_write(p, p.vmem_depth, p.simd_lanes)),
            "word_ready": Out(1),
            "counters": Out(data.StructLayout(counters)),
        }

    @property
    def latency(self):
        """Clocks from start to the first write of SPMM, for a row of one step whose words all come at once."""
        return (
            RowSequencer.latency
            + RowAddressGenerator.latency
            + SpmmIssue.latency
            + self._unit.latency
            + RowWriter.latency
        )

    def circuit(self):
        m = Module()
        p = self.parameters
        m.submodules.unit = self._unit
        m.submodules.issue = self._issue = SpmmIssue.for_core(p)
        m.submodules.reader = self._reader = RowReader.for_core(p)
        m.submodules.norm = self._norm = LayerNormController.for_core(p)
        m.submodules.writer = self._writer = RowWriter.for_core(p)
        self._is_spmm = self._named(m, self.control.command.opcode == Opcode.SPMM, "is_spmm")
        self._is_norm = self._named(m, self.control.command.opcode == Opcode.LAYER_NORM, "is_norm")
        self._decode(m)
        n_given = self._feed_rows(m)
        self._connect_memories(m)
        offered = self._select_command(m)
        self._collect(m)
        self._count(m, offered, n_given)
        return m

    @staticmethod
    def _named(m, value, name):
        signal = Signal.like(value, name=name)
        m.d.comb += signal.eq(value)
        return signal

    def _decode(self, m):
        """Sizes of a row."""
        command, lanes, word = self.control.command, ceil_log2(self.simd_lanes), ceil_log2(self.parameters.row_word)
        last_group = self._named(m, (command.n_in - 1)[:16] >> lanes, "last_group")
        last_word = self._named(m, (command.n_in - 1)[:16] >> word, "last_word")
        m.d.comb += [
            self._issue.turns.eq(last_group + 1),
            self._reader.last_word.eq(last_word),
            self._reader.is_pair.eq(Mux(self._is_norm, self._norm.loads, command.function < VectorOp.EXP)),
            self._norm.start.eq(self.control.start & self._is_norm & (self.control.n_active != 0)),
            self._norm.last_word.eq(last_word),
            self._norm.last_lane.eq(command.n_in - 1),
            self._norm.epsilon.as_value().eq(command.scale),
            self._writer.in_groups.eq(self._is_spmm),
            self._writer.last_result.eq(Mux(self._is_spmm, last_group, last_word)),
        ]

    def _feed_rows(self, m):
        """Fork each row to the readers, and its address to the writer. Returns the number of rows output."""
        command = self.control.command
        m.submodules.loop = loop = RowSequencer(max_tokens=self.max_tokens)
        m.submodules.placing = placing = RowAddressGenerator(max_tokens=self.max_tokens, imem_depth=self.imem_depth)
        placed = placing.placed
        place = placed.payload.places
        m.submodules.places = places = StreamQueue(width=len(place[0]), depth=self._rows_inside, storage="memory")
        m.d.comb += [
            loop.token.eq(self.control.token),
            loop.start.eq(self.control.start),
            loop.gated.eq((command.flags & FLAGS["gated"]).any()),
            loop.first.eq(command.first_row),
            loop.n_active.eq(self.control.n_active),
            loop.limit.eq(self.control.limit),
            placing.rows.payload.eq(loop.rows.payload.row),
            placing.rows.valid.eq(loop.rows.valid),
            loop.rows.ready.eq(placing.rows.ready),
        ]
        for index, (first, stride) in enumerate(
            (
                (command.source, command.source_stride),
                (command.source_2, command.source_2_stride),
                (command.destination, command.destination_stride),
            )
        ):
            m.d.comb += [placing.first[index].eq(first), placing.stride[index].eq(stride)]
        reader, loads = self._reader, self._norm.loads
        beta = self._named(m, (command.source_2 + command.source_2_stride)[: len(place[1])], "beta_place")
        requested = Signal(name="coefficients_requested")
        with m.If(self.control.start):
            m.d.sync += requested.eq(0)
        with m.Elif(loads & reader.rows.ready):
            m.d.sync += requested.eq(1)
        m.d.comb += [
            self._issue.rows.payload.eq(placed.payload.row),
            self._issue.rows.valid.eq(placed.valid & self._is_spmm & places.source.ready),
            reader.rows.payload.eq(Mux(loads, Cat(command.source_2[: len(place[0])], beta), Cat(place[0], place[1]))),
            reader.rows.valid.eq(Mux(loads, ~requested, placed.valid & ~self._is_spmm & places.source.ready)),
            places.source.payload.eq(place[2]),
            placed.ready.eq(
                places.source.ready & ~loads & Mux(self._is_spmm, self._issue.rows.ready, reader.rows.ready)
            ),
            places.source.valid.eq(placed.valid & placed.ready),
        ]
        connect(m, places.sink, self._writer.places)
        n_given = Signal.like(self.control.n_active, name="n_given")
        with m.If(self.control.start):
            m.d.sync += n_given.eq(0)
        with m.Elif(placed.valid & placed.ready):
            m.d.sync += n_given.eq(n_given + 1)
        return n_given

    @property
    def _rows_inside(self):
        """Largest number of rows in flight, of one step or word each."""
        through_unit = SpmmIssue.latency + self._unit.latency
        return max(through_unit, RowReader.latency + self._norm.words_inside) + 4

    def _connect_memories(self, m):
        issue, reader = self._issue, self._reader
        m.d.comb += [issue.start.eq(self.control.start), issue.command.eq(self.control.command)]
        connect(m, issue.mask, flipped(self.mask))
        connect(m, issue.probabilities, flipped(self.probabilities))
        connect(m, reader.imem, flipped(self.imem))

    def _select_command(self, m):
        """The unit's next command: a write into the banks, else a step of SPMM or a word, if one is ``offered``."""
        unit, terms, words = self._unit.command, self._issue.terms, self._reader.words
        payload = unit.payload
        (value, has_value), (word, has_word) = self._waiting_writes(m)
        offered = self._named(m, terms.valid | (words.valid & ~self._is_norm), "offered")
        writes = self._named(m, has_value | has_word, "writes")
        m.d.comb += [
            unit.valid.eq(offered | writes),
            terms.ready.eq(unit.ready & ~writes),
            words.ready.eq(Mux(self._is_norm, self._norm.words.ready, unit.ready & ~writes)),
            self._norm.words.payload.eq(words.payload),
            self._norm.words.valid.eq(words.valid & self._is_norm),
            payload.operation.eq(
                Mux(writes, VectorOp.WRITE_BANK, Mux(self._is_spmm, VectorOp.SPMM, self.control.command.function))
            ),
            payload.scope.eq(Scope.LANES),
            payload.first.eq(terms.payload.first),
            payload.last.eq(terms.payload.last),
        ]
        written_address = self._named(m, Mux(has_word, word.address, value.address), "written_address")
        for engine in range(self.n_banks):
            m.d.comb += [
                payload.enable[engine].eq(Mux(has_word, word.bank == engine, has_value | terms.payload.enable[engine])),
                payload.address[engine].eq(Mux(writes, written_address, terms.payload.address[engine])),
            ]
            for lane in range(self.simd_lanes):
                operands = self._operands(engine * self.simd_lanes + lane)
                if lane == 0:
                    operands[0] = Mux(self._is_spmm, terms.payload.probability[engine], operands[0])
                written = Mux(has_word, word.words[lane], value.elements[engine])
                m.d.comb += [
                    payload.lane_enable[engine][lane].eq(has_word | ~has_value | (value.lane == lane)),
                    payload.a[engine][lane].eq(Mux(writes, written, operands[0])),
                    payload.b[engine][lane].eq(operands[1]),
                ]
        return offered

    def _waiting_writes(self, m):
        """An element for every bank and a word for one, each with whether there is one, out of registers.

        They select the operation of all lanes, which is timing critical, so they are registered.
        """
        layout = self.value_write.payload.shape()
        m.submodules.values_waiting = waiting = StreamQueue(width=layout.size, depth=2)
        word = Signal.like(self.word_write, name="word", reset_less=True)
        has_word = Signal(name="has_word")
        with m.If(self.word_ready):
            m.d.sync += [word.eq(self.word_write), has_word.eq(self.word_write.valid)]
        m.d.comb += [
            self.word_ready.eq(~has_word | self._unit.command.ready),
            waiting.source.payload.eq(self.value_write.payload),
            waiting.source.valid.eq(self.value_write.valid),
            self.value_write.ready.eq(waiting.source.ready),
            waiting.sink.ready.eq(self._unit.command.ready & ~has_word),
        ]
        return (data.View(layout, waiting.sink.payload), waiting.sink.valid), (word, has_word)

    def _operands(self, element):
        """Both operands of an element of a word; the unit may have more lanes than a word has elements."""
        words = self._reader.words.payload
        return [words.left[element], words.right[element]] if element < self.parameters.row_word else [0, 0]

    def _collect(self, m):
        """Results to the writer, and the number of rows written."""
        result, normalised, writer = self._unit.result, self._norm.results, self._writer
        for element, target in enumerate(writer.results.payload):
            engine, lane = divmod(element, self.simd_lanes)
            word = result.payload["values"][engine][lane][:16]
            if engine == 0:
                word = Mux(self._is_spmm, result.payload.rounded[lane], word)
            m.d.comb += target.eq(Mux(self._is_norm, normalised.payload[element], word))
        m.d.comb += [
            writer.results.valid.eq(result.valid | normalised.valid),
            result.ready.eq(writer.results.ready),
            normalised.ready.eq(writer.results.ready),
        ]
        connect(m, writer.write, flipped(self.imem_write))

        self._is_running = Signal(name="is_running")
        n_written = Signal.like(self.control.rows_done, name="n_written")
        m.d.comb += [
            self.control.rows_done.eq(n_written),
            self.control.done.eq(self._is_running & (n_written == self.control.n_active)),
        ]
        with m.If(self.control.start):
            m.d.sync += [self._is_running.eq(1), n_written.eq(0)]
        with m.Else():
            m.d.sync += n_written.eq(n_written + writer.row_is_written)
            with m.If(self.control.done):
                m.d.sync += self._is_running.eq(0)

    def _count(self, m, offered, n_given):
        """Registered increments of the counters."""
        terms, words, results = self._issue.terms, self._reader.words, self._writer.results
        counted = Signal(self.counters.shape(), name="counted")
        n_enabled = sum(terms.payload.enable)
        m.d.sync += [
            counted.issues.eq(offered & terms.ready),
            counted.spmm_terms.eq(Mux(terms.valid & terms.ready, n_enabled, 0)),
            counted.waits_for_write.eq(results.valid & ~results.ready),
            counted.waits_for_rows.eq(
                self._is_running
                & ~(terms.valid | words.valid)
                & (n_given == self.control.limit)
                & (n_given != self.control.n_active)
            ),
        ]
        m.d.comb += self.counters.eq(counted)
