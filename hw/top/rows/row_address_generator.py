"""RowAddressGenerator: first words of the rows of matrices in IMEM."""

from dataclasses import dataclass

from amaranth.hdl import Module
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.limits import MAX_WORDS
from golden.spec.parameters import integer
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.top.rows.row_sequencer import RowSequencerParameters

__all__ = ["RowAddressGenerator"]


@dataclass(frozen=True, kw_only=True)
class RowAddressGeneratorParameters(RowSequencerParameters):
    imem_depth: int = integer(512, low=2, high=MAX_WORDS, doc="words of IMEM")
    n_matrices: int = integer(3, low=1, high=8, doc="matrices")

    @property
    def address_width(self):
        return ceil_log2(self.imem_depth)


class RowAddressGenerator(Block):
    """``places[i] = first[i] + row * stride[i]`` for each of the matrices, modulo a power of two; one row a clock."""

    Parameters = RowAddressGeneratorParameters
    latency = 2
    members_doc = {
        "rows": "row numbers",
        "first": "constant: word of row 0 of each matrix",
        "stride": "constant: words from row to row",
        "placed": "the row, and its first word in each matrix",
    }

    @staticmethod
    def members(p):
        words = data.ArrayLayout(p.address_width, p.n_matrices)
        return {
            "rows": In(stream.Signature(p.row_width)),
            "first": In(words),
            "stride": In(words),
            "placed": Out(stream.Signature(data.StructLayout({"row": p.row_width, "places": words}))),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, source=self.rows, sink=self.placed)
        pipe.valid_chain(self.latency)
        row = pipe.register(self.rows.payload, name="row")
        m.d.comb += self.placed.payload.row.eq(pipe.register(row, name="row_placed"))
        for index, place in enumerate(self.placed.payload.places):
            sum_of_words = (self.first[index] + row * self.stride[index])[: len(place)]
            m.d.comb += place.eq(pipe.register(sum_of_words, name=f"place_{index}"))
        return m
