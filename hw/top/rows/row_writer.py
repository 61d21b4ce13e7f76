"""RowWriter: writes results to rows of IMEM, by words or smaller groups."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.formats import FP16
from golden.spec.limits import MAX_WORDS
from golden.spec.parameters import Parameters, integer
from hw.lib.block import Block
from hw.lib.stream import StreamQueue

__all__ = ["RowWriter"]


@dataclass(frozen=True, kw_only=True)
class RowWriterParameters(Parameters):
    imem_depth: int = integer(512, low=2, high=MAX_WORDS, doc="words of IMEM")
    word: int = integer(8, low=1, high=1 << 12, doc="elements of a word")
    part: int = integer(4, low=1, high=1 << 12, doc="elements that are written with one enable")
    group: int = integer(4, low=1, high=1 << 12, doc="elements of a result, a divisor of a word")
    max_groups: int = integer(4, low=1, high=1 << 16, doc="results a row, at most")

    def check(self):
        if self.word % self.group:
            self.refuse("group", f"a divisor of word={self.word}")
        if self.group % self.part:
            self.refuse("part", f"a divisor of group={self.group}")


class RowWriter(Block):
    """A row's results fill its words from ``first_position`` of the first one on; the rest of these is not written.

    One result a clock; a write is valid in the clock after its result, and up to two are buffered.
    """

    Parameters = RowWriterParameters
    latency = 1
    members_doc = {
        "places": "the first word of each row, one a row",
        "first_position": "constant while a row is written: results for which its first word has room before it",
        "last_result": "constant while a row is written: results a row, less one",
        "results": "elements",
        "write": "parts of a word to write to IMEM",
        "row_is_written": "this clock's write is the last one of its row",
    }

    @staticmethod
    def members(p):
        address = max(1, ceil_log2(p.imem_depth))
        write = {"address": address, "values": data.ArrayLayout(FP16.width, p.word), "enable": p.word // p.part}
        return {
            "places": In(stream.Signature(address)),
            "first_position": In(range(p.word // p.group)),
            "last_result": In(range(max(2, p.max_groups))),
            "results": In(stream.Signature(data.ArrayLayout(FP16.width, p.group))),
            "write": Out(stream.Signature(data.StructLayout(write))),
            "row_is_written": Out(1),
        }

    def circuit(self):
        m = Module()
        groups_a_word = self.word // self.group
        index = Signal.like(self.last_result, name="index")
        word, place = Signal(range(-(-self.max_groups // groups_a_word) + 1)), Signal(range(groups_a_word))
        position, begins = Signal(range(groups_a_word)), Signal()
        address, results = self.places.payload, self.results.payload
        # A word is written more than once if it has several results, so only these wait.
        held = data.StructLayout(
            {"address": len(address), "position": len(position), "values": 16 * self.group, "ends_row": 1}
        )
        m.submodules.waiting = waiting = StreamQueue(width=held.size, depth=2)
        out = data.View(held, waiting.sink.payload)
        ends_row, ends_word, taken = Signal(), Signal(), Signal()
        m.d.comb += [
            begins.eq(index == 0),
            position.eq(Mux(begins, self.first_position, place)),
            ends_row.eq(index == self.last_result),
            ends_word.eq(position == groups_a_word - 1),
            waiting.source.valid.eq(self.results.valid & self.places.valid),
            self.results.ready.eq(waiting.source.ready & self.places.valid),
            taken.eq(waiting.source.valid & waiting.source.ready),
            self.places.ready.eq(taken & ends_row),
            waiting.source.payload.eq(Cat((address + word)[: len(address)], position, results, ends_row)),
        ]
        with m.If(taken):
            m.d.sync += [
                index.eq(Mux(ends_row, 0, index + 1)),
                place.eq(Mux(ends_word, 0, position + 1)),
                word.eq(Mux(ends_row, 0, word + ends_word)),
            ]
        parts = self.group // self.part
        write = self.write.payload
        m.d.comb += [
            write.address.eq(out.address),
            write["values"].as_value().eq(out["values"].replicate(groups_a_word)),
            write.enable.eq(Cat((out.position == index // parts) for index in range(self.word // self.part))),
            self.write.valid.eq(waiting.sink.valid),
            waiting.sink.ready.eq(self.write.ready),
            self.row_is_written.eq(self.write.valid & self.write.ready & out.ends_row),
        ]
        return m
