"""Softmax unit: its row buffers by themselves, and the beats of its rows from end to end."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Mux, Signal

from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.linear_segments import LinearSegments
from hw.arith.multiplier import TruncatedMultiplier
from hw.arith.shifter import LogShifter
from hw.arith.trees import MaximumTree, SumTree
from hw.units.softmax_unit.power_lane import PowerLane
from hw.units.softmax_unit.probability_lane import ProbabilityLane
from hw.units.softmax_unit.retained_mass import RetainedMass
from hw.units.softmax_unit.row_buffer import RowBuffer
from hw.units.softmax_unit.row_multiplier import RowMultiplier
from hw.units.softmax_unit.unit import SoftmaxUnit
from verif.formal.properties import Property
from verif.formal.streams import moves, obey, one_to_one, stable


def row_buffer(c, block):
    """Every beat comes out with the statistic of its row, which comes some time after the row's last beat."""
    m = c.m
    obey(c, block.source)
    stable(c, row=block.row)
    accepted, delivered = moves(block.source), moves(block.row)
    ends = accepted & block.source.payload.last
    missing = Signal(range(block.depth + 2))  # complete rows whose statistic has not come
    m.d.sync += missing.eq(missing + ends - block.statistic_valid)
    c.assume(~block.statistic_valid | (missing != 0))

    one_to_one(
        c,
        block.source,
        block.row,
        capacity=block.depth,
        latency=2,
        full_rate=False,
        bounded_wait=False,
        shown=lambda row: Cat(row.beat, row.last),
    )
    # The solver picks a beat; its row's statistic is the one after those that earlier rows still miss.
    pick = c.free(1, "statistic_pick")
    following, ahead = Signal(), Signal(range(block.depth + 2))
    earlier, has_statistic = Signal(range(block.depth + 2)), Signal()
    wanted = Signal(block.statistic_width)
    inside = Signal(range(block.depth + 2))
    m.d.sync += inside.eq(inside + accepted - delivered)
    with m.If(pick & accepted & ~following):
        m.d.sync += [
            following.eq(1),
            has_statistic.eq(0),
            ahead.eq(inside - delivered),
            earlier.eq(missing - block.statistic_valid),
        ]
    with m.Elif(following):
        m.d.sync += [ahead.eq(ahead - delivered), following.eq(~(delivered & (ahead == 0)))]
        with m.If(block.statistic_valid & ~has_statistic):
            m.d.sync += [earlier.eq(Mux(earlier == 0, 0, earlier - 1)), has_statistic.eq(earlier == 0)]
            with m.If(earlier == 0):
                m.d.sync += wanted.eq(block.statistic)
    here = following & (ahead == 0) & block.row.valid
    c.claim("each beat with its own row's statistic", ~here | (has_statistic & (block.row.payload.statistic == wanted)))
    c.cover("a beat comes out with a statistic that is not 0", here & (wanted != 0))

    # A beat whose row's statistic has come is offered two clocks later, unless another one is.
    came = Signal(range(block.depth + 2))  # rows with statistic that have not come out completely
    m.d.sync += came.eq(came + block.statistic_valid - (delivered & block.row.payload.last))
    patience = Signal(2)
    m.d.sync += patience.eq(Mux((came != 0) & ~block.row.valid, patience + (patience != 3), 0))
    c.claim("offered two clocks after the statistic", patience <= 1)


def rows_in_time(c, block, source, sink, n_slots):
    """Beats come out with the same enable and last, none is lost, doubled or reordered, all in time."""
    m = c.m
    obey(c, source)
    payload = source.payload
    beats = Signal(range(n_slots + 1))  # of the row that comes in
    with m.If(moves(source)):
        m.d.sync += beats.eq(Mux(payload.last, 0, beats + 1))
    c.assume(~source.valid | payload.last | (beats != n_slots - 1))
    waited = c.register(sink.valid & ~sink.ready, "waited")
    tags = Cat(sink.payload.enable, sink.payload.last)
    c.claim(
        "valid, enable and last hold while stalled", ~waited | (sink.valid & (tags == c.register(tags, "tags_before")))
    )
    tagged = SimpleNamespace(valid=source.valid, ready=source.ready, payload=Cat(payload.enable, payload.last))
    # More than there is room for in two buffers and the pipelines behind them.
    capacity = 2 * n_slots + 2 * block.latency
    one_to_one(
        c,
        tagged,
        sink,
        capacity=capacity,
        latency=1,
        full_rate=False,
        bounded_wait=False,
        shown=lambda payload: Cat(payload.enable, payload.last),
        full=False,
    )
    # A sink that has always been ready: the oldest beat never waits longer than the block says, and none is refused.
    never_stalled, age = Signal(init=1), Signal(range(block.latency + 2 * n_slots + 1))
    inside = Signal(range(capacity + 2), name="beats_in_unit")
    accepted, delivered = moves(source), moves(sink)
    m.d.sync += [never_stalled.eq(never_stalled & sink.ready), inside.eq(inside + accepted - delivered)]
    longest = block.latency + 2 * (n_slots - 1)
    pick, watched, ahead = c.free(1, "watch"), Signal(), Signal.like(inside, name="ahead_in_unit")
    due = Signal()
    m.d.comb += due.eq(watched & (age == longest))
    with m.If(pick & accepted & ~watched):
        m.d.sync += [watched.eq(1), ahead.eq(inside - delivered), age.eq(1)]
    with m.Elif(watched):
        m.d.sync += [
            ahead.eq(ahead - delivered),
            watched.eq(~(delivered & (ahead == 0))),
            age.eq(age + (age != longest)),
        ]
    on_time = Signal(init=1)  # no beat of a row was late
    m.d.sync += on_time.eq(on_time & (source.valid | (beats == 0)))
    c.claim("a sink that is always ready: every beat is accepted", ~never_stalled | source.ready)
    c.claim(f"and comes out within {longest} clocks", ~(never_stalled & on_time & due) | (sink.valid & (ahead == 0)))
    c.cover("a beat comes out in its last clock", never_stalled & on_time & due & sink.valid & (ahead == 0))


def rows(c, block):
    rows_in_time(c, block, block.score, block.probability, block.n_slots)


def holds(c, block):
    obey(c, block.score)
    stable(c, probability=block.probability)


ARITHMETIC = (
    RetainedMass,
    LeadingZeroCounter,
    LinearSegments,
    LogShifter,
    MaximumTree,
    PowerLane,
    ProbabilityLane,
    SumTree,
    TruncatedMultiplier,
)
"""What makes values, and has no say in which beats go where."""

PROPERTIES = [
    Property(
        "softmax_unit",
        "row buffer: each beat once, in order, with its own row's statistic, in time",
        RowBuffer,
        [{"width": 1, "statistic_width": 2, "depth": depth} for depth in (3, 4)],
        row_buffer,
    ),
    Property(
        "softmax_unit",
        "beats of rows come out once, in order, in time, with their tags; any arithmetic",
        SoftmaxUnit,
        [{"n_banks": 1, "n_slots": 1}],
        rows,
        engine="bmc",
        depth=34,
        reach=45,
        free=ARITHMETIC,
    ),
    Property(
        "softmax_unit",
        "probabilities hold while stalled",
        SoftmaxUnit,
        [{"n_banks": 1, "n_slots": 1}],
        holds,
        free=(PowerLane, RowMultiplier),
        reach=50,
    ),
]
