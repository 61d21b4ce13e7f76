"""VectorController: ELEMENTWISE and LAYER_NORM on the lanes of the vector unit."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from golden.spec.commands import FLAGS, Elementwise, Opcode
from hw.lib.division import quotient, remainder
from hw.lib.stream import StreamQueue
from hw.top.interfaces import UnitControl, imem_read, imem_write
from hw.top.parameters import CorePart, ImemWord, RowDim, SpecialLanes, Tokens, VectorLanes
from hw.top.rows.row_address_generator import RowAddressGenerator
from hw.top.rows.row_sequencer import RowSequencer
from hw.top.vector.layer_norm_controller import LayerNormController
from hw.top.vector.row_reader import RowReader
from hw.top.vector.word_splitter import WordSplitter
from hw.top.vector.word_writer import WordWriter
from hw.units.vector_unit.unit import VectorUnit

__all__ = ["VectorController"]

_TWO_OPERANDS = tuple(item for item in Elementwise if item.n_operands == 2)


@dataclass(frozen=True, kw_only=True)
class VectorControllerParameters(SpecialLanes, VectorLanes, RowDim, Tokens, ImemWord):
    pass


class VectorController(CorePart):
    """Executes ELEMENTWISE and LAYER_NORM on pieces of vector_lanes elements of the words of rows.

    * ELEMENTWISE: a clock a piece, ``vector_lanes / special_lanes`` clocks if it is a function, and a clock more a word
      if there are two operands.
    * LAYER_NORM: a clock a piece, in a unit of its own. Gamma and beta are read first, regardless of ``limit``.

    Results come in order, in whole words; a row is done when all of it is written. The words of IMEM may come any time
    after their address. ``counters`` are the increments of one clock, delayed by a clock.
    """

    Parameters = VectorControllerParameters
    members_doc = {
        "control": "what to do, and how far it is",
        "imem": "words of IMEM",
        "imem_write": "a word of IMEM to write",
        "counters": "commands of the unit, clocks in which a result was not taken",
    }

    def prepare(self):
        p = self.parameters
        self._unit = VectorUnit(
            n_engines=1,
            n_lanes=p.n_vector_lanes,
            operations=tuple(item.name.lower() for item in Elementwise),
            special_lanes=p.n_special_lanes,
        )

    @staticmethod
    def members(p):
        return {
            "control": In(UnitControl(p.max_tokens)),
            "imem": Out(imem_read(p)),
            "imem_write": Out(stream.Signature(imem_write(p))),
            "counters": Out(data.StructLayout({"issues": 1, "waits_for_write": 1})),
        }

    @property
    def latency(self):
        """Clocks from start to the first write of ELEMENTWISE, for a word of one piece and no function."""
        reading = RowSequencer.latency + RowAddressGenerator.latency + RowReader.latency
        return reading + self._unit.latency + WordWriter.latency

    def circuit(self):
        m = Module()
        p = self.parameters
        m.submodules.unit = self._unit
        m.submodules.reader = self._reader = RowReader.for_core(p)
        m.submodules.splitter = self._splitter = WordSplitter(word=p.row_word, piece=p.n_vector_lanes)
        m.submodules.norm = self._norm = LayerNormController.for_core(p)
        m.submodules.writer = self._writer = WordWriter.for_core(p)
        self._is_norm = Signal(name="is_norm")
        m.d.comb += self._is_norm.eq(self.control.command.opcode == Opcode.LAYER_NORM)
        self._decode(m)
        self._feed_rows(m)
        self._issue(m)
        self._collect(m)
        return m

    def _decode(self, m):
        """Sizes of a row."""
        p, command, norm = self.parameters, self.control.command, self._norm
        last_word, last_lane = Signal(16, name="last_word"), Signal(ceil_log2(p.row_word), name="last_lane")
        last_element = Signal(16, name="last_element")
        is_pair = Signal(name="is_pair")
        m.d.comb += [
            last_element.eq(command.n_in - 1),
            last_word.eq(quotient(last_element, p.row_word)),
            last_lane.eq(remainder(last_element, p.row_word)),
            is_pair.eq(Cat(command.function == item for item in _TWO_OPERANDS).any()),
            self._reader.last_word.eq(last_word),
            self._reader.is_pair.eq(Mux(self._is_norm, norm.loads, is_pair)),
            norm.start.eq(self.control.start & self._is_norm & (self.control.n_active != 0)),
            norm.last_word.eq(last_word),
            norm.last_lane.eq(last_lane),
            norm.epsilon.as_value().eq(command.scale),
            self._writer.last_word.eq(last_word),
        ]

    def _feed_rows(self, m):
        """Each row to the reader, and its address to the writer."""
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
        beta = Signal(len(place[1]), name="beta_place")
        requested = Signal(name="coefficients_requested")
        with m.If(self.control.start):
            m.d.sync += requested.eq(0)
        with m.Elif(loads & reader.rows.ready):
            m.d.sync += requested.eq(1)
        m.d.comb += [
            beta.eq(command.source_2 + command.source_2_stride),
            reader.rows.payload.eq(Mux(loads, Cat(command.source_2[: len(place[0])], beta), Cat(place[0], place[1]))),
            reader.rows.valid.eq(Mux(loads, ~requested, placed.valid & places.source.ready)),
            places.source.payload.eq(place[2]),
            placed.ready.eq(places.source.ready & ~loads & reader.rows.ready),
            places.source.valid.eq(placed.valid & placed.ready),
        ]
        connect(m, places.sink, self._writer.places)
        connect(m, reader.imem, flipped(self.imem))
        connect(m, reader.words, self._splitter.words)

    @property
    def _rows_inside(self):
        """Largest number of rows in flight, of one piece each."""
        return max(self._unit.latency, self._norm.pieces_inside) + RowReader.latency + 4

    def _issue(self, m):
        """Pieces to the unit or to the layer-norm unit."""
        unit, norm, pieces = self._unit.command, self._norm, self._splitter.pieces
        m.d.comb += [
            unit.payload.operation.eq(self.control.command.function),
            unit.payload.a[0].eq(pieces.payload.left),
            unit.payload.b[0].eq(pieces.payload.right),
            unit.valid.eq(pieces.valid & ~self._is_norm),
            norm.pieces.payload.eq(pieces.payload),
            norm.pieces.valid.eq(pieces.valid & self._is_norm),
            pieces.ready.eq(Mux(self._is_norm, norm.pieces.ready, unit.ready)),
        ]
        m.d.sync += self.counters.issues.eq(unit.valid & unit.ready)

    def _collect(self, m):
        """Results to the writer, and the number of rows written."""
        result, normalised, writer = self._unit.result, self._norm.results, self._writer
        m.d.comb += [
            *(
                target.eq(Mux(self._is_norm, other, value[:16]))
                for target, value, other in zip(
                    writer.results.payload, result.payload["values"][0], normalised.payload, strict=True
                )
            ),
            writer.results.valid.eq(result.valid | normalised.valid),
            result.ready.eq(writer.results.ready),
            normalised.ready.eq(writer.results.ready),
        ]
        connect(m, writer.write, flipped(self.imem_write))
        m.d.sync += self.counters.waits_for_write.eq(result.valid & ~result.ready)

        is_running = Signal(name="is_running")
        n_written = Signal.like(self.control.rows_done, name="n_written")
        m.d.comb += [
            self.control.rows_done.eq(n_written),
            self.control.done.eq(is_running & (n_written == self.control.n_active)),
        ]
        with m.If(self.control.start):
            m.d.sync += [is_running.eq(1), n_written.eq(0)]
        with m.Else():
            m.d.sync += n_written.eq(n_written + writer.row_is_written)
            with m.If(self.control.done):
                m.d.sync += is_running.eq(0)
