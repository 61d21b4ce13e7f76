"""LoadStore: moves data between the external streams and every memory of the core."""

from dataclasses import dataclass

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import ceil_log2

from golden.spec.commands import FLAGS, Memory, Opcode
from hw.lib.stream import SkidBuffer
from hw.top.command_layout import COMMAND_LAYOUT
from hw.top.controller.counters import COUNTER_WIDTH, COUNTERS
from hw.top.host.token_compare import TokenCompare
from hw.top.host.token_list import TokenList
from hw.top.interfaces import token_write
from hw.top.parameters import Banks, CorePart, Lanes, Latent, Masks, SimdLanes, Tokens

__all__ = ["LoadStore"]

_HELD = 2
"""Buffered beats of the store stream: one in flight while another one is taken."""


@dataclass(frozen=True, kw_only=True)
class LoadStoreParameters(Latent, Masks, Tokens, SimdLanes, Lanes, Banks):
    pass


class LoadStore(CorePart):
    """Executes LOAD, STORE and CTR, one beat a clock; no other unit runs meanwhile.

    Every memory is read with one clock of latency. ``which`` selects the memory of ``write`` and ``read``, ``part`` the
    bank, engine or piece of a mask row. Data are in the lowest bits of a beat; the others are ignored, or 0.
    """

    Parameters = LoadStoreParameters
    members_doc = {
        "start": "begin with the command",
        "command": "constant from start to done",
        "mask_base": "first row of the mask that is loaded or stored",
        "done": "everything is written, or the last beat is in flight",
        "load": "load stream",
        "store": "store stream; last marks a command's last beat",
        "write": "write the beat to address (and part) of the memory",
        "write_ready": "whether the memory can be written",
        "write_address": "the word",
        "write_part": "bank, engine or piece",
        "write_data": "the beat",
        "which": "the memory, of golden.spec.commands.Memory",
        "read": "read address of the memory",
        "read_address": "the word",
        "read_rows": "the word of IMEM read last",
        "read_mask": "the mask row read last",
        "read_scores": "the scores read last, one a bank",
        "read_probabilities": "the probabilities read last, one a bank",
        "read_mass": "the retained mass read last",
        "counters": "one word a counter",
        "token": "write to every copy of the token list",
        "tokens_valid": "the list is complete",
        "token_count": "number of entries",
        "token_largest": "its largest entry",
        "tokens_ascending": "its entries are strictly ascending",
    }

    @staticmethod
    def members(p):
        beat = 16 * p.row_word
        parts = max(p.n_banks, p.mask_pieces)
        return {
            "start": In(1),
            "command": In(COMMAND_LAYOUT),
            "mask_base": In(range(p.mask_rows)),
            "done": Out(1),
            "load": In(stream.Signature(beat)),
            "store": Out(stream.Signature(data.StructLayout({"data": beat, "last": 1}))),
            "which": Out(len(Memory).bit_length()),
            "write": Out(1),
            "write_ready": In(1),
            "write_address": Out(20),
            "write_part": Out(ceil_log2(parts)),
            "write_data": Out(beat),
            "read": Out(1),
            "read_address": Out(20),
            "read_rows": In(beat),
            "read_mask": In(p.n_banks * p.key_slots),
            "read_scores": In(16 * p.n_banks),
            "read_probabilities": In(16 * p.n_banks),
            "read_mass": In(16),
            "counters": In(data.ArrayLayout(COUNTER_WIDTH, len(COUNTERS))),
            "token": Out(token_write(p.max_tokens)),
            "tokens_valid": Out(1),
            "token_count": Out(range(p.max_tokens + 1)),
            "token_largest": Out(p.token_width),
            "tokens_ascending": Out(1),
        }

    def circuit(self):
        m = Module()
        m.submodules.tokens = self._tokens = tokens = TokenList(max_tokens=self.max_tokens)
        m.submodules.compare = compare = TokenCompare.for_core(self.parameters)
        command = self.command
        is_load, is_store, is_compare = (
            self._decoded(m, command.opcode == code, code.name) for code in (Opcode.LOAD, Opcode.STORE, Opcode.CTR)
        )
        memory = self._memory = {
            item: self._decoded(m, ~is_compare & (command.function == item), item.name) for item in Memory
        }
        m.d.comb += [self.which.eq(command.function), self.token.eq(tokens.token)]
        m.d.comb += [
            self.tokens_valid.eq(tokens.is_valid),
            self.token_count.eq(tokens.count),
            self.token_largest.eq(tokens.largest),
            self.tokens_ascending.eq(tokens.is_ascending),
        ]
        is_running = Signal()
        step = Signal()  # one beat is taken from the load stream, or read for the store stream
        is_last, address, part = self._iterate(m, step, is_store)
        ends = Signal()
        nothing = Signal()  # an empty token list
        m.d.comb += [
            nothing.eq(is_load & memory[Memory.TOKENS] & (command.n_rows == 0)),
            ends.eq(is_running & (nothing | (step & is_last))),
            self.done.eq(ends | (is_compare & compare.done)),
        ]
        with m.If(self.start):
            m.d.sync += is_running.eq(~is_compare)
        with m.Elif(ends):
            m.d.sync += is_running.eq(0)

        m.d.comb += [
            compare.start.eq(self.start & is_compare),
            compare.theta.eq(command.theta),
            compare.restart.eq((command.flags & FLAGS["restart"]).any()),
            compare.beats.payload.eq(self.load.payload),
            compare.beats.valid.eq(self.load.valid & is_compare),
            self.load.ready.eq(
                Mux(is_compare, compare.beats.ready, is_running & is_load & ~nothing & self.write_ready)
            ),
            self.write.eq(is_running & is_load & self.load.valid & ~nothing & self.write_ready),
            self.write_address.eq(address),
            self.write_part.eq(part),
            self.write_data.eq(self.load.payload),
        ]
        fills_list = is_compare | (is_load & memory[Memory.TOKENS])
        m.d.comb += [
            tokens.restart.eq(self.start & fills_list),
            tokens.append.eq(Mux(is_compare, compare.append, self.write & memory[Memory.TOKENS])),
            tokens.row.eq(Mux(is_compare, compare.row, self.load.payload)),
            tokens.complete.eq(fills_list & self.done),
        ]
        fetch = self._store(m, is_running & is_store, is_last, address, part)
        m.d.comb += step.eq(Mux(is_store, fetch, self.write))
        return m

    @staticmethod
    def _decoded(m, condition, name):
        """A condition as a named signal."""
        signal = Signal(name=f"is_{name.lower()}")
        m.d.comb += signal.eq(condition)
        return signal

    def _iterate(self, m, step, is_store):
        """Iterates over rows and, within them, words, banks or pieces: last flag, address, part."""
        p, command, memory = self.parameters, self.command, self._memory
        is_rows = memory[Memory.ROWS]
        words = Signal(range((1 << 16) // p.row_word + 1))
        m.d.comb += words.eq((command.n_in + p.row_word - 1) >> ceil_log2(p.row_word))
        last_inner = Signal(range(max(1 << 16, self.n_banks)))
        with m.If(is_rows):
            m.d.comb += last_inner.eq(words - 1)
        with m.Elif(memory[Memory.WEIGHTS] | memory[Memory.VALUES]):
            m.d.comb += last_inner.eq(self.n_banks - 1)
        with m.Elif(memory[Memory.MASK]):
            m.d.comb += last_inner.eq(p.mask_pieces - 1)
        n_outer = Signal(17)
        m.d.comb += n_outer.eq(command.n_rows)
        with m.If(is_store & memory[Memory.TOKENS]):
            m.d.comb += n_outer.eq(self._tokens.count + 1)
        with m.Elif(memory[Memory.COUNTERS]):
            m.d.comb += n_outer.eq(len(COUNTERS))

        first = Signal(16)
        with m.If(is_store):
            m.d.comb += first.eq(command.source)
        with m.Else():
            m.d.comb += first.eq(command.destination)
        with m.If(memory[Memory.WEIGHTS] | memory[Memory.VALUES]):
            m.d.comb += first.eq(command.bank_address)
        with m.Elif(memory[Memory.MASK]):
            m.d.comb += first.eq(self.mask_base)
        with m.Elif(memory[Memory.TOKENS] | memory[Memory.MASS] | memory[Memory.COUNTERS]):
            m.d.comb += first.eq(0)
        stride = Signal(16)
        m.d.comb += stride.eq(Mux(is_rows, Mux(is_store, command.source_stride, command.destination_stride), 1))

        outer, inner, row_address = Signal(17), Signal.like(last_inner), Signal(20)
        ends_row = Signal()
        m.d.comb += ends_row.eq(inner == last_inner)
        with m.If(self.start):
            m.d.sync += [outer.eq(0), inner.eq(0), row_address.eq(first)]
        with m.Elif(step):
            m.d.sync += inner.eq(Mux(ends_row, 0, inner + 1))
            with m.If(ends_row):
                m.d.sync += [outer.eq(outer + 1), row_address.eq(row_address + stride)]
        address = Signal(20)
        m.d.comb += address.eq(row_address + Mux(is_rows, inner, 0))
        return ends_row & (outer + 1 == n_outer), address, inner

    def _store(self, m, is_storing, is_last, address, part):
        """Reads while the buffer has room, and sends the words read."""
        p, memory, tokens = self.parameters, self._memory, self._tokens
        held = Signal(range(_HELD + 1))
        fetch, arrives, last = Signal(), Signal(), Signal()
        part_read, entry = Signal.like(part), Signal(range(max(len(COUNTERS), 2)))
        is_count = Signal()
        m.submodules.first = first = SkidBuffer(width=len(self.load.payload) + 1)
        m.submodules.second = second = SkidBuffer(width=len(self.load.payload) + 1)
        connect(m, first.sink, second.source)
        m.d.comb += fetch.eq(is_storing & (held != _HELD))
        m.d.sync += [
            arrives.eq(fetch),
            held.eq(held + fetch - (self.store.valid & self.store.ready)),
            last.eq(is_last),
            part_read.eq(part),
            entry.eq(address),
            is_count.eq(address == 0),
        ]
        m.d.comb += [
            self.read.eq(fetch),
            self.read_address.eq(address),
            tokens.read_enable.eq(fetch & memory[Memory.TOKENS] & (address != 0)),
            tokens.read_address.eq(address - 1),
        ]
        piece_width = min(len(self.read_mask), len(self.load.payload))
        pieces = Array(self.read_mask.word_select(piece, piece_width) for piece in range(p.mask_pieces))
        word = Signal.like(self.load.payload, name="read_word")
        with m.If(memory[Memory.ROWS]):
            m.d.comb += word.eq(self.read_rows)
        with m.Elif(memory[Memory.SCORES]):
            m.d.comb += word.eq(self.read_scores)
        with m.Elif(memory[Memory.PROBABILITIES]):
            m.d.comb += word.eq(self.read_probabilities)
        with m.Elif(memory[Memory.MASK]):
            m.d.comb += word.eq(pieces[part_read])
        with m.Elif(memory[Memory.TOKENS]):
            m.d.comb += word.eq(Mux(is_count, tokens.count, tokens.read_row))
        with m.Elif(memory[Memory.MASS]):
            m.d.comb += word.eq(self.read_mass)
        with m.Elif(memory[Memory.COUNTERS]):
            m.d.comb += word.eq(Array(self.counters)[entry])
        m.d.comb += [
            first.source.valid.eq(arrives),
            first.source.payload.eq(Cat(word, last)),
            self.store.valid.eq(second.sink.valid),
            second.sink.ready.eq(self.store.ready),
            Cat(self.store.payload.data, self.store.payload.last).eq(second.sink.payload),
        ]
        return fetch
