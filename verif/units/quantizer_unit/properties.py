"""Quantiser: entries are the slices of the vectors, sorted, each once; every vector comes out once, in order."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Mux, Signal, signed

from golden.spec.mixed_precision import MAX_SLICES
from hw.arith.trees import MaximumTree
from hw.units.quantizer_unit.entry_sorter import EntrySorter
from hw.units.quantizer_unit.scale import ScaleSelector
from hw.units.quantizer_unit.unit import QuantizerUnit
from hw.units.quantizer_unit.value_lane import QuantiserLane
from verif.formal.properties import Property
from verif.formal.streams import moves, obey, one_to_one, stable


def _tiles(c, block, vector):
    """Whoever sends vectors: at most n_channels a tile. Gives beats taken, first and last ones of a tile."""
    m = c.m
    obey(c, vector)
    number = Signal(range(block.n_channels + 1))
    taken, last = moves(vector), vector.payload.last
    with m.If(taken):
        m.d.sync += number.eq(Mux(last, 0, number + 1))
    c.assume(~vector.valid | last | (number < block.n_channels - 1))
    return taken, number == 0, last


def sorts(c, block):
    """One slice of one vector, chosen by the solver, is followed to the one entry that stands for it."""
    m, p = c.m, block.parameters
    vector, entry = block.vector.payload, block.entry.payload
    taken, is_first, is_last = _tiles(c, block, block.vector)
    c.assume((vector.n_slices <= MAX_SLICES) & (vector.level < p.n_levels))
    finest = c.constant(len(block.finest_exponent), "finest")
    c.drive(block.finest_exponent, finest)
    c.assume((finest.as_signed() >= -15) & (finest.as_signed() <= 24), in_reset=True)
    stable(c, entry=block.entry)
    given = moves(block.entry)

    # Tiles that have begun and not come out completely; slices of the tile that comes in, in order of arrival.
    tiles = Signal(3)
    ends_out = given & entry.last
    m.d.sync += tiles.eq(tiles + (taken & is_first) - ends_out)
    before, slices = Signal(range(MAX_SLICES * p.n_channels + 1)), Signal(range(MAX_SLICES * p.n_channels + 1))
    m.d.comb += before.eq(Mux(is_first, 0, slices))
    with m.If(taken):
        m.d.sync += slices.eq(before + vector.n_slices)

    # The followed tile: from its first vector on. In it one slice of one vector, or none.
    picks_tile, picks_vector = c.free(1, "picks_tile"), c.free(1, "picks_vector")
    chosen_slice = c.free(2, "chosen_slice")
    following, complete, ahead = Signal(), Signal(), Signal(3)
    begins, inside = Signal(), Signal()
    m.d.comb += [begins.eq(taken & is_first & picks_tile & ~following), inside.eq(begins | (following & ~complete))]
    has_slice = Signal()
    address, channel, is_top = Signal.like(entry.address), Signal.like(entry.channel), Signal()
    exponent, count = Signal(signed(8)), Signal(range(MAX_SLICES * p.n_channels + 1))
    is_now = Signal()
    m.d.comb += is_now.eq(following & (ahead == 0))
    with m.If(begins):
        m.d.sync += [following.eq(1), complete.eq(is_last), ahead.eq(tiles - ends_out), has_slice.eq(0)]
    with m.Elif(following):
        m.d.sync += [complete.eq(complete | (taken & is_last)), ahead.eq(Mux(is_now, 0, ahead - ends_out))]
        with m.If(is_now & ends_out):
            m.d.sync += following.eq(0)
    with m.If(inside & taken):
        m.d.sync += count.eq(before + vector.n_slices)
        with m.If(picks_vector & (chosen_slice < vector.n_slices) & (begins | ~has_slice)):
            m.d.sync += [
                has_slice.eq(1),
                address.eq(before + chosen_slice),
                channel.eq(vector.channel),
                is_top.eq(chosen_slice + 1 == vector.n_slices),
                exponent.eq(finest.as_signed() - (p.n_levels - 1) + vector.level - (chosen_slice << 1)),
            ]

    # Its entries: sorted, as many as slices, the chosen one exactly once.
    number, seen, previous = Signal(range(MAX_SLICES * p.n_channels + 2)), Signal(), Signal(signed(8))
    hit = Signal()
    m.d.comb += hit.eq(entry.is_used & has_slice & (entry.address == address))
    with m.If(is_now & given):
        m.d.sync += [number.eq(Mux(entry.last, 0, number + 1)), seen.eq((seen | hit) & ~entry.last)]
        m.d.sync += previous.eq(entry.exponent)
    here = is_now & block.entry.valid
    c.claim("no entry before its tile is complete", ~here | complete)
    c.claim(
        "sorted: each exponent is by the shift above the one before",
        ~here | Mux(number == 0, entry.shift == 0, entry.exponent == previous + entry.shift),
    )
    c.claim(
        "the chosen slice: right channel, exponent, and mark of the top",
        ~(here & hit) | ((entry.channel == channel) & (entry.is_top == is_top) & (entry.exponent == exponent)),
    )
    c.claim("the chosen slice not twice", ~(here & hit & seen))
    c.claim("the chosen slice comes", ~(here & entry.last & has_slice) | seen | hit)
    c.claim(
        "as many entries as slices, or one that is not used",
        ~here | (entry.last == (number + 1 >= count)) & (entry.is_used == (count != 0)),
    )
    c.cover("a tile of three entries ends", here & entry.last & (number == 2))
    c.cover("a shift", here & (entry.shift != 0))
    c.cover("an empty tile", here & ~entry.is_used)

    # No deadlock: a complete tile inside is offered in time, and vectors are taken if no more than four tiles wait.
    completed = Signal(3)
    m.d.sync += completed.eq(completed + (taken & is_last) - ends_out)
    bound = 2 * (MAX_SLICES + 1) * p.n_channels + 8
    patience = Signal(range(bound + 2))
    m.d.sync += patience.eq(Mux((completed == 0) | block.entry.valid, 0, patience + (patience <= bound)))
    c.claim("a complete tile is offered in time", patience <= bound)
    c.claim("vectors wait only behind complete tiles", block.vector.ready | (completed != 0))


def passes_vectors(c, block):
    """Every vector once, in order, whatever the values; the sorter may stall as it likes."""
    obey(c, block.vector)
    stable(c, quantised=block.quantised)
    vector = block.vector
    one_to_one(
        c,
        SimpleNamespace(
            valid=vector.valid, ready=vector.ready, payload=Cat(vector.payload.channel, vector.payload.last)
        ),
        block.quantised,
        capacity=block.latency + 1,
        latency=block.latency,
        full_rate=False,
        bounded_wait=False,
        full=False,
        shown=lambda payload: Cat(payload.channel, payload.last),
    )


PROPERTIES = [
    Property(
        "quantizer_unit",
        "entries: sorted, a permutation of the slices, as many; offered in time; stable while stalled",
        EntrySorter,
        [{"n_channels": 1, "n_levels": 1, "channel_width": 1}],
        sorts,
        depth=60,
        timeout=900,
    ),
    Property(
        "quantizer_unit",
        "entries of more levels, and of two vectors: sorted, a permutation of the slices, as many; offered in time",
        EntrySorter,
        [{"n_channels": 1, "n_levels": 3, "channel_width": 1}, {"n_channels": 2, "n_levels": 2, "channel_width": 2}],
        sorts,
        engine="bmc",
        depth=20,
        timeout=1800,
    ),
    Property(
        "quantizer_unit",
        "every vector comes out once, in order (any arithmetic, any sorter)",
        QuantizerUnit,
        [{"n_values": 1, "n_channels": 2, "n_levels": 2, "channel_width": 2}],
        passes_vectors,
        free=(MaximumTree, ScaleSelector, QuantiserLane, EntrySorter),
    ),
]
