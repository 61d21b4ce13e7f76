"""Cycle model of whole programs: commands that overlap as the scoreboard lets them, loads and stores included.

A command is checked, takes one of in_flight entries, and starts when its unit is free, when no command that it must
wait for is under way, and when the one that it follows has started (docs/commands.md). How long it takes then is in
:class:`golden.timing.cycle_model.CoreTiming`; a transfer takes its beats at the rate of the bus. As all of this depends
on earlier commands only, commands are looked at one after the other.
"""

from dataclasses import dataclass, field

import numpy as np

from golden.core.checks import WrittenState
from golden.core.core import Core
from golden.core.streams import TokenCompare, n_load_beats
from golden.spec.commands import Memory, Opcode, Unit, form_of
from golden.spec.counters import COUNTERS
from golden.spec.sizes import words_for
from golden.timing.cycle_model import CoreTiming
from golden.timing.hazards import FOLLOWS, WAITS, footprint_of, relation

__all__ = ["CommandTimes", "Estimate", "Trace", "dense_trace", "estimate", "trace"]

_START, _AFTER, _FREE = 3, 4, 3
"""Clocks from an entry to the start; from the end of a command to the start of one that waits, and to a free entry."""

_LOAD, _STORE = 4, 8
"""Clocks from the start of a transfer to its first word, and to its first beat."""


@dataclass(frozen=True)
class Trace:
    """What the time of a command depends on beside its fields: set bits a bank [rows, banks], and rows processed."""

    counts: dict  # command's number: [rows, banks]
    rows: dict  # command's number: rows
    tokens: dict  # command's number: the state of masks, mass and token list before it


def _dense_counts(n_rows, n_keys, sizes):
    banks = words_for(n_keys - np.arange(sizes.n_banks), sizes.n_banks)
    return np.broadcast_to(np.maximum(banks, 0), (n_rows, sizes.n_banks))


def dense_trace(commands, sizes):
    """The trace of a program in which all masks are of ones and whose token list, if any, has all tokens."""
    state = WrittenState([sizes.max_tokens] * sizes.n_masks, sizes.max_tokens, list(range(sizes.max_tokens)))
    counts = {
        number: _dense_counts(command.n_rows, command.n_out, sizes)
        for number, command in enumerate(commands)
        if command.opcode in (Opcode.SDDMM, Opcode.SOFTMAX, Opcode.SPMM)
    }
    rows = {number: command.n_rows for number, command in enumerate(commands)}
    return Trace(counts, rows, dict.fromkeys(rows, state))


def trace(commands, load_beats, sizes):
    """The trace of a program, which the golden model runs; every command must be one that the core accepts."""
    core, counts, rows, states, taken = Core(sizes), {}, {}, {}, 0
    for number, command in enumerate(commands):
        state = WrittenState(list(core.state.mask_count), core.state.mass_count, list(core.state.tokens or []))
        states[number] = state
        chosen = np.arange(command.first_row, command.first_row + command.n_rows)
        if command.has("gated"):
            tokens = np.array(state.tokens, np.int64)
            chosen = tokens[command.first_row : command.first_row + command.n_rows]
        rows[number] = len(chosen)
        if command.opcode in (Opcode.SDDMM, Opcode.SOFTMAX, Opcode.SPMM):
            mask = core.memories.mask[core.memories.mask_row_numbers(command.mask, chosen)].data
            bits = np.broadcast_to(mask, (len(chosen), mask.shape[1])).reshape(len(chosen), sizes.n_banks, -1)
            counts[number] = bits[:, :, : sizes.slots_of(command.n_out)].sum(axis=2)
        run = core.execute([command], load_beats[taken:])
        if not run.executed[0]:
            raise ValueError(f"command {number} is refused: {core.refusal}")
        taken += run.load_beats
    return Trace(counts, rows, states)


@dataclass
class CommandTimes:
    """A command's way: when it got an entry, started and was done, and what it waited for before its start."""

    number: int
    name: str
    unit: Unit | None
    taken: int
    start: int
    done: int
    work: int  # clocks of its unit if nothing is waited for
    waits: dict = field(default_factory=dict)  # cause: clocks


@dataclass(frozen=True)
class Estimate:
    """The times of a program's commands."""

    commands: list

    @property
    def clocks(self):
        """From the first command to the last one's end."""
        return max((item.done for item in self.commands), default=0)

    def busy(self, unit):
        """Clocks between start and end of a unit's commands."""
        return sum(item.done - item.start for item in self.commands if item.unit == unit)

    def work(self, unit):
        """Clocks for which a unit has work."""
        return sum(item.work for item in self.commands if item.unit == unit)

    def waits(self, unit):
        """``{cause: clocks}`` of a unit: why it had no command to begin with."""
        total = {}
        for item in self.commands:
            if item.unit == unit:
                for cause, clocks in item.waits.items():
                    total[cause] = total.get(cause, 0) + clocks
        return total


