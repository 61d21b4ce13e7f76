"""StoreUnit: STORE: every memory of the core to the store stream."""

from dataclasses import dataclass

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import ceil_log2

from golden.spec.commands import Memory
from hw.lib.division import quotient
from hw.lib.stream import SkidBuffer, StreamQueue
from hw.top.controller.counters import COUNTER_WIDTH, COUNTERS
from hw.top.interfaces import UnitControl, imem_read, mask_read
from hw.top.parameters import CorePart, ImemWord, KeyMask

__all__ = ["StoreUnit"]

_IN_FLIGHT = 4
"""Words that were asked for and are not sent, enough for one a clock."""

STORED = tuple(item for item in Memory if item not in (Memory.WEIGHTS, Memory.VALUES))


@dataclass(frozen=True, kw_only=True)
class StoreUnitParameters(ImemWord, KeyMask):
    pass


class StoreUnit(CorePart):
    """Executes STORE, one beat a clock; row k of IMEM is read when ``limit`` > k.

    Words of IMEM and rows of masks come through arbitrated ports. The other memories have one clock of latency, and
    hold the word until the next read. ``which`` selects the memory of ``read``. Data are in the lowest bits of a beat;
    the others are 0. The command is done when its last beat is in the buffer of the stream.
    """

    Parameters = StoreUnitParameters
    members_doc = {
        "control": "what to do, and how far it is",
        "store": "store stream; last marks a command's last beat",
        "rows": "words of IMEM",
        "masks": "rows of the mask memory",
        "which": "the memory, of golden.spec.commands.Memory",
        "read": "read address of one of the other memories",
        "read_address": "the word",
        "read_scores": "the scores read last, one a bank",
        "read_probabilities": "the probabilities read last, one a bank",
        "read_mass": "the retained mass read last",
        "counters": "one word a counter",
        "token_count": "entries of the token list",
        "list_enable": "read an entry of the list",
        "list_address": "which one",
        "list_row": "the entry read last",
        "beats": "a beat is read, in this clock",
    }

    @staticmethod
    def members(p):
        beat = 16 * p.row_word
        return {
            "control": In(UnitControl(p.max_tokens)),
            "store": Out(stream.Signature(data.StructLayout({"data": beat, "last": 1}))),
            "rows": Out(imem_read(p)),
            "masks": Out(mask_read(p)),
            "which": Out(len(Memory).bit_length()),
            "read": Out(1),
            "read_address": Out(20),
            "read_scores": In(16 * p.n_banks),
            "read_probabilities": In(16 * p.n_banks),
            "read_mass": In(16),
            "counters": In(data.ArrayLayout(COUNTER_WIDTH, len(COUNTERS))),
            "token_count": In(range(p.max_tokens + 1)),
            "list_enable": Out(1),
            "list_address": Out(p.token_width),
            "list_row": In(p.token_width),
            "beats": Out(1),
        }

    def circuit(self):
        m = Module()
        control, command = self.control, self.control.command
        memory = self._memory = {item: Signal(name=f"is_{item.name.lower()}") for item in STORED}
        m.d.comb += [signal.eq(command.function == item) for item, signal in memory.items()]
        m.d.comb += self.which.eq(command.function)
        is_running, step, is_last, may_read = Signal(), Signal(), Signal(), Signal()
        address, piece, asks = self._iterate(m, step, is_last, may_read)
        # What belongs to each word on its way, in order.
        tag = data.StructLayout({"piece": len(piece), "entry": range(max(2, len(COUNTERS))), "is_count": 1, "last": 1})
        m.submodules.tags = tags = StreamQueue(width=tag.size, depth=_IN_FLIGHT)
        here = data.View(tag, tags.sink.payload)
        is_row, is_mask = memory[Memory.ROWS], memory[Memory.MASK]
        is_direct = ~(is_row | is_mask)
        direct = self._direct(m, is_running & may_read & is_direct & tags.source.ready, address)
        offers = Signal()
        m.d.comb += [
            offers.eq(is_running & may_read & tags.source.ready),
            self.rows.address.payload.eq(address),
            self.rows.address.valid.eq(offers & is_row),
            self.masks.address.payload.eq(address),
            self.masks.address.valid.eq(offers & is_mask & asks),
            step.eq(
                Mux(is_row, offers & self.rows.address.ready, 0)
                | Mux(is_mask, offers & (self.masks.address.ready | ~asks), 0)
                | Mux(is_direct, self.read, 0)
            ),
            tags.source.valid.eq(step),
            tags.source.payload.eq(Cat(piece, address[: len(here.entry)], address == 0, is_last)),
            self.beats.eq(step),
        ]
        with m.If(control.start):
            m.d.sync += is_running.eq(1)
        with m.Elif(step & is_last):
            m.d.sync += is_running.eq(0)
        m.submodules.sending = sending = SkidBuffer(width=len(self.store.payload.data) + 1)
        has_word, word = Signal(), Signal(len(self.store.payload.data), name="word_read")
        sends = Signal()
        m.d.comb += [
            has_word.eq(Mux(is_row, self.rows.word.valid, Mux(is_mask, self.masks.word.valid, direct.valid))),
            sends.eq(has_word & tags.sink.valid & sending.source.ready),
            tags.sink.ready.eq(sends),
            self.rows.word.ready.eq(sends & is_row),
            self.masks.word.ready.eq(sends & is_mask & (here.piece == self.parameters.mask_pieces - 1)),
            direct.ready.eq(sends & is_direct),
            sending.source.valid.eq(has_word & tags.sink.valid),
            sending.source.payload.eq(Cat(word, here.last)),
            self.store.valid.eq(sending.sink.valid),
            sending.sink.ready.eq(self.store.ready),
            Cat(self.store.payload.data, self.store.payload.last).eq(sending.sink.payload),
            control.done.eq(sends & here.last),
            control.rows_done.eq(0),
        ]
        self._select(m, word, direct.payload, here)
        return m

    def _iterate(self, m, step, is_last, may_read):
        """Iterates over rows and, within them, words or pieces: address, piece, whether a new word is to be read."""
        p, command, memory = self.parameters, self.control.command, self._memory
        is_rows = memory[Memory.ROWS]
        last_inner = Signal(range(max((1 << 16) // p.row_word, p.mask_pieces) + 1))
        with m.If(is_rows):
            m.d.comb += last_inner.eq(quotient(command.n_in + p.row_word - 1, p.row_word) - 1)
        with m.Elif(memory[Memory.MASK]):
            m.d.comb += last_inner.eq(p.mask_pieces - 1)
        n_outer = Signal(17)
        m.d.comb += n_outer.eq(command.n_rows)
        with m.If(memory[Memory.TOKENS]):
            m.d.comb += n_outer.eq(self.token_count + 1)
        with m.Elif(memory[Memory.COUNTERS]):
            m.d.comb += n_outer.eq(len(COUNTERS))
        first = Signal(20)
        m.d.comb += first.eq(command.source)
        with m.If(memory[Memory.MASK]):
            m.d.comb += first.eq(Mux(command.mask == 0, 0, p.mask_base(command.mask) + command.first_row))
        with m.Elif(memory[Memory.MASS]):
            m.d.comb += first.eq(command.first_row)
        with m.Elif(memory[Memory.TOKENS] | memory[Memory.COUNTERS]):
            m.d.comb += first.eq(0)
        outer, inner, row_address = Signal(17), Signal.like(last_inner), Signal(20)
        ends_row = Signal()
        m.d.comb += [
            ends_row.eq(inner == last_inner),
            is_last.eq(ends_row & (outer + 1 == n_outer)),
            may_read.eq(~is_rows | (outer < self.control.limit)),
        ]
        with m.If(self.control.start):
            m.d.sync += [outer.eq(0), inner.eq(0), row_address.eq(first)]
        with m.Elif(step):
            m.d.sync += inner.eq(Mux(ends_row, 0, inner + 1))
            with m.If(ends_row):
                m.d.sync += outer.eq(outer + 1)
                m.d.sync += row_address.eq(row_address + Mux(is_rows, command.source_stride, 1))
        address = Signal(20)
        m.d.comb += address.eq(row_address + Mux(is_rows, inner, 0))
        return address, inner[: max(1, ceil_log2(p.mask_pieces))], inner == 0

    def _direct(self, m, asks, address):
        """Reads of the memories without arbitration, as a stream of their words."""
        p = self.parameters
        layout = data.StructLayout(
            {"scores": 16 * p.n_banks, "probabilities": 16 * p.n_banks, "mass": 16, "row": p.token_width}
        )
        m.submodules.first = first = SkidBuffer(width=layout.size)
        m.submodules.second = second = SkidBuffer(width=layout.size)
        connect(m, first.sink, second.source)
        held, arrives = Signal(range(3)), Signal()
        m.d.comb += [
            self.read.eq(asks & (held != 2)),
            self.read_address.eq(address),
            self.list_enable.eq(self.read & self._memory[Memory.TOKENS] & (address != 0)),
            self.list_address.eq(address - 1),
            first.source.valid.eq(arrives),
            first.source.payload.eq(Cat(self.read_scores, self.read_probabilities, self.read_mass, self.list_row)),
        ]
        m.d.sync += [arrives.eq(self.read), held.eq(held + self.read - (second.sink.valid & second.sink.ready))]
        return second.sink

    def _select(self, m, word, direct, tag):
        """The word of the memory that is stored."""
        p, memory = self.parameters, self._memory
        width = 16 * p.n_banks
        piece_width = min(p.n_banks * p.key_slots, len(word))
        pieces = Array(self.masks.word.payload.word_select(piece, piece_width) for piece in range(p.mask_pieces))
        with m.If(memory[Memory.ROWS]):
            m.d.comb += word.eq(self.rows.word.payload)
        with m.Elif(memory[Memory.SCORES]):
            m.d.comb += word.eq(direct[:width])
        with m.Elif(memory[Memory.PROBABILITIES]):
            m.d.comb += word.eq(direct[width : 2 * width])
        with m.Elif(memory[Memory.MASK]):
            m.d.comb += word.eq(pieces[tag.piece])
        with m.Elif(memory[Memory.TOKENS]):
            m.d.comb += word.eq(Mux(tag.is_count, self.token_count, direct[2 * width + 16 :]))
        with m.Elif(memory[Memory.MASS]):
            m.d.comb += word.eq(direct[2 * width : 2 * width + 16])
        with m.Elif(memory[Memory.COUNTERS]):
            m.d.comb += word.eq(Array(self.counters)[tag.entry])
