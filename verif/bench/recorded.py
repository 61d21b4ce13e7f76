"""Runs given beats on a unit's emitted Verilog: real data, or programs with a purpose, under one stall pattern."""

from dataclasses import asdict

from hw.registry import unit_class
from verif.bench.batch import Batch, Bench
from verif.bench.endpoints import Source, StreamMonitor
from verif.bench.harness import Result, run_job
from verif.bench.scoreboard import Scoreboard
from verif.bench.testbench import Testbench

__all__ = ["replay", "stream_through"]


def replay(block, *batches, stall="none", idle="none", seed=1, sim=None):
    """Run some :class:`verif.bench.batch.Batch` on a block's Verilog, the first from a reset on: a :class:`Result`.

    Its ``times`` are, for each batch and stream, the clocks in which its beats were taken.
    """
    job = {
        "unit": block.base_name,
        "parameters": block.parameters.to_dict(),
        "seed": seed,
        "batches": [asdict(batch) for batch in batches],
        "stall": stall,
        "idle": idle,
    }
    return Result(unit=block.base_name, seed=seed, sim=sim, **run_job(block, f"{__name__}:run_recorded", job, sim=sim))


def stream_through(block, beats, source, sink, *, seed=1, sim=None):
    """Send beats through a block with one input and one output stream at full rate, and return what comes out."""
    job = {"beats": beats, "source": source, "sink": sink, "drain": block.latency, "seed": seed}
    return run_job(block, f"{__name__}:run_stream", job, sim=sim)


async def run_recorded(simulation):
    """Scenario of :func:`replay`."""
    job = simulation.job
    bench = Bench(unit_class(job["unit"])(**job["parameters"]), job["seed"])
    testbench = Testbench(simulation.dut, bench, job["seed"])
    await testbench.start()
    times = []
    for batch in job["batches"]:
        await testbench.run(Batch(**batch), job["stall"], job["idle"])
        times.append(testbench.times)
    return {**testbench.result(), "times": times}


async def run_stream(simulation):
    """Scenario of :func:`stream_through`."""
    job, clock, scoreboard = simulation.job, simulation.clock, Scoreboard()
    source = Source(simulation.dut, job["source"])
    monitor = StreamMonitor(simulation.dut, job["sink"], scoreboard.report)
    clock.endpoints += [source, monitor]
    await clock.start()
    await clock.reset()
    source.start(job["beats"])
    while not source.done:
        await clock.step()
    for _ in range(job["drain"]):
        await clock.step()
    scoreboard.check()
    return monitor.beats
