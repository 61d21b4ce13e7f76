"""Scoreboard: commands in flight, what each waits for, and their start on the units."""

from dataclasses import dataclass

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.commands import Unit
from hw.lib.memory import MemoryBank
from hw.top.command_layout import COMMAND_LAYOUT
from hw.top.controller.command_decoder import any_term
from hw.top.controller.footprint import footprint_layout
from hw.top.controller.hazards import HazardChecker, HazardParameters
from hw.top.parameters import CorePart, InFlight

__all__ = ["Scoreboard", "ScoreboardParameters", "pending_command"]


@dataclass(frozen=True, kw_only=True)
class ScoreboardParameters(InFlight, HazardParameters):
    pass


def pending_command(p):
    """A checked command on its way to the scoreboard."""
    return data.StructLayout(
        {"command": COMMAND_LAYOUT, "number": 32, "n_active": range(p.max_tokens + 1), "footprint": footprint_layout(p)}
    )


class Scoreboard(CorePart):
    """Starts each command when nothing that it touches belongs to an earlier one that is not done.

    A command gets one of in_flight entries. When it comes it is compared with all entries that are not done
    (:class:`~hw.top.controller.hazards.HazardChecker`): for some it waits, as for those of its own unit, and one of
    them it may follow row by row. It starts when it waits for none and the one that it follows, if any, has started; so
    commands of one unit start in order, and those of different units in any order. An entry waits for older ones only:
    the oldest waits for none.

    A unit has one command at a time, which stays on its output from ``start`` until ``done``. It may read row k when
    ``limit`` > k: the rows that the command it follows has done, or all of them.

    ``checked`` is compared in the clock after it is offered, and taken in the next one if an entry is free. A
    command starts three clocks after it is taken if it waits for nothing.
    """

    Parameters = ScoreboardParameters
    latency = 3
    members_doc = {
        "checked": "commands in order, legal ones",
        "is_ascending": "the token list is strictly ascending",
        "start": "start of a unit's command, one bit a unit",
        "command": "each unit's command",
        "n_active": "rows that it processes",
        "limit": "rows whose inputs are valid",
        "rows_done": "rows that each unit has completed of its command",
        "done": "a unit's command is complete, one bit a unit",
        "busy": "units with a command, one bit a unit",
        "is_empty": "all commands that were taken are done",
        "writes_tokens": "a command that writes the token list is not done",
        "completed": "a command is done, each in one clock of its own, not necessarily in order",
    }

    @staticmethod
    def members(p):
        n = len(Unit)
        rows = range(p.max_tokens + 1)
        return {
            "checked": In(stream.Signature(pending_command(p))),
            "is_ascending": In(1),
            "start": Out(n),
            "command": Out(data.ArrayLayout(COMMAND_LAYOUT, n)),
            "n_active": Out(data.ArrayLayout(rows, n)),
            "limit": Out(data.ArrayLayout(rows, n)),
            "rows_done": In(data.ArrayLayout(rows, n)),
            "done": In(n),
            "busy": Out(n),
            "is_empty": Out(1),
            "writes_tokens": Out(1),
            "completed": Out(data.StructLayout({"valid": 1, "number": 32})),
        }

    def circuit(self):
        m = Module()
        self._make_entries()
        self._finish(m)
        self._take(m)
        chosen, begins = self._choose(m)
        self._start(m, chosen, begins)
        return m

    def _make_entries(self):
        p, entries = self.parameters, range(self.in_flight)
        self._is_live = [Signal(name=f"is_live_{e}") for e in entries]  # taken, not done
        self._has_started = [Signal(name=f"has_started_{e}") for e in entries]
        self._is_reported = [Signal(name=f"is_reported_{e}", init=1) for e in entries]
        self._footprints = [Signal(footprint_layout(p), name=f"footprint_{e}", reset_less=True) for e in entries]
        self._numbers = [Signal(32, name=f"number_{e}", reset_less=True) for e in entries]
        self._n_active = [Signal(range(p.max_tokens + 1), name=f"n_active_{e}", reset_less=True) for e in entries]
        self._waits = [Signal(self.in_flight, name=f"waits_{e}") for e in entries]
        self._follows = [Signal(self.in_flight, name=f"follows_{e}") for e in entries]
        self._current = [Signal(range(self.in_flight), name=f"current_{unit.name.lower()}") for unit in Unit]
        self._busy = [Signal(name=f"{unit.name.lower()}_is_busy") for unit in Unit]
        self._ends = Signal(self.in_flight, name="ends")  # entries whose command is done in this clock

    def _finish(self, m):
        """Entries that end; each is reported in a clock of its own."""
        for entry in range(self.in_flight):
            m.d.comb += self._ends[entry].eq(
                Cat(
                    self.done[unit] & self._busy[unit] & (self._current[unit] == entry) & self._has_started[entry]
                    for unit in Unit
                ).any()
            )
            with m.If(self._ends[entry]):
                m.d.sync += self._is_live[entry].eq(0)
            for waiting in (self._waits, self._follows):
                with m.If(self._ends[entry]):
                    m.d.sync += [each[entry].eq(0) for each in waiting]
        for unit in Unit:
            with m.If(self.done[unit]):
                m.d.sync += self._busy[unit].eq(0)
        reported = Signal(self.in_flight, name="reported")
        for entry in reversed(range(self.in_flight)):
            with m.If(~self._is_live[entry] & ~self._is_reported[entry]):
                m.d.comb += [
                    reported.eq(1 << entry),
                    self.completed.valid.eq(1),
                    self.completed.number.eq(self._numbers[entry]),
                ]
        for entry in range(self.in_flight):
            with m.If(reported[entry]):
                m.d.sync += self._is_reported[entry].eq(1)
        m.d.comb += [
            self.busy.eq(Cat(*self._busy)),
            self.is_empty.eq(~Cat(*self._is_live).any()),
            self.writes_tokens.eq(
                Cat(
                    live & each.tokens_written for live, each in zip(self._is_live, self._footprints, strict=True)
                ).any()
            ),
        ]

    def _take(self, m):
        """Compare the next command with all entries, then give it a free one."""
        checked = self.checked.payload
        is_compared = Signal()
        waits, follows = Signal(self.in_flight, name="new_waits"), Signal(self.in_flight, name="new_follows")
        free, is_free = Signal(range(self.in_flight), name="free_entry"), Signal()
        for entry in reversed(range(self.in_flight)):
            with m.If(~self._is_live[entry] & self._is_reported[entry]):
                m.d.comb += [free.eq(entry), is_free.eq(1)]
        must_wait, may_follow = [], []
        for entry in range(self.in_flight):
            m.submodules[f"hazard_{entry}"] = hazard = HazardChecker.for_core(self.parameters)
            m.d.comb += [
                hazard.later.eq(checked.footprint),
                hazard.earlier.eq(self._footprints[entry]),
                hazard.is_ascending.eq(self.is_ascending),
            ]
            concerns = self._is_live[entry] & ~self._ends[entry]
            same_unit = checked.footprint.unit == self._footprints[entry].unit
            must_wait.append((hazard.waits | same_unit) & concerns)
            may_follow.append(hazard.follows & ~same_unit & concerns)
        # Of commands that follow each other in place, the last one hands the rows over.
        followed = Signal(self.in_flight)
        m.d.comb += [
            followed.eq(
                any_term(
                    each & may.replicate(self.in_flight) for each, may in zip(self._follows, may_follow, strict=True)
                )
            ),
            self.checked.ready.eq(is_compared & is_free),
        ]
        with m.If(~is_compared):
            m.d.sync += [
                is_compared.eq(self.checked.valid),
                waits.eq(Cat(*must_wait)),
                follows.eq(Cat(*may_follow) & ~followed),
            ]
        with m.Else():
            m.d.sync += [waits.eq(waits & ~self._ends), follows.eq(follows & ~self._ends)]
        with m.If(self.checked.valid & self.checked.ready):
            m.d.sync += is_compared.eq(0)
            for entry in range(self.in_flight):
                with m.If(free == entry):
                    m.d.sync += [
                        self._is_live[entry].eq(1),
                        self._has_started[entry].eq(0),
                        self._is_reported[entry].eq(0),
                        self._footprints[entry].eq(checked.footprint),
                        self._numbers[entry].eq(checked.number),
                        self._n_active[entry].eq(checked.n_active),
                        self._waits[entry].eq(waits & ~self._ends),
                        self._follows[entry].eq(follows & ~self._ends),
                    ]
        m.submodules.commands = self._commands = commands = MemoryBank(depth=self.in_flight, width=COMMAND_LAYOUT.size)
        m.d.comb += [
            commands.write_enable.eq(self.checked.valid & self.checked.ready),
            commands.write_address.eq(free),
            commands.write_data.eq(checked.command),
        ]

    def _choose(self, m):
        """An entry that can start, and whether there is one."""
        chosen, begins = Signal(range(self.in_flight), name="chosen"), Signal(name="begins")
        started = Cat(*self._has_started)
        for entry in reversed(range(self.in_flight)):
            can_start = Signal(name=f"can_start_{entry}")
            m.d.comb += can_start.eq(
                self._is_live[entry]
                & ~self._has_started[entry]
                & (self._waits[entry] == 0)
                & ((self._follows[entry] & ~started) == 0)
            )
            with m.If(can_start):
                m.d.comb += [chosen.eq(entry), begins.eq(1)]
        for entry in range(self.in_flight):
            with m.If(begins & (chosen == entry)):
                m.d.sync += self._has_started[entry].eq(1)
        m.d.comb += [self._commands.read_enable.eq(begins), self._commands.read_address.eq(chosen)]
        return chosen, begins

    def _start(self, m, chosen, begins):
        """The command is read in the clock after it was chosen, and handed to its unit in the next one."""
        entry, is_read = Signal(range(self.in_flight), name="entry_read"), Signal(name="command_is_read")
        m.d.sync += [entry.eq(chosen), is_read.eq(begins)]
        footprint = Array(self._footprints)
        unit_of_chosen, unit = Signal(range(len(Unit))), Signal(range(len(Unit)))
        leader = Signal(self.in_flight, name="leader")
        leading_unit = Signal(range(len(Unit)), name="leading_unit")
        m.d.comb += [
            unit_of_chosen.eq(footprint[chosen].unit),
            unit.eq(footprint[entry].unit),
            leader.eq(Array(self._follows)[entry] & ~self._ends),
        ]
        for number in range(self.in_flight):
            with m.If(leader[number]):
                m.d.comb += leading_unit.eq(self._footprints[number].unit)
        rows_done, done = Array(self.rows_done[index] for index in Unit), Array(self.done[index] for index in Unit)
        for index in Unit:
            name = index.name.lower()
            with m.If(begins & (unit_of_chosen == index)):
                m.d.sync += [self._busy[index].eq(1), self._current[index].eq(chosen)]
            here, start = Signal(name=f"command_for_{name}"), Signal(name=f"start_{name}")
            # What identifies a command has a reset: units decode it at all times.
            own = {
                part: Signal(field.shape, name=f"{part}_of_{name}", reset_less=part not in ("opcode", "function"))
                for part, field in COMMAND_LAYOUT
            }
            fields_read = data.View(COMMAND_LAYOUT, self._commands.read_data)
            active = Signal(range(self.max_tokens + 1), name=f"rows_of_{name}", reset_less=True)
            follows = Signal(name=f"{name}_follows")
            leads = Signal(range(len(Unit)), name=f"leader_of_{name}", reset_less=True)
            m.d.comb += [
                here.eq(is_read & (unit == index)),
                *(self.command[index][part].eq(each) for part, each in own.items()),
                self.n_active[index].eq(active),
                self.start[index].eq(start),
                self.limit[index].eq(Mux(follows, rows_done[leads], active)),
            ]
            m.d.sync += start.eq(here)
            with m.If(done[leads]):
                m.d.sync += follows.eq(0)
            with m.If(here):
                m.d.sync += [
                    *(each.eq(fields_read[part]) for part, each in own.items()),
                    active.eq(Array(self._n_active)[entry]),
                    follows.eq(leader.any()),
                    leads.eq(leading_unit),
                ]
