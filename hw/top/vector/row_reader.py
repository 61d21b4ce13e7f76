"""RowReader: reads the words of rows of one or two matrices in IMEM and joins them."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from hw.top.interfaces import address_width, imem_read
from hw.top.parameters import CorePart, ImemWord, RowDim

__all__ = ["RowReader", "last_word_range"]


def last_word_range(p):
    """The numbers of a row's last word."""
    return range(max(2, -(-p.max_dim // p.row_word)))


@dataclass(frozen=True, kw_only=True)
class RowReaderParameters(RowDim, ImemWord):
    pass


class RowReader(CorePart):
    """For each row its words one after the other; with ``is_pair``, each with the same word of a second matrix.

    A word takes one read, a pair two; there is one read a clock. Words come ``latency`` clocks after their row, if
    those that are read come in the clock after their address.
    """

    Parameters = RowReaderParameters
    latency = 3
    members_doc = {
        "rows": "first words of each row in both matrices",
        "is_pair": "constant while rows are read: there is a second matrix",
        "last_word": "constant while rows are read: words a row, less one",
        "imem": "words of the rows",
        "words": "a word of each matrix; without a second one the right word is a don't-care",
    }

    @staticmethod
    def members(p):
        word = data.ArrayLayout(FP16.width, p.row_word)
        return {
            "rows": In(stream.Signature(data.ArrayLayout(address_width(p.imem_depth), 2))),
            "is_pair": In(1),
            "last_word": In(last_word_range(p)),
            "imem": Out(imem_read(p)),
            "words": Out(stream.Signature(data.StructLayout({"left": word, "right": word}))),
        }

    def circuit(self):
        m = Module()
        self._ask(m)
        self._collect(m)
        return m

    def _ask(self, m):
        """Addresses: of each word the left one, then the right one."""
        is_reading, is_right = Signal(), Signal()
        left, right = (
            Signal(len(self.imem.address.payload), name=f"{name}_address", reset_less=True)
            for name in ("left", "right")
        )
        words_left = Signal.like(self.last_word, name="words_left", reset_less=True)
        requests, ends_word, ends_row = Signal(), Signal(), Signal()
        m.d.comb += [
            self.imem.address.valid.eq(is_reading),
            self.imem.address.payload.eq(Mux(is_right, right, left)),
            requests.eq(is_reading & self.imem.address.ready),
            ends_word.eq(requests & (is_right | ~self.is_pair)),
            ends_row.eq(ends_word & (words_left == 0)),
            self.rows.ready.eq(~is_reading | ends_row),
        ]
        with m.If(requests):
            m.d.sync += is_right.eq(self.is_pair & ~is_right)
        with m.If(self.rows.ready):
            m.d.sync += [
                is_reading.eq(self.rows.valid),
                Cat(left, right).eq(self.rows.payload),
                words_left.eq(self.last_word),
            ]
        with m.Elif(ends_word):
            m.d.sync += [left.eq(left + 1), right.eq(right + 1), words_left.eq(words_left - 1)]

    def _collect(self, m):
        """Two registers: the right one is filled last, and both are output together."""
        has_left, has_right = Signal(), Signal()
        left, right = (Signal(len(self.imem.word.payload), name=name, reset_less=True) for name in ("left", "right"))
        gives, fills_left, fills_right = Signal(), Signal(), Signal()
        m.d.comb += [
            self.words.valid.eq(has_left & (has_right | ~self.is_pair)),
            self.words.payload.left.eq(left),
            self.words.payload.right.eq(right),
            gives.eq(self.words.valid & self.words.ready),
            fills_left.eq(self.imem.word.valid & (~has_left | gives)),
            fills_right.eq(self.imem.word.valid & self.is_pair & has_left & ~has_right),
            self.imem.word.ready.eq(fills_left | fills_right),
        ]
        m.d.sync += [has_left.eq(fills_left | (has_left & ~gives)), has_right.eq(fills_right | (has_right & ~gives))]
        with m.If(fills_left):
            m.d.sync += left.eq(self.imem.word.payload)
        with m.If(fills_right):
            m.d.sync += right.eq(self.imem.word.payload)
