"""AXI's rules for the parts that make bursts: kinds of address, pages, lengths, order, stability."""

from amaranth.hdl import Cat, Const, Mux, Signal

from hw.top.system.burst_splitter import BurstSplitter
from hw.top.system.read_dma import ReadDma
from verif.formal.properties import Property
from verif.formal.streams import moves, obey, stable

SMALL = {
    "data_width": 32,
    "burst_beats": 4,
    "n_reads": 2,
    "n_banks": 2,
    "n_lanes": 1,
    "simd_lanes": 1,
    "max_tokens": 16,
    "in_flight": 2,
}
_MOST = 12
"""Elements of a row, rows of a transfer that are looked at."""


def _is_legal(c, block, burst, name):
    """A burst's address and length, by the rules of AXI4."""
    n_bytes = block.parameters.bus_bytes
    beats = burst.payload.length + 1
    in_page = Signal(14, name="end_in_page")
    c.m.d.comb += in_page.eq(burst.payload.address[:12] + beats * n_bytes)
    c.claim(f"{name} begins with a beat", ~burst.valid | (burst.payload.address % n_bytes == 0))
    c.claim(f"{name} does not cross a page", ~burst.valid | (in_page <= 4096))
    c.claim(f"{name} is not too long", ~burst.valid | (beats <= block.parameters.most_beats))


def splitter(c, block):
    jobs, bursts = block.jobs, block.bursts
    obey(c, jobs)
    c.drive(block.stop, Const(0, 1))
    job = jobs.payload
    c.assume((job.elements != 0) & (job.elements <= _MOST) & (job.rows != 0) & (job.rows <= 3) & ~job.address[0])
    stable(c, bursts=bursts)
    _is_legal(c, block, bursts, "a burst")
    # The bursts of a row are what its bytes need, and no more, one behind the other.
    n_bytes, width = block.parameters.bus_bytes, block.parameters.address_width
    row, rows_done, at, is_inside = Signal(width), Signal(16), Signal(width), Signal()
    start, end, after = Signal(width), Signal(width), Signal(width)
    is_last = Signal()
    here = Mux(rows_done == 0, job.address, row)
    c.m.d.comb += [
        start.eq(here & ~(n_bytes - 1)),
        end.eq((here + 2 * job.elements + n_bytes - 1) & ~(n_bytes - 1)),
        after.eq(bursts.payload.address + (bursts.payload.length + 1) * n_bytes),
        is_last.eq(after == end),
    ]
    with c.m.If(moves(bursts)):
        c.m.d.sync += [at.eq(after), is_inside.eq(~is_last)]
        with c.m.If(is_last):
            c.m.d.sync += [rows_done.eq(Mux(rows_done + 1 == job.rows, 0, rows_done + 1)), row.eq(here + job.pitch)]
    c.claim("bursts follow each other", ~bursts.valid | (bursts.payload.address == Mux(is_inside, at, start)))
    c.claim("none goes beyond its row", ~bursts.valid | ((end - after)[: width - 1] < 4096))
    ends = moves(bursts) & is_last & (rows_done + 1 == job.rows)
    c.claim("a transfer is taken with its last burst", moves(jobs) == ends)
    c.cover("a transfer of several rows and bursts", ends & (job.rows == 2) & is_inside)


def reads(c, block):
    """What is asked for has room: every answer is taken; a request stays until it is taken, whatever else happens."""
    jobs, bursts = block.jobs, block.bursts
    obey(c, jobs)
    job = jobs.payload
    c.assume((job.elements != 0) & (job.rows != 0))
    p = block.parameters
    # The bus answers what was asked for, in order: a queue of lengths would say more than is needed here.
    owed = Signal(range(p.read_depth + 1))
    beats = bursts.payload.length + 1
    c.assume(~block.words.valid | (owed != 0))
    c.assume(~block.words.valid | (owed != 1) | block.words.word.last)
    c.m.d.sync += owed.eq(owed + Mux(moves(bursts), beats, 0) - block.words.valid)
    c.drive(block.clear, Const(0, 1))
    stable(c, bursts=bursts)
    _is_legal(c, block, bursts, "a request")
    held = Signal(range(2 * p.read_depth))
    c.m.d.comb += held.eq(owed + Mux(bursts.valid, beats, 0))
    c.claim("no more is asked for than there is room", held <= p.read_depth)
    c.cover("all the room is used", Cat(owed == p.read_depth).any())


PROPERTIES = [
    Property(
        "accelerator",
        "bursts of a row: legal, one behind the other, exactly its bytes",
        BurstSplitter,
        [SMALL],
        splitter,
        engine="bmc",
        depth=9,
    ),
    Property(
        "accelerator",
        "requests to read are legal, stay until taken, and have room for their answers",
        ReadDma,
        [SMALL],
        reads,
        engine="bmc",
        depth=9,
        reach=12,
    ),
]
