"""DotProductArray: dot-product units that scan their parts of a mask independently, within a run-ahead limit."""

from dataclasses import dataclass

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec import dot_product_array as spec
from hw.lib.block import Block
from hw.units.dot_product_array.slice import DpuSlice, DpuSliceParameters, slice_activity
from hw.units.dot_product_array.slot_scanner import next_place

__all__ = ["DotProductArray", "DotProductArrayParameters"]


@dataclass(frozen=True, kw_only=True)
class DotProductArrayParameters(spec.DotProductArrayParameters, DpuSliceParameters):
    pass


class DotProductArray(Block):
    """``score(i, u, s) = sum(query[i] * bank[u][s])`` for every row i, unit u and slot s whose bit the mask has set.

    Beat b of the key ``bank[u][s]`` is word ``weight_base + b * weight_stride + s`` of unit u's weight bank. Each unit
    processes its set bits of a row by rising slot and sends one score for each; clear bits take no time. A mask of ones
    gives the dense product: a matrix product is the same with weights for keys.

    Members (element 0 in the lowest bits):

    * ``weight`` writes a word of one bank: ``key`` (n_lanes elements), ``address`` (below weight_depth) and ``unit``.
      It is always ready.
    * ``weight_lane`` writes an element into one lane of a word of every bank: ``elements`` (n_units, the first one for
      unit 0), ``address`` and ``lane``. It is ready while no ``weight`` comes.
    * A row uses the words written before the later of its mask and its query was accepted.
    * ``weight_base`` and ``weight_stride`` locate the keys; they are taken modulo the power of two that
      weight_depth needs, and every address they give must be below weight_depth. They may change only while no row is
      in flight, that is, while every accepted row has been reported by ``row_done``.
    * ``query`` carries the rows: ``query`` (query_beats beats of n_lanes words), ``last`` (one bit for each of these
      beats: it ends the row, and what follows in the transfer is not used). A row has 1 to max_beats beats, and its
      scores are sums over just these beats of the keys.
    * With ``query_depth`` the ring of queries is not run_ahead + 2 of the longest rows: each row has ``row_words``
      words, one a transfer at least, and ``max_rows`` of them fit; ``restart`` comes with new ones.
    * ``mask`` carries ``bitmap`` (n_units words of n_slots bits), one transfer a row.
    * ``score``, one stream a unit (in Verilog ``score_0`` and so on): ``wide`` (FP32), ``narrow`` (FP16 or BF16),
      ``slot``, and ``last_of_row`` for the unit's last score of the row. A unit without bits in a row sends nothing
      for it.
    * ``row_done``, without payload: one transfer for each row, in order, once all its scores were taken. Scores do
      not wait for it, but at most 2**row_width - 1 unreported rows are accepted.
    * ``activity``: for each unit whether it issues a beat, has one that waits for its sink, for the slowest unit
      (run_ahead), or for the query; delayed by one clock.

    Timing: a beat a clock and unit, without a bubble between slots and rows. A unit starts row i when it has done row
    i-1, and all units have done row i-1-run_ahead (with run_ahead 0 they start each row together); a row is "done"
    when its last beat is issued. A unit spends no time on a row without bits. At most one row a clock is accepted and
    completed, so that a row takes one clock at least, and as many as its query has transfers. A unit stalls while
    its score is not accepted, and the others when they reach the run-ahead limit.

    Defined by :func:`golden.units.dot_product_array.sampled_scores` and, in time, by
    :func:`golden.units.dot_product_array.schedule`. It is the DPU array of the DiSC paper under its SDDMM, with the
    run-ahead added.
    """

    Parameters = DotProductArrayParameters

    members_doc = {
        "weight": "a word for one unit's bank; always ready",
        "weight.key": "n_lanes {format} numbers",
        "weight.address": "word of the bank, below weight_depth",
        "weight.unit": "number of the unit",
        "weight_lane": "a number for one lane of a word of each unit's bank; ready while no weight comes",
        "weight_lane.elements": "one {format} number for each unit",
        "weight_lane.address": "word of the banks",
        "weight_lane.lane": "which lane of it",
        "weight_base": "word of the banks that holds beat 0 of slot 0; changes only while no row is in flight",
        "weight_stride": "words of the banks from a beat to the next one of the same slot; as weight_base",
        "row_words": "words of the ring a row, no fewer than its transfers; changes only while no row is in flight",
        "max_rows": "rows that the ring has room for, at least one; as row_words",
        "restart": "1 for a clock when these have changed, before the next row",
        "query": "one or more beats of the next row's query vector",
        "query.query": "query_beats beats of n_lanes {format} numbers",
        "query.last": "bit b: beat b ends the row, and what follows in the transfer is not used",
        "mask": "which scores of the next row are wanted",
        "mask.bitmap": "one word a unit, bit s for slot s",
        "score": "dot products of each unit, row after row by rising slot",
        "score.wide": "FP32",
        "score.narrow": "the same sum rounded to {format}",
        "score.slot": "of which slot",
        "score.last_of_row": "the last score of this unit in the row",
        "row_done": "every score of the next row has been taken; not used, tie ready to 1",
        "activity": "what each unit did in the clock before, unit 0 in bit 0",
        "activity.beats": "it issued a beat",
        "activity.waits_for_sink": "its score was not taken",
        "activity.waits_for_rows": "it was run_ahead rows ahead of the slowest unit",
        "activity.waits_for_query": "the query had not come",
    }

    @staticmethod
    def members(p):
        vector = data.ArrayLayout(16, p.n_lanes)
        weight = {"key": vector, "address": p.address_width, "unit": ceil_log2(p.n_units)}
        weight_lane = {
            "elements": data.ArrayLayout(16, p.n_units),
            "address": p.address_width,
            "lane": ceil_log2(p.n_lanes),
        }
        ring = {"row_words": In(range(p.query_words + 1)), "max_rows": In(range(p.n_places + 1)), "restart": In(1)}
        query = {"query": data.ArrayLayout(vector, p.query_width), "last": p.query_width}
        return {
            "weight": In(stream.Signature(data.StructLayout(weight))),
            "weight_lane": In(stream.Signature(data.StructLayout(weight_lane))),
            "weight_base": In(p.address_width),
            "weight_stride": In(p.address_width),
            **(ring if p.query_depth else {}),
            "query": In(stream.Signature(data.StructLayout(query))),
            "mask": In(stream.Signature(data.StructLayout({"bitmap": data.ArrayLayout(p.n_slots, p.n_units)}))),
            "score": Out(stream.Signature(p.scores)).array(p.n_units),
            "row_done": Out(stream.Signature(0)),
            "activity": Out(slice_activity(p.n_units)),
        }

    @property
    def latency(self):
        """Clocks from the acceptance of a row's mask to its first score.

        For an idle array whose query is complete no more than 3 clocks after the mask, a sink that is ready, and a
        row of max_beats beats; each beat less is one clock less.
        """
        return DpuSlice(**self.parameters.dpu_slice()).latency

    def circuit(self):
        m = Module()
        p = self.parameters
        units = [DpuSlice(**p.dpu_slice()) for _ in range(self.n_units)]
        for index, unit in enumerate(units):
            m.submodules[f"unit_{index}"] = unit
        self._count_rows(m, units)
        self._write_weights(m, units)
        self._load_queries(m, units)
        self._accept_masks(m, units)
        self._report_rows(m, units)
        for index, unit in enumerate(units):
            score = self.score[index]
            m.d.comb += [
                score.payload.eq(unit.score.payload),
                score.valid.eq(unit.score.valid),
                unit.score.ready.eq(score.ready),
            ]
        activity = Signal.like(self.activity, name="activity_register")
        m.d.sync += [
            getattr(activity, name).eq(Cat(getattr(unit.activity, name) for unit in units))
            for name in slice_activity(1).members
        ]
        m.d.comb += self.activity.eq(activity)
        return m

    def _count_rows(self, m, units):
        """The oldest row that some unit has not done: at most one step a clock, using units that finish in it."""
        p = self.parameters
        self._oldest_row = Signal(p.row_width, name="oldest_row")
        self._n_loaded = Signal(range(p.n_places + 1), name="n_loaded")  # rows not done whose queries are complete
        self._row_passes = Signal(name="row_passes")
        n_open = Signal(range(p.n_places))
        m.d.comb += [
            self._row_passes.eq((self._n_loaded != 0) & Cat(unit.passes_oldest for unit in units).all()),
            n_open.eq(Mux(self._n_loaded == p.n_places, p.n_places - 1, self._n_loaded)),
        ]
        m.d.sync += self._oldest_row.eq(self._oldest_row + self._row_passes)
        for unit in units:
            m.d.comb += [unit.oldest_row.eq(self._oldest_row), unit.n_open.eq(n_open)]

    def _write_weights(self, m, units):
        word, lane = self.weight.payload, self.weight_lane.payload
        writes_word = self.weight.valid
        address = Signal(self.parameters.address_width, name="write_address")
        lane_enable = Signal(self.n_lanes)
        m.d.comb += [
            self.weight.ready.eq(1),
            self.weight_lane.ready.eq(~writes_word),
            address.eq(Mux(writes_word, word.address, lane.address)),
            lane_enable.eq(Cat(self.weight_lane.valid & (lane.lane == index) for index in range(self.n_lanes))),
        ]
        for index, unit in enumerate(units):
            m.d.comb += [
                unit.weight_enable.eq(Mux(writes_word, (word.unit == index).replicate(self.n_lanes), lane_enable)),
                unit.weight_address.eq(address),
                unit.weight.eq(Mux(writes_word, word.key, lane.elements[index].replicate(self.n_lanes))),
                unit.weight_base.eq(self.weight_base),
                unit.weight_stride.eq(self.weight_stride),
            ]

    def _load_queries(self, m, units):
        """Every unit stores every row, at the same position of its ring."""
        p = self.parameters
        place = Signal(range(p.n_places), name="query_place")
        word = Signal(range(p.query_words), name="query_word")
        address = Signal(len(units[0].query_address), name="query_address")
        taken, ends_row = Signal(name="query_taken"), Signal(name="query_ends_row")
        start, turn = Signal(len(address), name="query_start"), Signal(range(p.n_places), name="query_turn")
        if p.query_depth:
            with m.If(self.restart):
                m.d.sync += [start.eq(0), turn.eq(0)]
        m.d.comb += [
            self.query.ready.eq(self._n_loaded != (self.max_rows if p.query_depth else p.n_places)),
            taken.eq(self.query.valid & self.query.ready),
            ends_row.eq(taken & self.query.payload.last.any()),
            address.eq((start if p.query_depth else place * p.query_words) + word),
        ]
        m.d.sync += self._n_loaded.eq(self._n_loaded + ends_row - self._row_passes)
        with m.If(taken):
            m.d.sync += word.eq(Mux(ends_row, 0, word + 1))
        last_beats = Signal(units[0].last_beats.shape(), reset_less=True)
        with m.If(ends_row):
            if p.query_depth:
                self._next_start(m, start, turn)
            m.d.sync += [
                place.eq(next_place(place, p.n_places)),
                Array(last_beats)[place].eq(word * p.query_width + self._first_last()),
            ]
        for unit in units:
            m.d.comb += [
                unit.query_enable.eq(taken),
                unit.query_address.eq(address),
                unit.query.eq(self.query.payload.query),
                unit.last_beats.eq(last_beats),
            ]

    def _next_start(self, m, start, turn):
        """The first word of the next row in the ring, which has room for ``max_rows`` of them."""
        is_last = turn == self.max_rows - 1
        m.d.sync += [start.eq(Mux(is_last, 0, start + self.row_words)), turn.eq(Mux(is_last, 0, turn + 1))]

    def _first_last(self):
        """Which beat of the transfer ends the row."""
        position = self.parameters.query_width - 1
        for beat in reversed(range(position)):
            position = Mux(self.query.payload.last[beat], beat, position)
        return position

    def _accept_masks(self, m, units):
        """Every unit takes its bitmap of a row at the same time."""
        p = self.parameters
        self._delivered_row = Signal(p.row_width, name="delivered_row")
        turn = Signal(range(p.n_places), name="mask_turn")
        # The number and ring position of the next mask; everything older than ``seen_row`` passed the queues.
        accepted = Signal(p.tag(), name="accepted")
        seen_row = Signal.like(self._delivered_row, name="seen_row")
        next_row = Signal.like(self._delivered_row, name="next_row")
        oldest_seen = Signal()
        taken = Signal(name="mask_taken")
        m.d.comb += [
            next_row.eq(accepted.row + 1),
            oldest_seen.eq(seen_row != self._oldest_row),
            self.mask.ready.eq(Cat(unit.bitmap.ready for unit in units).all() & (next_row != self._delivered_row)),
            taken.eq(self.mask.valid & self.mask.ready),
        ]
        m.d.sync += seen_row.eq(accepted.row)
        with m.If(taken):
            m.d.sync += [accepted.row.eq(next_row), accepted.place.eq(next_place(accepted.place, p.n_places))]
            if p.query_depth:
                self._next_start(m, accepted.start, turn)
        if p.query_depth:
            with m.If(self.restart):
                m.d.sync += [accepted.start.eq(0), turn.eq(0)]
        for index, unit in enumerate(units):
            m.d.comb += [
                unit.bitmap.payload.eq(self.mask.payload.bitmap[index]),
                unit.bitmap.valid.eq(taken),
                unit.bitmap_tag.eq(accepted),
                unit.oldest_seen.eq(oldest_seen),
            ]

    def _report_rows(self, m, units):
        """A row is reported when all units have done it and none of its scores is in flight."""
        m.d.comb += self.row_done.valid.eq(
            (self._delivered_row != self._oldest_row) & ~Cat(unit.holds_delivered for unit in units).any()
        )
        for unit in units:
            m.d.comb += unit.delivered_row.eq(self._delivered_row)
        with m.If(self.row_done.valid & self.row_done.ready):
            m.d.sync += self._delivered_row.eq(self._delivered_row + 1)
