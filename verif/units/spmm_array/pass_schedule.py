"""Watches when an SpMM array works: the engines that issue in each clock, and the passes' results."""

from hw.registry import make_block
from verif.bench.endpoints import Probe, Source, StallPattern, StreamMonitor, set_ports
from verif.bench.harness import run_job
from verif.bench.scoreboard import Scoreboard
from verif.units.spmm_array.banks import ProbabilityBanks

PATIENCE = 400


def watch_passes(block, runs, *, stall="none", refusals="none", seed=1, sim=None):
    """Run ``{"bitmap": transfers, "passes": n}``, one run after the other, on a block's emitted Verilog.

    Bitmaps never idle; results are not taken, and probabilities refused, by patterns of :mod:`verif.bench.endpoints`.
    For each run this returns ``activity``, the word of each clock from that of the first transfer on, ``result``, the
    clocks in which the results were taken, ``last_of_row`` of each, and ``reads``, how many probabilities were read.
    """
    depth = block.probability_depth
    job = {
        "runs": runs,
        "parameters": block.parameters.to_dict(),
        "words": [[0] * depth] * block.n_engines,
        "stall": stall,
        "refusals": refusals,
        "seed": seed,
    }
    return run_job(block, f"{__name__}:run_schedule", job, sim=sim)


def _last_of_row(payload):
    """The highest bit; no values were written, so that the others are X."""
    return int(str(payload.value)[0])


async def run_schedule(simulation):
    """Scenario of :func:`watch_passes`."""
    dut, job, clock, scoreboard = simulation.dut, simulation.job, simulation.clock, Scoreboard()
    p = make_block("spmm_array", None, job["parameters"]).parameters
    bitmap, activity = Source(dut, "bitmap"), Probe(dut, "activity")
    results = StreamMonitor(dut, "result", scoreboard.report, read=_last_of_row)
    banks = ProbabilityBanks(dut, p, simulation.random)
    clock.endpoints += [bitmap, results, activity, banks]
    names = ("write__valid", "write_lane__valid", "first_probability", "passes", "value_base", "value_stride", "start")
    set_ports(dut, dict.fromkeys(names, 0))
    await clock.start()
    await clock.reset()
    found = []
    for run in job["runs"]:
        begin, quiet, activity.values, banks.reads = clock.cycle, 0, [], 0
        set_ports(dut, {"passes": run["passes"]})
        bitmap.start(run["bitmap"])
        results.start(StallPattern(job["stall"], simulation.random))
        banks.load(job["words"], job["refusals"])
        n_passes = len(run["bitmap"]) * run["passes"]
        while len(results.seen_at) < n_passes or quiet < 2:
            moved = await clock.step()
            quiet = 0 if moved[1] or activity.values[-1] else quiet + 1
            if quiet > PATIENCE:
                done = len(results.seen_at)
                raise AssertionError(f"nothing moved for {PATIENCE} clocks after {done} of {n_passes} passes")
        scoreboard.check()
        found.append(
            {
                "activity": activity.values,
                "result": [cycle - begin for cycle in results.seen_at],
                "last_of_row": list(results.beats),
                "reads": banks.reads,
            }
        )
    return found
