"""Runs programs on the core's emitted Verilog at full speed: what it stores, and which units are busy in each clock."""

from typing import NamedTuple

import numpy as np

from golden.spec.commands import Unit
from verif.bench import simulator
from verif.bench.endpoints import Probe, Source, StreamMonitor, word
from verif.bench.harness import run_job
from verif.bench.scoreboard import Scoreboard

__all__ = ["Session", "run_program"]


MOST_IDLE = 10_000
"""Clocks in which no beat moves and no unit works, after which a run is given up."""


class Session(NamedTuple):
    """What came of a program."""

    values: np.ndarray  # uint16 [beats, row_word] of the store stream
    last: np.ndarray  # bool [beats]
    busy: np.ndarray  # bool [clocks, units], up to the last stored beat
    ends: np.ndarray  # of each STORE, the clock of its last beat


class PacedSource(Source):
    """A source with a beat at most every ``interval`` clocks: a bus that is narrower than the stream."""

    def __init__(self, dut, name, interval):
        self._interval, self._next = interval, 0
        super().__init__(dut, name)

    def drive(self, cycle):
        if not self._offered and cycle < self._next:
            self._idle()
            return
        was_offered = self._offered
        super().drive(cycle)
        if self._offered and not was_offered:
            self._next = cycle + self._interval


def run_program(block, program, *, load_interval=1, sim=None, is_long=True):
    """Run a :class:`golden.program.assembler.Program` that ends with a STORE: a :class:`Session`.

    Stores and commands do not stall; a beat to load comes every ``load_interval`` clocks. ``is_long``: see
    :func:`verif.bench.simulator.build`.
    """
    job = {
        "load_interval": load_interval,
        "commands": [f"{command.encode():x}" for command in program.commands],
        "load": [f"{beat:x}" for beat in program.beat_integers()],
        "stores": len(program.stored),
    }
    sim = simulator.choose_for(is_large=True, name=sim)
    result = run_job(block, f"{__name__}:run_at_full_speed", job, sim=sim, long=is_long)
    word_bytes = 2 * block.parameters.row_word
    beats = b"".join(int(beat, 16).to_bytes(word_bytes, "little") for beat in result["store"])
    busy = np.array(result["busy"], np.int64)
    return Session(
        np.frombuffer(beats, "<u2").reshape(-1, block.parameters.row_word),
        np.array(result["last"], bool),
        (busy[:, None] >> np.arange(len(Unit)) & 1).astype(bool),
        np.array(result["ends"]),
    )


def _defined(handle):
    """A word of which bits that were never written, X, count as 0."""
    return int("".join(bit if bit in "01" else "0" for bit in str(handle.value)), 2)


async def run_at_full_speed(simulation):
    """Scenario of :func:`run_program`."""
    dut, job, clock, scoreboard = simulation.dut, simulation.job, simulation.clock, Scoreboard()
    sources = [Source(dut, "commands"), PacedSource(dut, "load", job["load_interval"])]
    store = StreamMonitor(dut, "store", scoreboard.report, read=_defined)
    busy, error = Probe(dut, "busy"), Probe(dut, "error")
    clock.endpoints += [*sources, store, busy, error]
    await clock.start()
    await clock.reset()
    begin, busy.values = clock.cycle, []
    for source in sources:
        source.start([int(text, 16) for text in job[source.name]])
    top = len(dut.store__payload) - 1
    ends, idle = [], 0
    while len(ends) < job["stores"]:
        moved = await clock.step()
        if moved[len(sources)] and store.beats[-1] >> top:
            ends.append(store.seen_at[-1] - begin)
            simulation.progress(len(ends) / job["stores"])
        idle = 0 if any(moved[: len(sources) + 1]) or busy.values[-1] else idle + 1
        if idle > MOST_IDLE:
            raise RuntimeError(f"nothing happens after {len(ends)} of {job['stores']} stores")
        if error.values[-1]:
            raise RuntimeError(f"command {word(dut.error_command)} was refused with error {error.values[-1]}")
    scoreboard.check()
    return {
        "store": [f"{beat & ((1 << top) - 1):x}" for beat in store.beats],
        "last": [beat >> top for beat in store.beats],
        "busy": busy.values,
        "ends": ends,
    }
