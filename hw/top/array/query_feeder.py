"""QueryFeeder: reads rows of IMEM and cuts them into the beats of the dot-product units."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from hw.top.array.plan import query_layout
from hw.top.interfaces import address_width, imem_read
from hw.top.parameters import CorePart, ImemWord, RowDim, Tokens
from hw.top.rows.row_address_generator import RowAddressGenerator

__all__ = ["QueryFeeder"]


@dataclass(frozen=True, kw_only=True)
class QueryFeederParameters(RowDim, Tokens, ImemWord):
    pass


class QueryFeeder(CorePart):
    """One word of a row is one transfer of query beats; zeros follow the row's elements.

    With a bias, one more beat has 1 in lane 0 and zeros elsewhere. It shares the last word's transfer if there is
    space, else it is a transfer of its own. A word a clock, so that a row of one word takes one clock.
    The first transfer comes ``latency`` clocks after its row, if the word is there in the clock after its address.
    """

    Parameters = QueryFeederParameters
    latency = RowAddressGenerator.latency + 1
    members_doc = {
        "rows": "rows to be read",
        "source": "constant while there are rows: first word of the matrix in IMEM",
        "stride": "constant while there are rows: words from row to row",
        "plan": "constant while there are rows: end of a row",
        "imem": "words of the rows",
        "query": "beats, and which one of them ends the row",
    }

    @staticmethod
    def members(p):
        n_beats = p.query_beats
        address = address_width(p.imem_depth)
        beats = data.ArrayLayout(data.ArrayLayout(FP16.width, p.n_lanes), n_beats)
        return {
            "rows": In(stream.Signature(p.token_width)),
            "source": In(address),
            "stride": In(address),
            "plan": In(query_layout(p)),
            "imem": Out(imem_read(p)),
            "query": Out(stream.Signature(data.StructLayout({"query": beats, "last": n_beats}))),
        }

    def circuit(self):
        m = Module()
        self._ask(m)
        self._answer(m)
        return m

    def _ask(self, m):
        """Addresses of the words of each row."""
        m.submodules.placing = placing = RowAddressGenerator(
            max_tokens=self.max_tokens, imem_depth=self.imem_depth, n_matrices=1
        )
        index = Signal.like(self.plan.last_word, name="index")
        ends_row = Signal()
        m.d.comb += [
            placing.first[0].eq(self.source),
            placing.stride[0].eq(self.stride),
            placing.rows.payload.eq(self.rows.payload),
            placing.rows.valid.eq(self.rows.valid),
            self.rows.ready.eq(placing.rows.ready),
            self.imem.address.payload.eq(placing.placed.payload.places[0] + index),
            self.imem.address.valid.eq(placing.placed.valid),
            ends_row.eq(index == self.plan.last_word),
            placing.placed.ready.eq(self.imem.address.ready & ends_row),
        ]
        with m.If(self.imem.address.valid & self.imem.address.ready):
            m.d.sync += index.eq(Mux(ends_row, 0, index + 1))

    def _answer(self, m):
        """Beats of the words that arrive, and of the bias."""
        plan, query = self.plan, self.query.payload
        number = Signal.like(plan.last_word, name="number")
        is_bias = Signal()  # this transfer is the bias of the row before
        is_last, taken = Signal(), Signal()
        m.d.comb += [
            is_last.eq(number == plan.last_word),
            self.query.valid.eq(self.imem.word.valid | is_bias),
            self.imem.word.ready.eq(self.query.ready & ~is_bias),
            taken.eq(self.query.valid & self.query.ready),
            query.last.eq(Mux(is_bias, 1, Mux(is_last, plan.last, 0))),
        ]
        with m.If(taken):
            m.d.sync += [
                number.eq(Mux(is_bias | is_last, 0, number + 1)),
                is_bias.eq(is_last & plan.bias_follows & ~is_bias),
            ]
        is_element = Cat(1, plan.elements | (~is_last).replicate(len(plan.elements)))
        is_one = Cat(is_bias, plan.bias & (is_last & ~is_bias).replicate(len(plan.bias)))
        for beat, lanes in enumerate(query.query):
            for lane, value in enumerate(lanes):
                index = beat * self.n_lanes + lane
                element = self.imem.word.payload.word_select(index, FP16.width)
                m.d.comb += value.eq(Mux(~is_bias & is_element[index], element, 0))
            with m.If(is_one[beat]):
                m.d.comb += lanes[0].eq(FP16.one)
