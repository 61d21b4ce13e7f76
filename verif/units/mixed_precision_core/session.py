"""Runs programs on the mixed-precision core's emitted Verilog at full speed: what it stores, clock by clock."""

from typing import NamedTuple

import numpy as np

from golden.spec.mixed_precision_core import Unit
from verif.bench import simulator
from verif.bench.endpoints import Probe, Source, StreamMonitor, word
from verif.bench.harness import run_job
from verif.bench.scoreboard import Scoreboard

__all__ = ["Session", "run_programs"]


class Session(NamedTuple):
    """What came of programs."""

    stored: list
    """Of each program, the beats of its store stream as integers."""
    ends: list
    """Of each program that stores, the clock of its last beat."""
    busy: np.ndarray
    """bool [clocks, units]"""


def run_programs(block, programs, *, sim=None):
    """Run :class:`golden.differential.program.Program`, one after the other, without stalls: a :class:`Session`."""
    job = {
        "commands": [f"{command.encode():x}" for program in programs for command in program.commands],
        "load": [f"{beat:x}" for program in programs for beat in program.beats],
        "stores": [program.n_stored for program in programs],
    }
    sim = simulator.choose_for(is_large=True, name=sim)
    result = run_job(block, f"{__name__}:run_at_full_speed", job, sim=sim, long=True)
    beats = [int(text, 16) & ((1 << block.parameters.beat_width) - 1) for text in result["store"]]
    ends = np.cumsum(job["stores"])
    stored = [beats[end - n : end] for end, n in zip(ends, job["stores"], strict=True)]
    clocks = [result["seen_at"][end - 1] for end, n in zip(ends, job["stores"], strict=True) if n]
    busy = (np.array(result["busy"], np.int64)[:, None] >> np.arange(len(Unit)) & 1).astype(bool)
    return Session(stored, clocks, busy)


async def run_at_full_speed(simulation):
    """Scenario of :func:`run_programs`."""
    dut, job, clock, scoreboard = simulation.dut, simulation.job, simulation.clock, Scoreboard()
    sources = [Source(dut, name) for name in ("commands", "load")]
    store = StreamMonitor(dut, "store", scoreboard.report)
    busy, error = Probe(dut, "busy"), Probe(dut, "error")
    clock.endpoints += [*sources, store, busy, error]
    await clock.start()
    await clock.reset()
    begin, busy.values = clock.cycle, []
    for source in sources:
        source.start([int(text, 16) for text in job[source.name]])
    wanted, quiet = sum(job["stores"]), 0
    while len(store.beats) < wanted and quiet < 100_000:
        quiet = 0 if any(await clock.step()) else quiet + 1
        simulation.progress(len(store.beats) / wanted)
        if error.values[-1]:
            raise RuntimeError(f"command {word(dut.error_command)} was refused with error {error.values[-1]}")
    if len(store.beats) < wanted:
        raise RuntimeError(f"only {len(store.beats)} of {wanted} beats were stored")
    scoreboard.check()
    return {
        "store": [f"{beat:x}" for beat in store.beats],
        "seen_at": [cycle - begin for cycle in store.seen_at],
        "busy": busy.values,
    }
