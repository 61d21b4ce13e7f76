"""Plays a batch on a unit's emitted Verilog and tells in which clock each beat of each stream was taken."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import cocotb
from cocotb.triggers import Timer

from hw.registry import unit_class
from verif.bench.batch import Batch
from verif.bench.harness import run_job
from verif.bench.recorded import Recorded
from verif.bench.testbench import PERIOD_NS, Testbench

PATIENCE = 1000


def stream_times(block, batch, *, idle="none", seed=1, sim=None):
    """``{stream: [clock of each beat]}`` of a :class:`verif.bench.batch.Batch` from a reset on, no output stalling.

    Wrong beats raise an :class:`AssertionError`.
    """
    job = {
        "unit": block.base_name,
        "parameters": block.parameters.to_dict(),
        "seed": seed,
        "batch": asdict(batch),
        "idle": idle,
    }
    result = run_job(block, __name__, job, sim=sim)
    if result["messages"]:
        raise AssertionError("; ".join(result["messages"]))
    return result["times"]


@cocotb.test()
async def play_timed(dut):
    job = json.loads(Path(os.environ["BENCH_JOB"]).read_text())
    batch = Batch(**job["batch"])
    bench = Recorded(unit_class(job["unit"])(**job["parameters"]), job["seed"], batch)
    player = Testbench(dut, bench, job["seed"])
    for name, value in bench.idle_statics().items():
        getattr(dut, name).value = value
    dut.clk.value = 0
    await Timer(PERIOD_NS, "ns")
    await player.reset()
    player.begin(batch, "none", job["idle"])
    still = 0
    while still < PATIENCE and not all(end.done for end in (*player.sources, *player.sinks)):
        still = 0 if await player.step() else still + 1
    if still:
        player.report(f"nothing moved for {still} clocks")
    times = {source.name: source.taken_at for source in player.sources}
    times |= {sink.name: sink.seen_at for sink in player.sinks}
    Path(job["result"]).write_text(json.dumps({"times": times, "messages": player.messages}))
