"""When each command of a program runs on the core: a model of the scoreboard over the times of single commands.

Commands are checked one after the other, get one of in_flight entries, and start when they wait for no other
(:mod:`golden.timing.footprint`) and their unit is free; what follows another command takes its rows as they are done.
As a command waits for earlier ones only, one pass over the program gives all times. Times of commands are those of
:mod:`golden.timing.cycle_model` and :mod:`golden.timing.transfers`; all follow from the parameters of the core, the
program, its masks and token lists. Not modelled: ports of IMEM, masks and probabilities that two units want in one
clock.
"""

import heapq
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from golden.spec.commands import Memory, Opcode, Projection, Unit, form_of
from golden.timing.cycle_model import CoreTiming
from golden.timing.footprint import Footprint, follows, footprint, waits
from golden.timing.trace import trace
from golden.timing.transfers import LoadStream, WeightLoads, load_beats, store_rows
from golden.timing.usage import Usage

__all__ = ["Estimate", "Interval", "estimate", "load_interval"]

_TO_START = 3  # clocks from where nothing keeps a command to its start; its unit is busy one clock before that
_TO_ENTRY = 2  # from a command's end to where its entry can be taken again


@dataclass(frozen=True)
class Interval:
    """A command at work: ``busy`` from ``begin`` to ``end``, ``work`` of these clocks its bound."""

    number: int
    command: object
    unit: Unit
    taken: int
    begin: int
    end: int
    work: int
    cause: str  # what kept it from starting earlier

    @property
    def name(self):
        return form_of(self.command).name


@dataclass
class Estimate:
    """What :func:`estimate` found; ``n_clocks`` from the first command to the end of the last one."""

    sizes: object
    intervals: list = field(default_factory=list)
    traced: list = field(default_factory=list)

    @property
    def n_clocks(self):
        return max((item.end for item in self.intervals), default=0)

    @cached_property
    def busy(self):
        """Clocks that each unit is busy."""
        return {unit: sum(item.end - item.begin for item in self.of(unit)) for unit in Unit}

    @cached_property
    def work(self):
        """Clocks of these that its commands need if nothing keeps them."""
        return {unit: sum(item.work for item in self.of(unit)) for unit in Unit}

    def of(self, unit):
        """The commands of a unit in order."""
        return [item for item in self.intervals if item.unit == unit]

    def usage(self, first=0):
        """Products, and words read and written, of the commands from number ``first`` on."""
        usage = Usage()
        for item in self.traced[first:]:
            usage.add(item, self.sizes)
        return usage

    def idle(self, unit, first=0, end=None):
        """``{cause: clocks}`` in which a unit has no command, between two clocks."""
        found, clock = {}, first
        end = self.n_clocks if end is None else end
        for item in self.of(unit):
            if item.end <= first or item.begin >= end:
                continue
            gap = item.begin - clock
            if gap > 0:
                found[item.cause] = found.get(item.cause, 0) + gap
            clock = item.end
        if clock < end:
            found["no more commands"] = end - clock
        return found


def load_interval(sizes, bytes_a_clock):
    """Clocks from beat to beat of the load stream on a bus of that width."""
    return max(1, 2 * sizes.row_word / bytes_a_clock)


def estimate(sizes, commands, beats, interval=1):
    """The :class:`Estimate` of a program that the core accepts.

    ``beats`` are those of each LOAD and CTR in order; ``interval``: a beat to load comes every so many clocks.
    """
    traced = trace(sizes, commands, beats)
    # Loads of weights keep PROJECT from writing, also those behind it in the program: a second pass knows them.
    first = _Model(sizes, interval, None)
    found = first.run(traced)
    if any(command.opcode == Opcode.PROJECT for command in commands):
        found = _Model(sizes, interval, first.weight_loads).run(traced)
    return found


@dataclass
class _Entry:
    """What later commands see of an earlier one."""

    print: Footprint
    number: int
    unit: Unit
    chosen: int
    done: int  # clock of its ``done``
    rows_done: np.ndarray | None
    begins_over: set = field(default_factory=set)  # numbers of those that it follows