def _transfer_clocks(command, sizes, bytes_a_clock):
    """Clocks of a LOAD, CTR or STORE: its beats, each in the slices in which they are written, at the bus's rate."""
    beat = 2 * sizes.row_word
    if command.opcode == Opcode.CTR:
        n_beats, slices = TokenCompare(sizes).n_beats, max(1, sizes.row_word // sizes.n_banks)
        n_bytes = n_beats * beat
    elif command.opcode == Opcode.LOAD:
        n_beats = n_load_beats(command, sizes)
        width = {
            Memory.WEIGHTS: sizes.n_lanes,
            Memory.VALUES: sizes.simd_lanes,
            Memory.SCORES: sizes.n_banks,
            Memory.PROBABILITIES: sizes.n_banks,
            Memory.TOKENS: 1,
            Memory.MASS: 1,
        }.get(Memory(command.function), sizes.row_word)
        slices = sizes.row_word // width
        n_bytes = 2 * command.n_rows * command.n_in if command.function == Memory.ROWS else n_beats * beat
    else:
        words = {
            Memory.ROWS: command.n_rows * words_for(command.n_in, sizes.row_word),
            Memory.MASK: command.n_rows * sizes.mask_pieces,
            Memory.COUNTERS: len(COUNTERS),
        }
        n_beats, slices = words.get(Memory(command.function), command.n_rows), 1
        n_bytes = 2 * command.n_rows * command.n_in if command.function == Memory.ROWS else n_beats * beat
    clocks = n_beats * slices
    return clocks if bytes_a_clock is None else max(clocks, -(-n_bytes // bytes_a_clock))


def _execute(timing, command, number, known, begin, available, bytes_a_clock):
    """``(rows_done or None, done, work)`` of a command that starts at ``begin``."""
    sizes, rows = timing.sizes, known.rows[number]
    if form_of(command).unit in (Unit.LOAD, Unit.STORE):
        clocks = _transfer_clocks(command, sizes, bytes_a_clock)
        is_rows = command.function == Memory.ROWS and command.opcode != Opcode.CTR
        if form_of(command).unit == Unit.STORE:
            last = begin if available is None or not is_rows else int(available[-1])
            return None, max(begin + clocks, last) + _STORE, clocks
        done = begin + _LOAD + np.arange(1, rows + 1) * (clocks / max(rows, 1)) if is_rows else None
        return (None if done is None else done.astype(np.int64)), begin + _LOAD + clocks, clocks
    if rows == 0:
        return np.zeros(0, np.int64), begin + 1, 0
    times = timing.of(command, known.counts.get(number), begin, available, rows)
    return times.rows_done, times.end, times.work


def estimate(commands, sizes, known, bytes_a_clock=None):
    """The :class:`Estimate` of a program whose :class:`Trace` is ``known``.

    ``bytes_a_clock`` is the rate of the bus, for loads and for stores; by default the streams are never waited for.
    """
    timing = CoreTiming(sizes)
    found, footprints, rows_done = [], [], []
    free = dict.fromkeys(Unit, 0)  # since when a unit is free
    next_take = 0
    for number, command in enumerate(commands):
        form = form_of(command)
        footprint = footprint_of(command, sizes, known.tokens[number])
        is_barrier = form.unit is None or (form.unit == Unit.STORE and command.function == Memory.COUNTERS)
        in_flight = [item for item in found if item.done + _FREE > next_take]
        take, cause = next_take, None
        if is_barrier and in_flight:
            take, cause = max(item.done for item in in_flight) + 1, "barrier"
        elif len(in_flight) >= sizes.in_flight:
            take = max(take, sorted(item.done for item in in_flight)[-sizes.in_flight] + _FREE)
            cause = "entries" if take > next_take else None
        if form.unit is None:
            found.append(CommandTimes(number, form.name, None, take, take, take, 0))
            footprints.append(footprint)
            rows_done.append(None)
            next_take = take + timing.latencies.command
            continue
        start, leader = take + _START, None
        reasons = {start: cause or "issue"}
        for other in in_flight:
            if other.unit is None or other.done <= take:
                continue
            kind = relation(footprint, footprints[other.number])
            if other.unit == form.unit or kind == WAITS:
                reason = f"{form.unit.name.lower()} busy" if other.unit == form.unit else other.unit.name.lower()
                reasons.setdefault(other.done + _AFTER, reason)
                start = max(start, other.done + _AFTER)
            elif kind == FOLLOWS:
                leader = other
                start = max(start, other.start + 1)
        available = None
        if leader is not None and leader.done > start:
            available = rows_done[leader.number]
        done_rows, done, work = _execute(timing, command, number, known, start, available, bytes_a_clock)
        if leader is not None:
            done = max(done, leader.done + 1)
        waited = max(0, start - free[form.unit])
        reason = reasons.get(start, "issue")
        item = CommandTimes(number, form.name, form.unit, take, start, done, work, {reason: waited} if waited else {})
        found.append(item)
        footprints.append(footprint)
        rows_done.append(done_rows)
        free[form.unit] = done
        next_take = take + timing.latencies.command
        if is_barrier:
            next_take = done + timing.latencies.command
    return Estimate(found)
