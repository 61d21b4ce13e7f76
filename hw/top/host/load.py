"""LoadUnit: LOAD and CTR: the load stream into every memory of the core, or through the token selector."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.commands import FLAGS, Memory, Opcode
from hw.lib.division import quotient
from hw.top.host.token_compare import TokenCompare
from hw.top.host.token_list import TokenList
from hw.top.interfaces import UnitControl, token_write
from hw.top.parameters import Banks, CorePart, Lanes, Latent, MaskDepth, SimdLanes, Tokens

__all__ = ["LoadUnit", "LoadUnitParameters"]

LOADED = tuple(item for item in Memory if item != Memory.COUNTERS)


@dataclass(frozen=True, kw_only=True)
class LoadUnitParameters(Latent, MaskDepth, Tokens, SimdLanes, Lanes, Banks):
    def slice_width(self, memory):
        """Bits of a beat that are written in one clock."""
        row = self.n_banks * self.key_slots
        return {
            Memory.WEIGHTS: 16 * self.n_lanes,
            Memory.VALUES: 16 * self.simd_lanes,
            Memory.SCORES: 16 * self.n_banks,
            Memory.PROBABILITIES: 16 * self.n_banks,
            Memory.MASK: min(row, 16 * self.row_word),
            Memory.TOKENS: 16,
            Memory.MASS: 16,
        }.get(memory, 16 * self.row_word)

    def slices(self, memory):
        """Clocks that a beat takes."""
        return 16 * self.row_word // self.slice_width(memory)


class LoadUnit(CorePart):
    """Takes the beats of a LOAD in one or more slices, a slice a clock, and writes each to the memory.

    A beat holds as many words, rows or entries as it has space for, see :mod:`golden.core.streams`. ``which`` selects
    the memory of ``write``, ``part`` the bank or the piece of a mask row. A write waits for
    ``write_ready``. Rows of IMEM are done when they are written.

    CTR passes the beats to the token selector, whose tokens fill the token list, as LOAD TOKENS does.
    """

    Parameters = LoadUnitParameters
    members_doc = {
        "control": "what to do, and how far it is; it waits for no rows",
        "load": "load stream",
        "write": "write the slice to address (and part) of the memory",
        "write_ready": "whether the memory can be written",
        "write_address": "the word",
        "write_part": "bank, or piece of a mask row",
        "write_data": "the slice, in the lowest bits",
        "which": "the memory, of golden.spec.commands.Memory",
        "token": "write to every copy of the token list",
        "tokens_valid": "the list is complete",
        "token_count": "number of entries",
        "token_largest": "its largest entry",
        "tokens_ascending": "its entries are strictly ascending",
        "list_enable": "read an entry of the list",
        "list_address": "which one",
        "list_row": "the entry read last",
    }

    @staticmethod
    def members(p):
        beat = 16 * p.row_word
        return {
            "control": In(UnitControl(p.max_tokens)),
            "load": In(stream.Signature(beat)),
            "which": Out(len(Memory).bit_length()),
            "write": Out(1),
            "write_ready": In(1),
            "write_address": Out(20),
            "write_part": Out(ceil_log2(max(p.n_banks, p.mask_pieces))),
            "write_data": Out(beat),
            "token": Out(token_write(p.max_tokens)),
            "tokens_valid": Out(1),
            "token_count": Out(range(p.max_tokens + 1)),
            "token_largest": Out(p.token_width),
            "tokens_ascending": Out(1),
            "list_enable": In(1),
            "list_address": In(p.token_width),
            "list_row": Out(p.token_width),
        }

    def circuit(self):
        m = Module()
        m.submodules.tokens = tokens = TokenList(max_tokens=self.max_tokens)
        m.submodules.compare = compare = TokenCompare.for_core(self.parameters)
        control, command = self.control, self.control.command
        is_compare = Signal()
        m.d.comb += is_compare.eq(command.opcode == Opcode.CTR)
        memory = self._memory = {item: Signal(name=f"is_{item.name.lower()}") for item in LOADED}
        m.d.comb += [signal.eq(~is_compare & (command.function == item)) for item, signal in memory.items()]
        is_running, step, is_last, ends_row = Signal(), Signal(), Signal(), Signal()
        address, part = self._iterate(m, step, is_last, ends_row)
        compares = self.load.valid & is_compare & compare.beats.ready
        is_end = Mux(is_compare, compare.is_last, is_last)
        slices, ends_beat = self._slice(m, step | compares, is_end, is_compare)
        ends, nothing = Signal(), Signal()  # nothing: an empty token list
        m.d.comb += [
            nothing.eq(memory[Memory.TOKENS] & (command.n_rows == 0)),
            ends.eq(is_running & (nothing | (step & is_last))),
            step.eq(is_running & self.load.valid & ~nothing & self.write_ready),
            self.which.eq(command.function),
            self.write.eq(is_running & self.load.valid & ~nothing),
            self.write_address.eq(address),
            self.write_part.eq(part),
            self.write_data.eq(slices),
            self.load.ready.eq(ends_beat & Mux(is_compare, compare.beats.ready, step)),
            compare.start.eq(control.start & is_compare),
            compare.theta.eq(command.theta),
            compare.restart.eq((command.flags & FLAGS["restart"]).any()),
            compare.beats.payload.eq(slices),
            compare.beats.valid.eq(self.load.valid & is_compare),
        ]
        with m.If(control.start):
            m.d.sync += is_running.eq(~is_compare)
        with m.Elif(ends):
            m.d.sync += is_running.eq(0)
        # A row that is written in this clock can be read from the next one on.
        rows_done = Signal(range(self.max_tokens + 1))
        with m.If(control.start):
            m.d.sync += rows_done.eq(0)
        with m.Elif(step & ends_row):
            m.d.sync += rows_done.eq(rows_done + 1)
        done = Signal()
        m.d.sync += done.eq(ends | (is_compare & compare.done))
        m.d.comb += [control.done.eq(done), control.rows_done.eq(rows_done)]
        fills_list = is_compare | memory[Memory.TOKENS]
        m.d.comb += [
            tokens.restart.eq(control.start & fills_list),
            tokens.append.eq(Mux(is_compare, compare.append, step & memory[Memory.TOKENS])),
            tokens.row.eq(Mux(is_compare, compare.row, slices)),
            tokens.complete.eq(fills_list & (ends | (is_compare & compare.done))),
            self.token.eq(tokens.token),
            self.tokens_valid.eq(tokens.is_valid),
            self.token_count.eq(tokens.count),
            self.token_largest.eq(tokens.largest),
            self.tokens_ascending.eq(tokens.is_ascending),
            tokens.read_enable.eq(self.list_enable),
            tokens.read_address.eq(self.list_address),
            self.list_row.eq(tokens.read_row),
        ]
        return m

    def _iterate(self, m, step, is_last, ends_row):
        """Iterates over rows or words and, within them, words, banks or pieces: address and part."""
        p, command, memory = self.parameters, self.control.command, self._memory
        is_rows = memory[Memory.ROWS]
        words = Signal(range((1 << 16) // p.row_word + 1))
        m.d.comb += words.eq(quotient(command.n_in + p.row_word - 1, p.row_word))
        last_inner = Signal(range(max((1 << 16) // p.row_word, p.n_banks, p.mask_pieces) + 1))
        with m.If(is_rows):
            m.d.comb += last_inner.eq(words - 1)
        with m.Elif(memory[Memory.WEIGHTS] | memory[Memory.VALUES]):
            m.d.comb += last_inner.eq(p.n_banks - 1)
        with m.Elif(memory[Memory.MASK]):
            m.d.comb += last_inner.eq(p.mask_pieces - 1)
        first = Signal(20)
        m.d.comb += first.eq(command.destination)
        with m.If(memory[Memory.WEIGHTS] | memory[Memory.VALUES]):
            m.d.comb += first.eq(command.bank_address)
        with m.Elif(memory[Memory.MASK]):
            m.d.comb += first.eq(Mux(command.mask_out == 0, 0, p.mask_base(command.mask_out) + command.first_row))
        with m.Elif(memory[Memory.MASS]):
            m.d.comb += first.eq(command.first_row)
        outer, inner, row_address = Signal(17), Signal.like(last_inner), Signal(20)
        m.d.comb += [ends_row.eq(inner == last_inner), is_last.eq(ends_row & (outer + 1 == command.n_rows))]
        with m.If(self.control.start):
            m.d.sync += [outer.eq(0), inner.eq(0), row_address.eq(first)]
        with m.Elif(step):
            m.d.sync += inner.eq(Mux(ends_row, 0, inner + 1))
            with m.If(ends_row):
                m.d.sync += outer.eq(outer + 1)
                m.d.sync += row_address.eq(row_address + Mux(is_rows, command.destination_stride, 1))
        address = Signal(20)
        m.d.comb += address.eq(row_address + Mux(is_rows, inner, 0))
        return address, inner

    def _slice(self, m, step, is_last, is_compare):
        """The slice of the beat, and whether it is the last one of it."""
        p, beat = self.parameters, self.load.payload
        groups = p.row_word // p.n_banks  # of a latent, in a beat
        most = max(groups, *(p.slices(item) for item in LOADED))
        index = Signal(range(most))
        slices, ends_beat = Signal(len(beat)), Signal()
        m.d.comb += [slices.eq(beat), ends_beat.eq(is_last)]
        for n_slices in sorted({p.slices(item) for item in LOADED}):
            here = [self._memory[item] for item in LOADED if p.slices(item) == n_slices]
            is_one = here[0]
            for each in here[1:]:
                is_one = is_one | each
            with m.If(is_one & (index == n_slices - 1)):
                m.d.comb += ends_beat.eq(1)
        with m.If(is_compare):
            m.d.comb += slices.eq(beat.word_select(index, 16 * p.n_banks))
        with m.If(is_compare & (index == groups - 1)):
            m.d.comb += ends_beat.eq(1)
        for item in LOADED:
            width = p.slice_width(item)
            if p.slices(item) > 1:
                with m.If(self._memory[item]):
                    m.d.comb += slices.eq(beat.word_select(index, width))
        with m.If(self.control.start):
            m.d.sync += index.eq(0)
        with m.Elif(step):
            m.d.sync += index.eq(Mux(ends_beat, 0, index + 1))
        return slices, ends_beat
