"""SlotScanner: scans a unit's part of the mask and issues the beats of its dot products."""

from dataclasses import dataclass

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.dot_product_array import MAX_BEATS, MAX_QUERY_BEATS, MAX_WEIGHT_DEPTH
from golden.spec.limits import MAX_SLOTS
from golden.spec.parameters import Parameters, integer
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.lib.block import Block

__all__ = ["SlotScanner", "row_tag", "next_place"]


def row_tag(row_width, n_places, query_depth=None):
    """A row's number modulo 2**row_width, its position in the ring, and with a depth the first word of its query."""
    start = {} if query_depth is None else {"start": ceil_log2(query_depth)}
    return data.StructLayout({"row": row_width, "place": ceil_log2(n_places), **start})


def next_place(place, n_places):
    """The next position in a ring."""
    return Mux(place == n_places - 1, 0, place + 1)


@dataclass(frozen=True, kw_only=True)
class SlotScannerParameters(Parameters):
    n_slots: int = integer(16, low=1, high=MAX_SLOTS, doc="bits of a bitmap")
    max_beats: int = integer(2, low=1, high=MAX_BEATS, doc="beats a dot product, at most")
    weight_depth: int = integer(32, low=2, high=MAX_WEIGHT_DEPTH, doc="words of the weight bank")
    query_beats: int = integer(1, low=1, high=MAX_QUERY_BEATS, doc="beats a word of the query ring")
    n_places: int = integer(10, low=2, high=64, doc="rows of the query ring")
    query_depth: int | None = integer(
        None, low=1, high=MAX_WEIGHT_DEPTH, doc="words of the query ring, if not n_places rows"
    )
    row_width: int = integer(5, low=1, high=16, doc="bits of a row's number, more than enough for the rows in flight")


