"""Data aligner: every element comes out at its transposed place, once, in order, and in time."""

from amaranth.hdl import Mux, Signal
from amaranth.utils import ceil_log2

from hw.units.data_aligner.unit import DataAligner
from verif.formal.properties import Property
from verif.formal.streams import moves, obey, stable


def transposes(c, block):
    """One element of one tile, chosen by the solver, is followed from ``rows[u][t]`` to ``columns[t][u]``."""
    m, n = c.m, block.n
    width = ceil_log2(n)
    obey(c, block.rows)
    stable(c, columns=block.columns)
    taken, given = moves(block.rows), moves(block.columns)
    # Vectors in and columns out, counted by tile and place; at most two tiles and what is on its way out are inside.
    place_in, place_out = Signal(width), Signal(width)
    tiles = Signal(3)  # tiles begun or complete that have not come out completely
    begins, ends = Signal(), Signal()
    m.d.comb += [begins.eq(taken & (place_in == 0)), ends.eq(given & (place_out == n - 1))]
    m.d.sync += [place_in.eq(place_in + taken), place_out.eq(place_out + given), tiles.eq(tiles + begins - ends)]

    vector, element = c.constant(width, "vector"), c.constant(width, "element")
    pick = c.free(1, "pick")
    following, ahead = Signal(), Signal(3)  # the tile is followed; so many tiles are ahead of it
    seen, wanted = Signal(), Signal(block.width)
    with m.If(begins & pick & ~following):
        m.d.sync += [following.eq(1), ahead.eq(tiles - ends), seen.eq(0)]
    with m.Elif(following & ends):
        m.d.sync += [ahead.eq(ahead - 1), following.eq(ahead != 0)]
    in_tile = following & ~seen | begins & pick & ~following
    with m.If(taken & in_tile & (place_in == vector)):
        m.d.sync += [seen.eq(1), wanted.eq(block.rows.payload[element])]
    here = following & (ahead == 0) & block.columns.valid & (place_out == element)
    c.claim("element at its transposed place", ~here | (seen & (block.columns.payload[vector] == wanted)))
    c.claim("at most three tiles inside", tiles <= 3)
    complete = Signal(3)  # tiles that went in completely and have not come out completely
    m.d.sync += complete.eq(complete + (taken & (place_in == n - 1)) - ends)
    c.claim("no column before its tile is complete", ~block.columns.valid | (complete != 0))
    c.cover("an element comes out", here & given)

    # With a ready sink a complete tile's next column comes within the latency, and clock by clock from then on.
    stalled = block.columns.valid & ~block.columns.ready
    patience = Signal(range(block.latency + 2))
    m.d.sync += patience.eq(Mux((complete == 0) | given | stalled, 0, patience + (patience <= block.latency)))
    c.claim("vectors are refused only when two tiles wait", block.rows.ready | (complete >= 2))
    c.claim(f"a column at most {block.latency} clocks after its tile is complete", patience < block.latency)


PROPERTIES = [
    Property(
        "data_aligner",
        "columns are the rows transposed, in order, in time; stable while stalled",
        DataAligner,
        [{"n": 2, "width": 1}, {"n": 2, "width": 3}, {"n": 4, "width": 1}],
        transposes,
    )
]
