"""RowWriter: writes results to rows of IMEM, by words or smaller groups."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.formats import FP16
from hw.lib.stream import StreamQueue
from hw.top.interfaces import imem_write
from hw.top.parameters import CorePart, ImemWord, RowDim

__all__ = ["RowWriter"]


@dataclass(frozen=True, kw_only=True)
class RowWriterParameters(RowDim, ImemWord):
    pass


class RowWriter(CorePart):
    """A row's results fill its words from the first one on: whole words or, with ``in_groups``, simd_lanes elements.

    A group is the lowest elements of a result; the rest of its word in IMEM is not written. One result a clock; a write
    is valid in the clock after its result, and up to two are buffered.
    """

    Parameters = RowWriterParameters
    latency = 1
    members_doc = {
        "places": "the first word of each row, one a row",
        "in_groups": "constant while a row is written: results are groups",
        "last_result": "constant while a row is written: results a row, less one",
        "results": "elements",
        "write": "parts of a word to write to IMEM",
        "row_is_written": "this clock's write is the last one of its row",
    }

    @staticmethod
    def members(p):
        layout = imem_write(p)
        return {
            "places": In(stream.Signature(layout["address"].shape)),
            "in_groups": In(1),
            "last_result": In(range(max(2, -(-p.max_dim // p.simd_lanes)))),
            "results": In(stream.Signature(data.ArrayLayout(FP16.width, p.row_word))),
            "write": Out(stream.Signature(layout)),
            "row_is_written": Out(1),
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        layout = self.write.payload.shape()
        m.submodules.waiting = waiting = StreamQueue(width=layout.size + 1, depth=2)
        index = Signal.like(self.last_result, name="index")
        ends_row = Signal()
        taken = Signal()
        groups_a_word = self.parameters.row_word // self.simd_lanes
        word = Signal.like(index, name="word")
        position = Signal(ceil_log2(groups_a_word))
        m.d.comb += [
            Cat(position, word).eq(Mux(self.in_groups, index, index << ceil_log2(groups_a_word))),
            ends_row.eq(index == self.last_result),
            waiting.source.valid.eq(self.results.valid & self.places.valid),
            self.results.ready.eq(waiting.source.ready & self.places.valid),
            taken.eq(waiting.source.valid & waiting.source.ready),
            self.places.ready.eq(taken & ends_row),
        ]
        with m.If(taken):
            m.d.sync += index.eq(Mux(ends_row, 0, index + 1))

        parts_a_group = self.simd_lanes // p.row_part
        written, results = Signal(layout), self.results.payload
        m.d.comb += [
            written.address.eq(self.places.payload + word),
            *(
                element.eq(Mux(self.in_groups, results[place % self.simd_lanes], results[place]))
                for place, element in enumerate(written["values"])
            ),
            written.enable.eq(
                Mux(self.in_groups, ((1 << parts_a_group) - 1) << (position * parts_a_group), (1 << p.row_parts) - 1)
            ),
            waiting.source.payload.eq(Cat(written, ends_row)),
            self.write.payload.eq(waiting.sink.payload),
            self.write.valid.eq(waiting.sink.valid),
            waiting.sink.ready.eq(self.write.ready),
            self.row_is_written.eq(self.write.valid & self.write.ready & waiting.sink.payload[-1]),
        ]
        return m
