"""Parts of the core: the loop over rows, the scan of their masks, the controller."""

from amaranth.hdl import Array, Cat, Mux, Signal

from golden.spec.commands import ErrorCode
from golden.spec.operands import DEPTH
from hw.top.controller.command_checker import CommandChecker
from hw.top.controller.controller import Controller, Unit
from hw.top.controller.footprint import BASES, bases_in, is_written_at
from hw.top.controller.hazards import HazardChecker
from hw.top.controller.scoreboard import Scoreboard
from hw.top.rows.bitmap_scanner import BitmapScanner
from hw.top.rows.row_sequencer import RowSequencer
from verif.formal.properties import Property
from verif.formal.streams import moves, obey, stable


def loops(c, block):
    """The rows of a loop: positions in order, or the list's entries; each below the limit; the last one marked."""
    m = c.m
    # A new loop drops what the old one held; what it is about may change with its start.
    dropped = block.start | c.register(block.start, "dropped")
    stable(c, rows=block.rows, unless=dropped)
    running, given = Signal(), moves(block.rows)
    position = Signal(range(block.max_tokens + 1))
    count = c.register(block.n_active, "count")
    limit = c.register(block.limit, "limit_before")
    gated = c.register(block.gated, "gated_before")
    with m.If(block.start):
        m.d.sync += [running.eq(block.n_active != 0), position.eq(0)]
    with m.Elif(given):
        m.d.sync += [position.eq(position + 1), running.eq(~block.rows.payload.last)]
    c.assume(block.n_active <= block.max_tokens, in_reset=True)
    c.assume(block.limit <= block.n_active)
    c.assume(~running | block.start | ((block.n_active == count) & (block.gated == gated) & (block.limit >= limit)))
    token = block.token
    c.assume(~(running & block.gated & token.write))
    c.assume(~(block.start & token.write))
    c.assume((token.address < block.max_tokens) & (token.row < block.max_tokens), in_reset=True)

    entries = [Signal(len(token.row), name=f"entry_{index}", reset_less=True) for index in range(block.max_tokens)]
    known = [Signal(name=f"known_{index}", reset_less=True) for index in range(block.max_tokens)]
    for index, (entry, is_known) in enumerate(zip(entries, known, strict=False)):
        with m.If(token.write & (token.address == index)):
            m.d.sync += [entry.eq(token.row), is_known.eq(1)]
    c.drive(block.first, 0)
    c.assume(
        ~(block.start & block.gated)
        | Cat(is_known | (index >= block.n_active) for index, is_known in enumerate(known)).all()
    )

    row = block.rows.payload
    c.claim("rows only while a loop runs", ~block.rows.valid | running)
    c.claim(
        "its position or the list's entry",
        ~block.rows.valid | block.start | (row.row == Mux(block.gated, Array(entries)[position], position)),
    )
    c.claim("below the limit", ~block.rows.valid | block.start | (position < block.limit))
    c.claim("the last one is marked", ~block.rows.valid | block.start | (row.last == (position + 1 == block.n_active)))
    idle = Signal(2)
    m.d.sync += idle.eq(Mux(running & (position < block.limit) & ~block.rows.valid & ~block.start, idle + 1, 0))
    c.claim("given two clocks after it may be", idle <= 1)
    c.cover("the end of a gated loop", given & row.last & block.gated & (position != 0))


def walks(c, block):
    """One row is followed from the clock in which its bitmap is first offered, through all its turns."""
    m = c.m
    obey(c, block.bitmap)
    stable(c, step=block.step)
    turns, used = c.constant(len(block.turns), "turns"), c.constant(block.n_slots, "used")
    c.assume((turns != 0) & (turns <= block.max_turns), in_reset=True)
    c.drive(block.turns, turns)
    c.drive(block.used, used)
    bitmap, step = block.bitmap.payload.bitmap, block.step.payload
    taken, given = moves(block.bitmap), moves(block.step)
    ended = given & step.last & step.last_turn
    inside = Signal(3)  # rows taken and not walked to their end
    m.d.sync += inside.eq(inside + taken - ended)
    c.claim("at most two rows inside", inside <= 2)

    waited = c.register(block.bitmap.valid & ~block.bitmap.ready, "bitmap_waited")
    begins, following, ahead = Signal(), Signal(), Signal(3)
    banks = [Signal(block.n_slots, name=f"bank_{bank}") for bank in range(block.n_banks)]
    rest = [Signal(block.n_slots, name=f"rest_{bank}") for bank in range(block.n_banks)]
    turn, is_first = Signal(range(block.max_turns + 1)), Signal()
    m.d.comb += begins.eq(c.free(1, "row_pick") & block.bitmap.valid & ~waited & ~following)
    turn_of_row = following & (ahead == 0)
    with m.If(begins):
        m.d.sync += [following.eq(1), ahead.eq(inside - ended), turn.eq(1), is_first.eq(1)]
        m.d.sync += [left.eq(bank & used) for left, bank in zip(rest, bitmap, strict=False)]
        m.d.sync += [kept.eq(bank & used) for kept, bank in zip(banks, bitmap, strict=False)]
    with m.Elif(following):
        m.d.sync += ahead.eq(Mux(ended & (ahead != 0), ahead - 1, ahead))
        with m.If(turn_of_row & given):
            m.d.sync += [following.eq(~ended), is_first.eq(step.last), turn.eq(turn + step.last)]
            m.d.sync += [
                left.eq(Mux(step.last, kept, left & (left - 1))) for left, kept in zip(rest, banks, strict=False)
            ]
    here = turn_of_row & block.step.valid
    c.claim("banks that have a one left", ~here | (step.enable == Cat(left != 0 for left in rest)))
    for bank, left in enumerate(rest):
        bit = (1 << step.slot[bank])[: block.n_slots] if len(step.slot[bank]) else 1
        c.claim(f"bank {bank}: the lowest one", ~(here & (left != 0)) | (bit == (left & (-left))[: block.n_slots]))
    c.claim("first of a turn", ~here | (step.first == is_first))
    c.claim("last of a turn", ~here | (step.last == Cat((left & (left - 1)) == 0 for left in rest).all()))
    c.claim("last turn", ~here | (step.last_turn == (turn == turns)))
    c.cover("the end of a row of several steps", here & given & ended & ~step.first)
    idle = Signal(2)
    m.d.sync += idle.eq(Mux(block.bitmap.valid & ~block.step.valid, idle + (idle != 3), 0))
    c.claim("no more than two clocks without a step", idle != 3)


