"""Watches when a dot-product array works: the units that issue in each clock, the rows reported."""

from verif.bench.endpoints import Probe, Source, StallPattern, StreamMonitor, set_ports
from verif.bench.harness import run_job
from verif.bench.scoreboard import Scoreboard

PATIENCE = 400
INPUTS = ("mask", "query")


def watch_rows(block, runs, *, stall="none", seed=1, sim=None):
    """Run transfers ``{"mask": [...], "query": [...]}``, one run after the other, on a block's emitted Verilog.

    No input idles, and the outputs stall by a pattern of :mod:`verif.bench.endpoints`, each on its own, or only those
    for which a dictionary names one. For each run this returns ``activity``, the word of each clock from that of the
    first transfers on; ``scores``, for each unit the clocks in which its scores were taken; and ``row_done``, the
    clocks in which the reports of the rows were taken.
    """
    outputs = [*(f"score_{unit}" for unit in range(block.n_units)), "row_done"]
    patterns = [stall.get(name, "none") if isinstance(stall, dict) else stall for name in outputs]
    job = {"runs": runs, "outputs": outputs, "patterns": patterns, "seed": seed}
    return run_job(block, f"{__name__}:run_schedule", job, sim=sim)


async def run_schedule(simulation):
    """Scenario of :func:`watch_rows`."""
    dut, job, clock, scoreboard = simulation.dut, simulation.job, simulation.clock, Scoreboard()
    sources = [Source(dut, name) for name in INPUTS]
    monitors = [StreamMonitor(dut, name, scoreboard.report) for name in job["outputs"]]
    activity = Probe(dut, "activity")
    clock.endpoints += [*sources, *monitors, activity]
    set_ports(dut, {"weight__valid": 0, "weight_lane__valid": 0, "weight_base": 0, "weight_stride": 0})
    await clock.start()
    await clock.reset()
    results = []
    for run in job["runs"]:
        begin, quiet, activity.values = clock.cycle, 0, []
        for source in sources:
            source.start(run[source.name])
        for monitor, pattern in zip(monitors, job["patterns"], strict=False):
            monitor.start(StallPattern(pattern, simulation.random))
        n_rows = len(run["mask"])
        while len(monitors[-1].seen_at) < n_rows or quiet < 2:
            moved = await clock.step()
            quiet = 0 if any(moved[len(sources) :]) or activity.values[-1] else quiet + 1
            if quiet > PATIENCE:
                rows = len(monitors[-1].seen_at)
                raise AssertionError(f"nothing moved for {PATIENCE} clocks after {rows} of {n_rows} rows")
        scoreboard.check()
        taken = [[cycle - begin for cycle in monitor.seen_at] for monitor in monitors]
        results.append({"activity": activity.values, "scores": taken[:-1], "row_done": taken[-1]})
    return results
