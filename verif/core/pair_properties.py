"""Property of the scoreboard with its hazard checkers: any two commands never meet where they must not."""

from amaranth.hdl import Array, Cat, Mux, Signal

from hw.top.controller.hazards import HazardChecker
from hw.top.controller.scoreboard import Scoreboard
from verif.formal.properties import Property
from verif.formal.streams import moves, obey

_COUNT = 3
"""Bits of the numbers of commands."""


class _Watched:
    """One command, the ``number``-th that is taken: what it touches, and how far it is."""

    def __init__(self, c, block, number, counts, name):
        m = c.m
        taken = moves(block.checked)
        is_now = taken & (counts.taken == number) & ~counts.is_full
        is_known = Signal(name=f"{name}_is_known")
        held = Signal.like(block.checked.payload.footprint, name=f"{name}_held")
        before = Signal(_COUNT, name=f"{name}_before")  # commands of its unit before it
        unit = block.checked.payload.footprint.unit
        with m.If(is_now):
            m.d.sync += [
                held.eq(block.checked.payload.footprint),
                is_known.eq(1),
                before.eq(Array(counts.of_unit)[unit]),
            ]
        self.footprint, self.is_known, self.unit = held, is_known, held.unit
        begun, ended = Array(counts.begun)[held.unit], Array(counts.ended)[held.unit]
        starts, ends = Array(block.start)[held.unit], Array(block.done)[held.unit]
        self.has_begun = is_known & ((begun > before) | ((begun == before) & starts))
        self.has_ended = is_known & (ended > before)
        self.ends = is_known & (ended == before) & ends & self.has_begun


class _Counts:
    """How many commands were taken, and of each unit taken, begun and ended."""

    def __init__(self, c, block):
        m, units = c.m, range(len(block.start))
        self.taken = Signal(_COUNT, name="taken")
        self.is_full = self.taken.all()
        taken = moves(block.checked)
        self.of_unit, self.begun, self.ended = (
            [Signal(_COUNT, name=f"{name}_{unit}") for unit in units] for name in ("of_unit", "begun", "ended")
        )
        m.d.sync += self.taken.eq(self.taken + (taken & ~self.is_full))
        for unit in units:
            is_here = taken & (block.checked.payload.footprint.unit == unit)
            for count, increment in (
                (self.of_unit, is_here),
                (self.begun, block.start[unit]),
                (self.ended, block.done[unit]),
            ):
                m.d.sync += count[unit].eq(count[unit] + (increment & ~count[unit].all()))


def pairs(c, block):
    """Any two of the commands that are taken: what the hazard checker says of them is kept until the first ends."""
    m = c.m
    obey(c, block.checked)
    units = len(block.start)
    c.assume(block.checked.payload.footprint.unit < units, in_reset=True)
    counts = _Counts(c, block)
    # Units work at commands that they have, and complete no rows whose inputs are not valid.
    at_work = Cat((begun != ended) for begun, ended in zip(counts.begun, counts.ended, strict=True)) | block.start
    c.assume((block.done & ~at_work) == 0)
    for unit in range(units):
        c.assume(block.rows_done[unit] <= Mux(at_work[unit], block.limit[unit], block.max_tokens))
    c.assume(~counts.is_full)
    is_ascending = c.constant(1, "is_ascending_always")
    c.drive(block.is_ascending, is_ascending)
    first, second = c.constant(_COUNT, "first_number"), c.constant(_COUNT, "second_number")
    c.assume(first < second, in_reset=True)
    earlier = _Watched(c, block, first, counts, "earlier")
    later = _Watched(c, block, second, counts, "later")
    m.submodules.reference = reference = HazardChecker.for_core(block.parameters)
    m.d.comb += [
        reference.later.eq(later.footprint),
        reference.earlier.eq(earlier.footprint),
        reference.is_ascending.eq(is_ascending),
    ]
    same_unit = later.unit == earlier.unit
    both = later.has_begun & ~earlier.has_ended
    c.claim("a command that must wait begins when the other one has ended", ~(both & (reference.waits | same_unit)))
    follows = reference.follows & ~same_unit
    c.claim("a command that follows begins no earlier than the other one", ~(both & follows) | earlier.has_begun)
    limit, rows_done = Array(block.limit)[later.unit], Array(block.rows_done)[earlier.unit]
    c.claim("and reads only rows that the other one has done", ~(both & follows) | earlier.ends | (limit <= rows_done))
    c.cover("both at work, one following the other", both & follows & earlier.has_begun & (limit == 1))
    c.cover("both at work, independent of each other", both & ~follows & earlier.has_begun)


PROPERTIES = [
    Property(
        "core",
        "scoreboard with its hazard checkers: no two commands meet where they must not; rows are handed over in order",
        Scoreboard,
        [{"max_tokens": 2, "n_masks": 1, "in_flight": 2}],
        pairs,
        engine="bmc",
        depth=12,
        reach=12,
    )
]
