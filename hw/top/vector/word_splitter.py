"""WordSplitter: cuts words of IMEM into pieces for the lanes of the vector unit."""

from dataclasses import dataclass

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from golden.spec.parameters import Parameters, integer
from hw.lib.block import Block

__all__ = ["WordSplitter"]


@dataclass(frozen=True, kw_only=True)
class WordSplitterParameters(Parameters):
    word: int = integer(8, low=1, high=1 << 12, doc="elements of a word")
    piece: int = integer(4, low=1, high=1 << 12, doc="elements of a piece, a divisor of a word")

    def check(self):
        if self.word % self.piece:
            self.refuse("piece", f"a divisor of word={self.word}")


class WordSplitter(Block):
    """The pieces of a pair of words one after the other, the lowest elements first; a piece a clock."""

    Parameters = WordSplitterParameters
    latency = 0
    members_doc = {"words": "two words", "pieces": "a piece of each, and its number in the word"}

    @staticmethod
    def members(p):
        word, piece = (data.ArrayLayout(FP16.width, n) for n in (p.word, p.piece))
        pieces = {"left": piece, "right": piece, "index": range(max(2, p.word // p.piece))}
        return {
            "words": In(stream.Signature(data.StructLayout({"left": word, "right": word}))),
            "pieces": Out(stream.Signature(data.StructLayout(pieces))),
        }

    def circuit(self):
        m = Module()
        words, pieces = self.words, self.pieces
        index, is_last = Signal.like(pieces.payload.index, name="piece_index"), Signal()
        m.d.comb += [
            is_last.eq(index == self.word // self.piece - 1),
            pieces.payload.index.eq(index),
            pieces.valid.eq(words.valid),
            words.ready.eq(pieces.ready & is_last),
        ]
        width = FP16.width * self.piece
        for name in ("left", "right"):
            word = words.payload[name].as_value()
            m.d.comb += pieces.payload[name].eq(word.word_select(index, width))
        with m.If(pieces.valid & pieces.ready):
            m.d.sync += index.eq(index + 1)
            with m.If(is_last):
                m.d.sync += index.eq(0)
        return m