def schedules(c, block):
    """Whatever commands wait for and follow: each unit has one command at a time, and each command ends once."""
    m = c.m
    obey(c, block.checked)
    busy, done, start = block.busy, block.done, block.start
    c.assume(block.checked.payload.footprint.unit < len(Unit), in_reset=True)
    c.assume((done & ~busy) == 0)
    # A unit can be done from the clock on in which it has its command.
    begun = Signal(len(Unit))
    c.assume((done & ~begun & ~start) == 0)
    m.d.sync += begun.eq((begun | start) & ~done)
    for unit in Unit:
        name = unit.name.lower()
        works = c.register(begun[unit], f"{name}_worked")
        command = block.command[unit].as_value()
        same = command == c.register(command, f"{name}_command_before")
        c.claim(f"{name}: starts only when it is free, and is busy then", ~start[unit] | (~begun[unit] & busy[unit]))
        ended = c.register(done[unit], f"{name}_ended")
        c.claim(f"{name}: its command stays until it is done", ~(works & begun[unit] & ~ended) | same | start[unit])
        c.claim(
            f"{name}: reads no row beyond its own, if it follows none",
            ~begun[unit] | (block.limit[unit] == block.n_active[unit]) | Cat(busy[other] for other in Unit).any(),
        )
        c.cover(f"{name}: starts", start[unit])
    # As many commands end as are taken.
    taken = moves(block.checked)
    left = Signal(range(block.in_flight + 2))
    m.d.sync += left.eq(left + taken - block.completed.valid)
    c.claim("no more commands are under way than there are entries", left <= block.in_flight)
    c.claim("a command that is reported was taken", ~block.completed.valid | (left != 0))
    c.claim("empty when all are done", ~block.is_empty | (busy == 0))
    c.cover("all entries are taken", left == block.in_flight)
    # No deadlock: units that end at once never keep a command waiting.
    waits = Signal(range(16))
    idle = (busy == 0) & (left != 0)
    m.d.sync += waits.eq(Mux(idle, waits + (waits != 15), 0))
    c.claim("with no unit at work, a command starts or is reported within a few clocks", waits < 6)


