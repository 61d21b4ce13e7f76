"""Parts of the core: the loop over rows, the scan of their masks, the controller."""

from amaranth.hdl import Array, Cat, Mux, Signal
from hw.top.controller.chaining import ChainingChecker

from golden.spec.commands import ErrorCode
from hw.top.controller.command_checker import CommandChecker
from hw.top.controller.controller import Controller, Unit
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


def controls(c, block):
    """Starts, errors and the hand-over of rows, for any commands and units that take any time."""
    m = c.m
    obey(c, block.commands)
    busy, done, start = block.busy, block.done, block.start
    c.assume((done & ~busy) == 0)
    for unit in Unit:
        name = unit.name.lower()
        works = c.register(busy[unit], f"{name}_worked")
        command = block.command[unit].as_value()
        same = command == c.register(command, f"{name}_command_before")
        c.claim(f"{name}: starts only when it is free, and is busy then", ~start[unit] | (~works & busy[unit]))
        c.claim(f"{name}: its command stays until it is done", ~(works & busy[unit]) | same)
        ended = c.register(done[unit], f"{name}_ended")
        c.claim(f"{name}: busy until it is done", ~works | (busy[unit] == ~ended))
        c.cover(f"{name}: starts", start[unit])

    error, number = block.error, block.error_command
    executes = c.register(block.executes, "executed")
    error_before, number_before = c.register(error, "error_before"), c.register(number, "number_before")
    c.claim(
        "an error stays until a command that is carried out all the same",
        (error_before == 0) | executes | ((error == error_before) & (number == number_before)),
    )
    c.claim("after an error no unit starts", (error == 0) | (start == 0))
    # The unit that started last, and the one that each unit follows.
    last = Signal(range(len(Unit)))
    for unit in Unit:
        with m.If(start[unit]):
            m.d.sync += last.eq(unit)
    for unit in Unit:
        name = unit.name.lower()
        follows, leader = Signal(name=f"{name}_follows"), Signal(range(len(Unit)), name=f"{name}_leader")
        rows = Array(block.rows_done)[Mux(start[unit], last, leader)]
        now = start[unit] & (last != unit) & busy.bit_select(last, 1)
        with m.If(now):
            m.d.sync += [follows.eq(~done.bit_select(last, 1)), leader.eq(last)]
        with m.Elif(done.bit_select(leader, 1) | start[unit]):
            m.d.sync += follows.eq(0)
        waits = Mux(start[unit], now, follows)
        c.claim(
            f"{name}: reads no row that the command before has not done",
            ~(waits & busy[unit]) | (block.limit[unit] <= rows),
        )
        c.claim(
            f"{name}: reads no row beyond its own", ~busy[unit] | waits | (block.limit[unit] == block.n_active[unit])
        )
        c.cover(f"{name}: follows another unit", follows & busy[unit])


def answers(c, block):
    """With the checks that a command goes through: none waits for ever, each reason to refuse one occurs."""
    m, busy, error = c.m, block.busy, block.error
    obey(c, block.commands)
    c.assume((block.done & ~busy) == 0)
    # No deadlock: units that are done never keep a command waiting.
    longest = CommandChecker.for_core(block.parameters).latency + 3
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
    "imem_depth": 4,
    "wmem_depth": 4,
    "vmem_depth": 4,
    "omem_depth": 4,
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
        "controller: one command a unit, errors stick, no row is read before its writer has done it",
        Controller,
        [SMALLEST],
        controls,
        free=(ChainingChecker, CommandChecker),
    ),
    Property(
        "core",
        "controller with its checks: no deadlock, every error code is reached and can be cleared",
        Controller,
        [SMALLEST],
        answers,
        reach=40,
    ),
]
