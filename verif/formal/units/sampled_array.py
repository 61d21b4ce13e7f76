"""Sampled array: its scanner finds every one of every bitmap, in order."""

from amaranth.hdl import Cat, Mux, Signal

from hw.units.sampled.slot_scanner import SlotScanner
from verif.formal.properties import Property


def _lowest(bits):
    """The lowest one of some bits, alone."""
    return (bits & (-bits))[:len(bits)]


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
    c.drive(block.bitmap, offered[:block.n_slots])
    c.drive(block.bitmap_tag, offered[block.n_slots:])
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
    slot_bit = (1 << block.slot)[:block.n_slots] if len(block.slot) else 1
    c.claim("the lowest one is issued", ~here | ((rest != 0) & (slot_bit == lowest)))
    c.claim("as many beats as the row has", ~here | (block.last == (beat == last_beat)))
    c.claim("the last one of the row is marked", ~here | (block.last_of_row == (rest == lowest)))
    address = (base + beat * stride + block.slot)[:len(base)]
    c.claim("address of the weight", ~here | (block.weight_address == address))
    query = row_place * n_words + beat // block.query_beats
    c.claim("address of the query", ~here | ((block.query_address == query)
                                             & (block.query_beat == beat % block.query_beats)))
    left = Mux(here & block.last, rest & ~lowest, rest)
    c.claim("nothing is left when the row passes", ~ends | (left == 0))
    c.claim("only open rows are issued", ~block.issues | ((block.row - oldest)[:block.row_width] < block.n_open))
    c.cover("a row without ones passes", ends & (rest == 0) & (beat == 0))
    c.cover("a row of several ones passes", ends & here & (block.slot != 0 if len(block.slot) else 1))

    idle = Signal(3)
    works = following & (rest != 0) & (oldest == row) & (loaded != 0) & block.advance
    m.d.sync += idle.eq(Mux(works & ~block.issues, idle + (idle < 5), 0))
    c.claim("an open row waits four clocks at most, two of them in the queue", idle < 5)


PROPERTIES = [
    Property("sampled_array", "scanner: every one of every bitmap, lowest first, with all beats, addresses and marks",
             SlotScanner, [{"n_slots": 2, "max_beats": 2, "weight_depth": 4, "n_places": 2, "row_width": 2},
                           {"n_slots": 3, "max_beats": 1, "weight_depth": 4, "n_places": 3, "row_width": 2},
                           {"n_slots": 1, "max_beats": 3, "weight_depth": 2, "query_beats": 2, "n_places": 2,
                            "row_width": 3}], scans),
]