class _Model:
    def __init__(self, sizes, interval, known_loads):
        self.known_loads, self.weight_loads = known_loads, WeightLoads()
        self.sizes, self.timing = sizes, CoreTiming(sizes)
        self.latencies = self.timing.latencies
        self.stream = LoadStream(sizes, interval)
        self.found = Estimate(sizes)
        self.entries = []  # those that may not be done, in order
        self.ends = []  # the latest ends, as many as there are entries less one, the first to end first
        self.last_of_unit = {}
        self.taken = -2
        self.barrier = 0  # no command is taken before it
        self.window = None  # the unit that kept a command from an entry, and until which command it shows
        self.list_done = 0  # the last command that writes the token list is done

    def run(self, traced):
        self.found.traced = traced
        for number, item in enumerate(traced):
            self._command(number, item)
        return self.found

    def _command(self, number, item):
        command, sizes = item.command, self.sizes
        is_clear = command.opcode == Opcode.CLEAR
        is_counters = command.opcode == Opcode.STORE and command.function == Memory.COUNTERS
        checked = max(self.taken, self.barrier) + self.latencies.command
        uses_list = command.has("gated") or (command.opcode == Opcode.STORE and command.function == Memory.TOKENS)
        if uses_list:
            checked = max(checked, self.list_done + self.latencies.command)
        last = max((entry.done for entry in self.entries), default=-1)
        if is_clear:
            self.taken = max(checked - 2, last + 1)
            return
        taken, unit = checked, form_of(command).unit
        if is_counters:
            taken = max(taken, last + 2)
        if len(self.ends) == sizes.in_flight and self.ends[0][0] + _TO_ENTRY > taken:
            taken = self.ends[0][0] + _TO_ENTRY
            self.window = f"window full, behind {self.ends[0][1]}", number + sizes.in_flight
        self.taken = taken
        chosen, cause, leader, entry = self._place(number, item, taken, unit)
        begin = chosen + 2
        available = None if leader is None else leader.rows_done
        rows_done, done, work = self._time(item, begin, available)
        entry.done, entry.rows_done = done, rows_done
        self.found.intervals.append(Interval(number, command, unit, taken, begin - 1, done + 1, work, cause))
        self.entries = [each for each in self.entries if each.done >= taken] + [entry]
        heapq.heappush(self.ends, (done, unit.name.lower()))
        if len(self.ends) > sizes.in_flight:
            heapq.heappop(self.ends)
        self.last_of_unit[unit] = entry
        if is_counters:
            self.barrier = done + 1
        if any(kind == "tokens" for kind, _ in entry.print.written):
            self.list_done = done + 1

    def _place(self, number, item, taken, unit):
        """Clock in which a command is chosen to start, what kept it, the entry that it follows, its own entry."""
        entry = _Entry(footprint(item.command, self.sizes, item.largest_token), number, unit, 0, 0, None)
        chosen, cause = taken + 1, "issue of commands"
        if self.window is not None and number < self.window[1]:
            cause = self.window[0]
        leaders = []
        for index, earlier in enumerate(self.entries):
            if earlier.done < taken - 1:
                continue
            if earlier.unit == unit:
                if earlier.done + 1 >= chosen:
                    chosen, cause = earlier.done + 1, "the unit itself"
            elif waits(entry.print, earlier.print, item.is_ascending):
                if earlier.done + 1 > chosen:
                    chosen, cause = earlier.done + 1, f"operands, {earlier.unit.name.lower()}"
            elif follows(entry.print, earlier.print, item.is_ascending):
                leaders.append((index, earlier))
        # Of commands that follow each other in place, the last one hands the rows over.
        over = set().union(*(earlier.begins_over for _, earlier in leaders)) if leaders else set()
        leaders = [earlier for _, earlier in leaders if earlier.number not in over]
        entry.begins_over = {earlier.number for earlier in leaders}
        for earlier in leaders:
            if earlier.chosen + 1 > chosen:
                chosen, cause = earlier.chosen + 1, f"rows, {earlier.unit.name.lower()}"
        entry.chosen = chosen
        leader = leaders[-1] if leaders and leaders[-1].done >= chosen else None
        return chosen, cause, leader, entry

    def _time(self, item, begin, available):
        """``(rows_done, clock of done, work)`` of a command that starts in clock ``begin``."""
        command, sizes, n = item.command, self.sizes, item.n_active
        if command.opcode in (Opcode.LOAD, Opcode.CTR):
            rows_done = self.stream.rows_done(command, begin)
            if command.opcode == Opcode.LOAD and command.function == Memory.WEIGHTS:
                self.weight_loads.add(begin, int(rows_done[-1]), command.n_rows * sizes.n_banks)
            return rows_done, int(rows_done[-1]), int(load_beats(command, sizes) * self.stream.interval)
        if command.opcode == Opcode.STORE:
            if command.function == Memory.COUNTERS:
                return None, begin + 22 + self.latencies.store, 22
            if command.function == Memory.TOKENS:
                return None, begin + item.largest_token + 1 + self.latencies.store, item.largest_token
            end, n_beats = store_rows(command, sizes, begin, available, self.latencies.store)
            return None, end, n_beats
        if n == 0:
            return np.zeros(0, np.int64), begin + 1, 0
        writes = None if self.known_loads is None or command.function == Projection.VALUES else self.known_loads.after
        times = self.timing.of(command, item.counts, begin, available, n, writes)
        return times.rows_done, times.end - self.latencies.done, times.work