def conflicts(c, block):
    """Word by word: two commands that touch a word, which one of them writes, wait or follow each other."""
    later, earlier = block.later, block.earlier
    word = c.free(17, "word")

    def touches(footprint, base, memory):
        place = footprint.places[base]
        return place.memory[memory] & (place.first <= word) & (word < place.end)

    meets = {}
    for memory in DEPTH:
        for one in BASES:
            for other in BASES:
                if memory in bases_in(one) and memory in bases_in(other):
                    written = later.places[one].is_written | earlier.places[other].is_written
                    both = touches(later, one, memory) & touches(earlier, other, memory) & written
                    meets[one, other] = meets.get((one, other), 0) | both
    # Where reading never becomes writing, as the command table has it, the bits say so.
    for footprint in (later, earlier):
        for base in BASES:
            for memory in bases_in(base):
                kinds = is_written_at(base, memory)
                if len(kinds) == 1:
                    bit = footprint.places[base].is_written
                    c.assume(~footprint.places[base].memory[memory] | (bit if True in kinds else ~bit))
    handed = {("source", "destination")}
    in_place = {("destination", "destination"), ("destination", "source")}
    for pair, meet in meets.items():
        name = f"{pair[0]} and an earlier {pair[1]}"
        c.claim(f"{name}: wait or follow", ~meet | block.waits | block.follows)
        if pair not in handed | in_place:
            c.claim(f"{name}: wait", ~meet | block.waits)
        elif pair in in_place:
            c.claim(f"{name}: wait, if not in place", ~meet | block.waits | later.is_in_place)
    rows = (later.n_rows == earlier.n_rows) & (later.is_gated == earlier.is_gated)
    c.claim("follows only in the same rows", ~block.follows | rows)
    c.claim(
        "follows at the same place", ~block.follows | (later.places.source.first == earlier.places.destination.first)
    )
    c.claim("waits or follows, not both", ~(block.waits & block.follows))
    row = c.free(len(later.rows.first), "row")
    common = (later.rows.first <= row) & (row < later.rows.end) & (earlier.rows.first <= row) & (row < earlier.rows.end)
    for one, other in (("read", "written"), ("written", "read"), ("written", "written")):
        masks = later[f"mask_{one}"], earlier[f"mask_{other}"]
        same = masks[0].is_used & masks[1].is_used & (masks[0].number == masks[1].number)
        c.claim(f"mask {one} and {other}: wait", ~(same & common) | block.waits)
        c.claim(
            f"mass {one} and {other}: wait", ~(later[f"mass_{one}"] & earlier[f"mass_{other}"] & common) | block.waits
        )
        tokens = later[f"tokens_{one}"] & earlier[f"tokens_{other}"]
        c.claim(f"token list {one} and {other}: wait", ~tokens | block.waits)
    c.cover("follows", block.follows)
    c.cover("neither", ~block.follows & ~block.waits)


def controls(c, block):
    """Errors, for any commands and units that take any time."""
    obey(c, block.commands)
    c.assume((block.done & ~block.busy) == 0)
    error, number = block.error, block.error_command
    executes = c.register(block.executes, "executed")
    error_before, number_before = c.register(error, "error_before"), c.register(number, "number_before")
    c.claim(
        "an error stays until a command that is carried out all the same",
        (error_before == 0) | executes | ((error == error_before) & (number == number_before)),
    )
    c.cover("an error", error != 0)
    c.cover("it is cleared", (error_before != 0) & (error == 0))


def answers(c, block):
    """With the checks that a command goes through: none waits for ever, each reason to refuse one occurs."""
    m, busy, error = c.m, block.busy, block.error
    obey(c, block.commands)
    c.assume((block.done & ~busy) == 0)
    # No deadlock: units that are done never keep a command waiting.
    longest = CommandChecker.for_core(block.parameters).latency + 12
    waits = Signal(range(longest + 2))
    m.d.sync += waits.eq(Mux(block.commands.ready | (busy != 0), 0, waits + (waits <= longest)))
    c.claim(f"with no unit at work, the next command is taken within {longest} clocks", waits < longest)
    for code in ErrorCode:
        if code:
            c.cover(f"error {code.name}", error == code)
    c.cover("an error is cleared", (c.register(error, "error_before") != 0) & (error == 0))


SMALLEST = {
    "n_banks": 2,
    "n_lanes": 1,
    "simd_lanes": 1,
    "max_tokens": 2,
    "max_head_dim": 1,
    "max_dim": 2,
    "imem_depth": 6,
    "wmem_depth": 4,
    "vmem_depth": 4,
    "omem_depth": 4,
    "in_flight": 2,
}

PROPERTIES = [
    Property(
        "core",
        "row loop: positions or the list's entries in order, below the limit, the last one marked",
        RowSequencer,
        [{"max_tokens": 2}, {"max_tokens": 3}],
        loops,
    ),
    Property(
        "core",
        "bitmap scanner: every set bit in each pass, all banks at once, flags, no bubble",
        BitmapScanner,
        [
            {"n_banks": 1, "n_slots": 2, "max_turns": 2},
            {"n_banks": 2, "n_slots": 2, "max_turns": 1},
            {"n_banks": 2, "n_slots": 3, "max_turns": 2},
        ],
        walks,
    ),
    Property(
        "core",
        "hazards: commands that touch a word which one of them writes wait, or follow row by row",
        HazardChecker,
        [{"max_tokens": 5, "n_masks": 2}],
        conflicts,
        engine="sat",
    ),
    Property(
        "core",
        "scoreboard, whatever waits for what: one command a unit, each ends once, no deadlock",
        Scoreboard,
        [{"max_tokens": 2, "n_masks": 1, "in_flight": 2}, {"max_tokens": 2, "n_masks": 1, "in_flight": 3}],
        schedules,
        engine="bmc",
        depth=16,
        free=(HazardChecker,),
    ),
    Property(
        "core",
        "controller: errors stick until a command is carried out",
        Controller,
        [SMALLEST],
        controls,
        free=(Scoreboard, CommandChecker),
    ),
    Property(
        "core",
        "controller with its checks: no deadlock, every error code is reached and can be cleared",
        Controller,
        [SMALLEST],
        answers,
        engine="bmc",
        depth=44,
        reach=44,
    ),
]
