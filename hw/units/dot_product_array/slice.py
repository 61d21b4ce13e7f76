"""DpuSlice: a dot-product unit of the array with its weight bank, its copy of the queries and its scanner."""

from dataclasses import dataclass

from amaranth.hdl import Array, Cat, Module
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec import dot_product_array as spec
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.lib.pipeline import Pipeline
from hw.lib.stream import StreamQueue
from hw.units.dot_product_array.slot_scanner import SlotScanner, row_tag
from hw.units.dot_product_unit.unit import DotProductUnit, DotProductUnitParameters

__all__ = ["DpuSlice", "DpuSliceParameters", "slice_activity"]


@dataclass(frozen=True, kw_only=True)
class DpuSliceParameters(spec.DpuSliceParameters, DotProductUnitParameters):
    @property
    def bank_depth(self):
        """Words of a weight bank."""
        return max(2, self.weight_depth or self.n_slots * self.max_beats)

    @property
    def address_width(self):
        """Bits of an address in a weight bank."""
        return ceil_log2(self.bank_depth)

    @property
    def query_words(self):
        """Words of the query ring that a row takes."""
        return -(-self.max_beats // self.query_width)

    @property
    def n_places(self):
        """Rows of the query ring: those within the run-ahead limit, and one being loaded."""
        return self.run_ahead + 2

    @property
    def ring_depth(self):
        """Words of the query ring."""
        return self.query_depth or self.n_places * self.query_words

    def tag(self):
        """What belongs to a bitmap."""
        return row_tag(self.row_width, self.n_places, self.query_depth)

    @property
    def mask_depth(self):
        """Depth of the bitmap queue: rows within the run-ahead limit, plus two for the queue's latency."""
        return self.run_ahead + 3

    @property
    def row_width(self):
        """Bits of a row's number: enough for all rows in flight, from the mask's acceptance to the last score."""
        return ceil_log2(self.run_ahead + 8 + self.plan.latency)

    @property
    def vector_width(self):
        """Bits of n_lanes words."""
        return 16 * self.n_lanes

    @property
    def scores(self):
        """Payload of one unit's scores."""
        wide = {"wide": 32} if self.wide_score else {}
        return data.StructLayout({**wide, "narrow": 16, "slot": ceil_log2(self.n_slots), "last_of_row": 1})

    def dot_product_unit(self):
        """The parameters of the dot-product unit."""
        return {name: getattr(self, name) for name in DotProductUnitParameters.__dataclass_fields__}

    def dpu_slice(self):
        """The parameters of one unit."""
        return {name: getattr(self, name) for name in DpuSliceParameters.__dataclass_fields__}


def slice_activity(n_units):
    """Activity flags of each unit, one-hot or zero."""
    names = ("beats", "waits_for_sink", "waits_for_rows", "waits_for_query")
    return data.StructLayout(dict.fromkeys(names, n_units))


class DpuSlice(Block):
    """Dot products of each row's query with those keys of the unit's bank whose bits are set, in the order of the bits.

    The query's words and the row counters are shared by all units and kept by
    :class:`~hw.units.dot_product_array.unit`. A unit stalls while its score is not accepted; it delays the others
    only through the run-ahead limit.
    """

    Parameters = DpuSliceParameters
    members_doc = {
        "weight_enable": "write these lanes of weight to weight_address of the weight bank",
        "weight_address": "word of the weight bank",
        "weight": "n_lanes elements",
        "weight_base": "word of the weight bank with beat 0 of slot 0",
        "weight_stride": "words from a beat to the next one of the same slot",
        "query_enable": "write query to query_address of the ring",
        "query_address": "word of the ring",
        "query": "one or more beats of n_lanes words",
        "bitmap": "bits of successive rows",
        "bitmap_tag": "number of that row and position of its query in the ring",
        "oldest_seen": "the oldest row's bitmap has reached the scanner, if it has set bits",
        "oldest_row": "first row that some unit has not done",
        "n_open": "rows from the oldest one on that may be issued",
        "last_beats": "beats of the row at each position of the ring, minus one",
        "passes_oldest": "after this clock edge all beats of the oldest row are issued",
        "delivered_row": "first row with a score possibly in flight",
        "holds_delivered": "a score of that row is in flight in this unit",
        "activity": "what the unit does in this clock",
        "score": "dot products, each with its slot and whether it is the row's last one here",
    }

    @staticmethod
    def members(p):
        return {
            "weight_enable": In(p.n_lanes),
            "weight_address": In(p.address_width),
            "weight": In(p.vector_width),
            "weight_base": In(p.address_width),
            "weight_stride": In(p.address_width),
            "query_enable": In(1),
            "query_address": In(ceil_log2(p.ring_depth)),
            "query": In(p.vector_width * p.query_width),
            "bitmap": In(stream.Signature(p.n_slots)),
            "bitmap_tag": In(p.tag()),
            "oldest_seen": In(1),
            "oldest_row": In(p.row_width),
            "n_open": In(range(p.n_places)),
            "last_beats": In(data.ArrayLayout(ceil_log2(p.max_beats), p.n_places)),
            "passes_oldest": Out(1),
            "delivered_row": In(p.row_width),
            "holds_delivered": Out(1),
            "activity": Out(slice_activity(1)),
            "score": Out(stream.Signature(p.scores)),
        }

    @property
    def latency(self):
        """Clocks from the acceptance of an idle unit's bitmap to the first score, for rows of max_beats beats."""
        p = self.parameters
        to_first_beat = self._bitmap_queue().latency + 2
        return to_first_beat + (self.max_beats - 1) + 1 + p.plan.latency

    def circuit(self):
        m = Module()
        p = self.parameters
        m.submodules.dot_product = unit = DotProductUnit(**p.dot_product_unit())
        m.submodules.scanner = scanner = SlotScanner(
            n_slots=self.n_slots,
            max_beats=self.max_beats,
            weight_depth=p.bank_depth,
            query_beats=p.query_width,
            n_places=p.n_places,
            query_depth=p.query_depth,
            row_width=p.row_width,
        )
        m.submodules.bitmaps = bitmaps = self._bitmap_queue()
        pipe = Pipeline(m, advance=unit.operands.ready)
        m.d.comb += [
            bitmaps.source.payload.eq(Cat(self.bitmap.payload, self.bitmap_tag)),
            bitmaps.source.valid.eq(self.bitmap.valid & self.bitmap.payload.any()),
            self.bitmap.ready.eq(bitmaps.source.ready),
            Cat(scanner.bitmap, scanner.bitmap_tag).eq(bitmaps.sink.payload),
            scanner.oldest_seen.eq(self.oldest_seen),
            scanner.bitmap_valid.eq(bitmaps.sink.valid),
            bitmaps.sink.ready.eq(scanner.bitmap_taken),
            scanner.advance.eq(pipe.advance),
            scanner.oldest_row.eq(self.oldest_row),
            scanner.n_open.eq(self.n_open),
            scanner.last_beats.eq(self.last_beats),
            scanner.weight_base.eq(self.weight_base),
            scanner.weight_stride.eq(self.weight_stride),
            self.passes_oldest.eq(scanner.passes_oldest),
            self.activity.beats.eq(scanner.issues),
            self.activity.waits_for_sink.eq(scanner.wants & ~pipe.advance),
            self.activity.waits_for_rows.eq(scanner.wants & pipe.advance & scanner.is_ahead),
            self.activity.waits_for_query.eq(scanner.wants & pipe.advance & ~scanner.is_ahead & ~scanner.is_open),
        ]
        self._read_operands(m, pipe, scanner, unit)
        self._tag_scores(m, scanner, unit)
        return m

    def _bitmap_queue(self):
        """Queue of bitmaps with set bits, each with the tag of its row."""
        p = self.parameters
        width = self.n_slots + p.tag().size
        return StreamQueue(width=width, depth=p.mask_depth, storage="memory")

    def _read_operands(self, m, pipe, scanner, unit):
        """Both memories are read when a beat is issued; the operands reach the dot-product unit one clock later."""
        p = self.parameters
        m.submodules.weights = weights = MemoryBank(
            depth=p.bank_depth, width=p.vector_width, granularity=16 if self.n_lanes > 1 else None
        )
        m.submodules.queries = queries = MemoryBank(depth=max(2, p.ring_depth), width=p.vector_width * p.query_width)
        query_beat = pipe.register(scanner.query_beat, name="query_beat")
        query_beats = Array(queries.read_data.word_select(beat, p.vector_width) for beat in range(p.query_width))
        m.d.comb += [
            weights.write_enable.eq(self.weight_enable),
            weights.write_address.eq(self.weight_address),
            weights.write_data.eq(self.weight),
            weights.read_enable.eq(scanner.issues),
            weights.read_address.eq(scanner.weight_address),
            queries.write_enable.eq(self.query_enable),
            queries.write_address.eq(self.query_address),
            queries.write_data.eq(self.query),
            queries.read_enable.eq(scanner.issues),
            queries.read_address.eq(scanner.query_address),
            unit.operands.payload.query.as_value().eq(query_beats[query_beat]),
            unit.operands.payload.key.as_value().eq(weights.read_data),
            unit.operands.payload.last.eq(pipe.register(scanner.last, name="last")),
            unit.operands.valid.eq(pipe.control(scanner.issues, name="beat_valid")),
        ]

    def _tag_scores(self, m, scanner, unit):
        """A queue with the slots of all dot products in flight, plus one entry for simultaneous push and pop."""
        tag = data.StructLayout({"slot": len(scanner.slot), "last_of_row": 1, "row": self.parameters.row_width})
        m.submodules.tags = tags = StreamQueue(width=tag.size, depth=2 + unit.latency)
        oldest = data.View(tag, tags.sink.payload)
        m.d.comb += [
            tags.source.payload.eq(Cat(scanner.slot, scanner.last_of_row, scanner.row)),
            tags.source.valid.eq(scanner.issues & scanner.last),
            self.score.payload.narrow.eq(unit.score.payload.narrow),
            self.score.payload.slot.eq(oldest.slot),
            self.score.payload.last_of_row.eq(oldest.last_of_row),
            self.score.valid.eq(unit.score.valid),
            unit.score.ready.eq(self.score.ready),
            tags.sink.ready.eq(self.score.valid & self.score.ready),
            self.holds_delivered.eq(tags.sink.valid & (oldest.row == self.delivered_row)),
        ]
        if self.wide_score:
            m.d.comb += self.score.payload.wide.eq(unit.score.payload.wide)