class SlotScanner(Block):
    """Scans bitmaps, one a row, and issues the beat addresses of a dot product for each set bit, lowest first.

    Three stages without a bubble: the next bitmap; the remaining set bits of the current row; and the slot being
    issued, a beat a clock. So the next row's first slot is ready while the last one of this row is issued. Rows without
    set bits are never presented and take no time.

    A beat issues when the pipeline advances and its row is open: it is among the ``n_open`` rows from ``oldest_row``.
    """

    Parameters = SlotScannerParameters
    members_doc = {
        "bitmap": "bits of the next row with any set bit",
        "bitmap_tag": "that row's number and position in the ring",
        "bitmap_valid": "there is such a row",
        "bitmap_taken": "the bitmap is used at this clock edge",
        "oldest_seen": "the oldest row's bitmap, if it has set bits, is or was at this input",
        "advance": "the pipeline can take a beat",
        "oldest_row": "first row, modulo 2**row_width, that some unit has not done",
        "n_open": "rows from the oldest one on that may be issued",
        "last_beats": "beats of the row at each position of the ring, minus one",
        "weight_base": "word of the weight bank with beat 0 of slot 0",
        "weight_stride": "words from a beat to the next one of the same slot",
        "wants": "a beat waits to be issued",
        "is_open": "its row is open",
        "is_ahead": "its row exceeds the run-ahead limit, whether or not its query is loaded",
        "issues": "a beat is issued: wants, open and advance",
        "query_address": "word of the query ring that holds the beat's query",
        "query_beat": "which beat of that word",
        "weight_address": "word of the weight bank: base + beat * stride + slot",
        "slot": "bit of the bitmap that the beat belongs to",
        "row": "the beat's row, modulo 2**row_width",
        "last": "the beat ends its dot product",
        "last_of_row": "the slot is the row's last one",
        "passes_oldest": "after this clock edge all beats of the oldest row are issued",
    }

    @staticmethod
    def members(p):
        n_words = -(-p.max_beats // p.query_beats)
        return {
            "bitmap": In(p.n_slots),
            "bitmap_tag": In(row_tag(p.row_width, p.n_places, p.query_depth)),
            "bitmap_valid": In(1),
            "bitmap_taken": Out(1),
            "oldest_seen": In(1),
            "advance": In(1),
            "oldest_row": In(p.row_width),
            "n_open": In(range(p.n_places)),
            "last_beats": In(data.ArrayLayout(ceil_log2(p.max_beats), p.n_places)),
            "weight_base": In(ceil_log2(p.weight_depth)),
            "weight_stride": In(ceil_log2(p.weight_depth)),
            "wants": Out(1),
            "is_open": Out(1),
            "is_ahead": Out(1),
            "issues": Out(1),
            "query_address": Out(ceil_log2(p.query_depth or p.n_places * n_words)),
            "query_beat": Out(ceil_log2(p.query_beats)),
            "weight_address": Out(ceil_log2(p.weight_depth)),
            "slot": Out(ceil_log2(p.n_slots)),
            "row": Out(p.row_width),
            "last": Out(1),
            "last_of_row": Out(1),
            "passes_oldest": Out(1),
        }

    def circuit(self):
        m = Module()
        tag = row_tag(self.row_width, self.n_places, self.query_depth)
        current = Signal(tag, reset_less=True)
        issued = Signal(tag, reset_less=True)

        # The set bits of the current row that are not issued yet.
        rest = Signal(self.n_slots)
        others = Signal(self.n_slots)
        has_rest = Signal()
        moves_slot = Signal()
        m.submodules.first_one = first_one = LeadingZeroCounter(width=self.n_slots)
        m.d.comb += [
            first_one.value.eq(rest[::-1]),
            has_rest.eq(rest.any()),
            others.eq(rest & (rest - 1)),
            self.bitmap_taken.eq(self.bitmap_valid & (~has_rest | (moves_slot & ~others.any()))),
        ]
        with m.If(self.bitmap_taken):
            m.d.sync += [rest.eq(self.bitmap), current.eq(self.bitmap_tag)]
        with m.Elif(moves_slot):
            m.d.sync += rest.eq(others)

        self._issue(m, issued)
        ends_slot = Signal()
        ends_row = Signal()
        m.d.comb += [
            ends_slot.eq(self.issues & self.last),
            ends_row.eq(ends_slot & self.last_of_row),
            moves_slot.eq(has_rest & (~self.wants | ends_slot)),
        ]
        self._start_slot(m, moves_slot, ends_slot, first_one.count[: len(self.slot)], current, issued, ~others.any())

        # Compared in parallel with the late decision whether the row ends.
        issued_passes = Signal()
        offered_passes = Signal()
        next_passes = Signal()
        m.d.comb += [
            issued_passes.eq(issued.row != self.oldest_row),
            offered_passes.eq(Mux(self.bitmap_valid, self.bitmap_tag.row != self.oldest_row, self.oldest_seen)),
            next_passes.eq(Mux(has_rest, current.row != self.oldest_row, offered_passes)),
            self.passes_oldest.eq(Mux(self.wants & ~ends_row, issued_passes, next_passes)),
        ]
        return m

    def _issue(self, m, issued):
        """Decide whether the beat that waits is issued, and whether it is the last of its slot."""
        self._beat = Signal(range(self.max_beats), name="beat", reset_less=True)
        ahead = Signal(self.row_width)
        m.d.comb += [
            ahead.eq(issued.row - self.oldest_row),
            self.is_open.eq(ahead < self.n_open),
            self.is_ahead.eq(ahead > self.n_places - 2),
            self.issues.eq(self.wants & self.is_open & self.advance),
            self.last.eq(self._beat == Array(self.last_beats)[issued.place]),
            self.row.eq(issued.row),
        ]

    def _start_slot(self, m, moves_slot, ends_slot, slot, current, issued, is_last):
        """The registers of the slot that is being issued: filled from the current row, then stepped beat by beat."""
        n_words = -(-self.max_beats // self.query_beats)
        registers = {}
        for name in ("query_address", "query_beat", "weight_address", "slot", "last_of_row"):
            port = getattr(self, name)
            registers[name] = Signal(len(port), name=f"{name}_register", reset_less=True)
            m.d.comb += port.eq(registers[name])
        wants = Signal(name="wants_register")
        m.d.comb += self.wants.eq(wants)
        with m.If(moves_slot):
            m.d.sync += [
                wants.eq(1),
                issued.eq(current),
                self._beat.eq(0),
                registers["query_address"].eq(current.place * n_words if self.query_depth is None else current.start),
                registers["query_beat"].eq(0),
                registers["slot"].eq(slot),
                registers["last_of_row"].eq(is_last),
            ]
        with m.Elif(ends_slot):
            m.d.sync += wants.eq(0)
        with m.Elif(self.issues):
            ends_word = registers["query_beat"] == self.query_beats - 1
            m.d.sync += [
                self._beat.eq(self._beat + 1),
                registers["query_address"].eq(registers["query_address"] + ends_word),
                registers["query_beat"].eq(Mux(ends_word, 0, registers["query_beat"] + 1)),
            ]
        # One adder for both cases: which one is selected early, whether it is used is decided late.
        address = registers["weight_address"]
        starts = ~wants | self.last
        step = Mux(starts, self.weight_base, address) + Mux(starts, slot, self.weight_stride)
        with m.If(moves_slot | (self.issues & ~self.last)):
            m.d.sync += address.eq(step)
