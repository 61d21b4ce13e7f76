"""Sampled array: its scanner finds every one of every bitmap, in order; scores and reports from end to end."""

from amaranth.hdl import Cat, Const, Mux, Signal
from amaranth.lib.data import View

from hw.arith.maximum import DigitMaximum
from hw.units.dot_product_array.slot_scanner import SlotScanner
from hw.units.dot_product_array.unit import DotProductArray
from hw.units.dot_product_unit.accumulator import AlignedAccumulator
from hw.units.dot_product_unit.lane import DotProductLane
from hw.units.dot_product_unit.rounding import ScoreRounder
from verif.formal.properties import Property
from verif.formal.streams import moves, obey, stable


def _lowest(bits):
    """The lowest one of some bits, alone."""
    return (bits & (-bits))[: len(bits)]


def scans(c, block):
    """One row is followed: each of its ones is issued, the lowest first, with all beats and the right addresses."""
    m = c.m
    n_words = -(-block.max_beats // block.query_beats)
    last_beat = c.constant(len(block.last_beats[0]), "last_beat")
    c.assume(last_beat < block.max_beats, in_reset=True)
    c.drive(block.last_beats, Cat([last_beat] * block.n_places))
    base = c.constant(len(block.weight_base), "base")
    stride = c.constant(len(block.weight_stride), "stride")
    c.drive(block.weight_base, base)
    c.drive(block.weight_stride, stride)

    # What the array around it does: rows pass one by one, once their queries are loaded.
    oldest, loaded = Signal(block.row_width), Signal(range(block.n_places + 1))
    passes, loads = Signal(), Signal()
    m.d.comb += [
        passes.eq((loaded != 0) & block.passes_oldest),
        loads.eq(c.free(1, "loads") & (loaded != block.n_places)),
    ]
    m.d.sync += [oldest.eq(oldest + passes), loaded.eq(loaded + loads - passes)]
    c.drive(block.oldest_row, oldest)
    c.drive(block.n_open, Mux(loaded == block.n_places, block.n_places - 1, loaded))
    # Masks are accepted one by one; those with ones come through a queue, on offer two clocks later if nothing waits.
    bitmap = c.free(block.n_slots, "mask")
    accepts, moves_on = Signal(), Signal()
    accepted, place, seen = Signal(block.row_width), Signal(range(block.n_places)), Signal(block.row_width)
    entry = Cat(bitmap, accepted, place)
    entering, offered = Signal(len(entry)), Signal(len(entry))
    is_entering, is_offered = Signal(), Signal()
    in_flight = Signal(block.row_width)
    m.d.comb += [
        moves_on.eq(~is_offered | block.bitmap_taken),
        in_flight.eq(accepted - oldest),
        accepts.eq(c.free(1, "accepts") & (~is_entering | moves_on) & (in_flight != (1 << block.row_width) - 1)),
    ]
    m.d.sync += seen.eq(accepted)
    with m.If(accepts):
        m.d.sync += [accepted.eq(accepted + 1), place.eq(Mux(place == block.n_places - 1, 0, place + 1))]
    with m.If(moves_on):
        m.d.sync += [offered.eq(entering), is_offered.eq(is_entering), is_entering.eq(0)]
    with m.If(accepts & bitmap.any()):
        m.d.sync += [entering.eq(entry), is_entering.eq(1)]
    c.drive(block.bitmap, offered[: block.n_slots])
    c.drive(block.bitmap_tag, offered[block.n_slots :])
    c.drive(block.bitmap_valid, is_offered)
    c.drive(block.oldest_seen, seen != oldest)
    c.claim("only offered bitmaps are taken", ~block.bitmap_taken | block.bitmap_valid)
    c.claim("rows pass after they were accepted", ~passes | (in_flight != 0))

    following, row = Signal(), Signal(block.row_width)
    rest, beat, row_place = Signal(block.n_slots), Signal(range(block.max_beats)), Signal.like(place)
    begins = c.free(1, "row_pick") & accepts & ~following
    ends = following & passes & (oldest == row)
    here = following & block.issues & (block.row == row)
    lowest = _lowest(rest)
    with m.If(begins):
        m.d.sync += [following.eq(1), row.eq(accepted), rest.eq(bitmap), beat.eq(0), row_place.eq(place)]
    with m.Elif(ends):
        m.d.sync += following.eq(0)
    with m.If(here & ~begins):
        m.d.sync += [beat.eq(Mux(block.last, 0, beat + 1)), rest.eq(Mux(block.last, rest & ~lowest, rest))]
    slot_bit = (1 << block.slot)[: block.n_slots] if len(block.slot) else 1
    c.claim("the lowest one is issued", ~here | ((rest != 0) & (slot_bit == lowest)))
    c.claim("as many beats as the row has", ~here | (block.last == (beat == last_beat)))
    c.claim("the last one of the row is marked", ~here | (block.last_of_row == (rest == lowest)))
    address = (base + beat * stride + block.slot)[: len(base)]
    c.claim("address of the weight", ~here | (block.weight_address == address))
    query = row_place * n_words + beat // block.query_beats
    c.claim(
        "address of the query",
        ~here | ((block.query_address == query) & (block.query_beat == beat % block.query_beats)),
    )
    left = Mux(here & block.last, rest & ~lowest, rest)
    c.claim("nothing is left when the row passes", ~ends | (left == 0))
    c.claim("only open rows are issued", ~block.issues | ((block.row - oldest)[: block.row_width] < block.n_open))
    c.cover("a row without ones passes", ends & (rest == 0) & (beat == 0))
    c.cover("a row of several ones passes", ends & here & (block.slot != 0 if len(block.slot) else 1))

    idle = Signal(3)
    works = following & (rest != 0) & (oldest == row) & (loaded != 0) & block.advance
    m.d.sync += idle.eq(Mux(works & ~block.issues, idle + (idle < 5), 0))
    c.claim("an open row waits four clocks at most, two of them in the queue", idle < 5)


_ROWS = 3
"""Rows that may be on their way at a time, in the bounded check of the whole array."""


def array(c, block):
    """All rows, with a model of what each unit owes: its scores by rising slot, then the row's report, in time."""
    m, p = c.m, block.parameters
    scores = block.score
    obey(c, block.mask, block.query, block.weight, block.weight_lane)
    stable(c, row_done=block.row_done)
    accepted, done = moves(block.mask), moves(block.row_done)
    bitmaps = View(block.mask.payload.shape(), block.mask.payload.as_value()).bitmap
    inside = Signal(range(_ROWS + 1))
    m.d.sync += inside.eq(inside + accepted - done)
    c.assume((inside != _ROWS) | ~block.mask.valid)
    c.claim("a row is reported once", ~block.row_done.valid | (inside != 0))
    c.cover("a row is reported", done)

    for unit, score in enumerate(scores):
        tags = Cat(score.payload.slot, score.payload.last_of_row)
        waited = c.register(score.valid & ~score.ready, f"score_{unit}_waited")
        before = c.register(tags, f"score_{unit}_before")
        c.claim(f"score {unit} holds while stalled", ~waited | (score.valid & (tags == before)))
        rows = [Signal(block.n_slots, name=f"owed_{unit}_{row}") for row in range(_ROWS)]  # the oldest one first
        left = []  # of each row after this clock
        earlier = Const(0, 1)
        for row in rows:
            now = ~earlier & (row != 0)
            left.append(Mux(now & moves(score), row & ~_lowest(row), row))
            here = now & score.valid
            slot_bit = (1 << score.payload.slot)[: block.n_slots] if len(score.payload.slot) else 1
            name = f"unit {unit}, row {len(left) - 1}"
            c.claim(
                f"{name}: by rising slot, the last one marked",
                ~here | ((slot_bit == _lowest(row)) & (score.payload.last_of_row == (row == _lowest(row)))),
            )
            earlier = earlier | (row != 0)
        c.claim(f"unit {unit}: only scores of ones", ~score.valid | earlier)
        c.claim(f"unit {unit}: a row is reported when its scores were taken", ~block.row_done.valid | (rows[0] == 0))
        c.cover(
            f"unit {unit}: the last score of a row of several",
            moves(score) & score.payload.last_of_row & (score.payload.slot != 0),
        )
        for index, row in enumerate(rows):
            following = left[index + 1] if index + 1 < _ROWS else Const(0, block.n_slots)
            kept = Mux(done, following, left[index])
            m.d.sync += row.eq(Mux(accepted & (inside - done == index), bitmaps[unit], kept))

    # The oldest row, its mask and its query here: so many clocks in which all sinks are ready.
    queried = Signal(p.row_width + 1)
    m.d.sync += queried.eq(queried + (moves(block.query) & block.query.payload.last.any()) - done)
    longest = block.latency + block.n_slots * p.max_beats + 2
    ready = Cat(score.ready for score in scores).all() & block.row_done.ready
    patience = Signal(range(longest + 2))
    with m.If(done | (inside == 0) | (queried == 0)):
        m.d.sync += patience.eq(0)
    with m.Elif(ready & (patience <= longest)):
        m.d.sync += patience.eq(patience + 1)
    c.claim(f"a row is reported within {longest} clocks in which the sinks are ready", patience <= longest)


PROPERTIES = [
    Property(
        "dot_product_array",
        "scanner: every one of every bitmap, lowest first, with all beats, addresses and marks",
        SlotScanner,
        [
            {"n_slots": 2, "max_beats": 2, "weight_depth": 4, "n_places": 2, "row_width": 2},
            {"n_slots": 3, "max_beats": 1, "weight_depth": 4, "n_places": 3, "row_width": 2},
            {"n_slots": 1, "max_beats": 3, "weight_depth": 2, "query_beats": 2, "n_places": 2, "row_width": 3},
        ],
        scans,
    ),
    Property(
        "dot_product_array",
        f"scores by rising slot, then the row's report, in time; {_ROWS} rows at a time, any arithmetic",
        DotProductArray,
        [{"n_units": 2, "n_lanes": 1, "n_slots": 2, "max_beats": 1, "run_ahead": 0}],
        array,
        engine="bmc",
        depth=18,
        free=(DotProductLane, DigitMaximum, AlignedAccumulator, ScoreRounder),
    ),
]
