"""WordWriter: joins results of the vector unit's lanes to words and writes them to IMEM."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from hw.top.interfaces import imem_write
from hw.top.parameters import CorePart, ImemWord, RowDim, VectorLanes
from hw.top.vector.row_reader import last_word_range

__all__ = ["WordWriter"]


@dataclass(frozen=True, kw_only=True)
class WordWriterParameters(VectorLanes, RowDim, ImemWord):
    pass


class WordWriter(CorePart):
    """Pieces of vector_lanes elements fill a word, which is written in the clock after its last piece or later.

    A piece a clock; the first one of a word waits while the word before does.
    """

    Parameters = WordWriterParameters
    latency = 1
    members_doc = {
        "places": "the first word of each row, one a row",
        "last_word": "constant while a row is written: words a row, less one",
        "results": "pieces, the lowest elements of a word first",
        "write": "a word to write to IMEM",
        "row_is_written": "this clock's write is the last one of its row",
    }

    @staticmethod
    def members(p):
        layout = imem_write(p)
        return {
            "places": In(stream.Signature(layout["address"].shape)),
            "last_word": In(last_word_range(p)),
            "results": In(stream.Signature(data.ArrayLayout(FP16.width, p.n_vector_lanes))),
            "write": Out(stream.Signature(layout)),
            "row_is_written": Out(1),
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        n_pieces = p.row_word // p.n_vector_lanes
        index, word = Signal(range(n_pieces)), Signal.like(self.last_word, name="word")
        is_full, ends_row, taken, written = Signal(), Signal(), Signal(), Signal()
        pieces = [
            Signal(FP16.width * p.n_vector_lanes, name=f"piece_{piece}", reset_less=True) for piece in range(n_pieces)
        ]
        m.d.comb += [
            self.write.payload.address.eq(self.places.payload + word),
            self.write.payload["values"].as_value().eq(Cat(*pieces)),
            self.write.payload.enable.eq(~0),
            self.write.valid.eq(is_full & self.places.valid),
            written.eq(self.write.valid & self.write.ready),
            self.results.ready.eq(~is_full | written),
            taken.eq(self.results.valid & self.results.ready),
            ends_row.eq(word == self.last_word),
            self.places.ready.eq(written & ends_row),
            self.row_is_written.eq(written & ends_row),
        ]
        with m.If(written):
            m.d.sync += [is_full.eq(0), word.eq(Mux(ends_row, 0, word + 1))]
        with m.If(taken):
            m.d.sync += index.eq(index + 1)
            with m.If(index == n_pieces - 1):
                m.d.sync += [index.eq(0), is_full.eq(1)]
        for number, piece in enumerate(pieces):
            with m.If(taken & (index == number)):
                m.d.sync += piece.eq(self.results.payload)
        return m
