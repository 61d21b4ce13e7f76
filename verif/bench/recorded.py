"""Plays given beats on a unit's emitted Verilog: real data, or programs with a purpose, under one stall pattern."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import cocotb
from cocotb.triggers import Timer

from hw.registry import unit_class
from verif.bench.batch import Batch, Bench
from verif.bench.harness import Result, run_job
from verif.bench.testbench import PERIOD_NS, Testbench


def replay(block, batch, *, stall="none", idle="none", seed=1, sim=None):
    """Play a :class:`verif.bench.batch.Batch` on a block's Verilog from a reset; returns a :class:`verif.bench.harness.Result`."""
    job = {
        "unit": block.base_name,
        "parameters": block.parameters.to_dict(),
        "seed": seed,
        "batch": asdict(batch),
        "stall": stall,
        "idle": idle,
    }
    return Result(unit=block.base_name, seed=seed, sim=sim, **run_job(block, __name__, job, sim=sim))


class Recorded(Bench):
    """A bench with one batch, made elsewhere."""

    def __init__(self, block, seed, batch):
        super().__init__(block, seed)
        self._batch = batch

    def batch(self, count):
        return self._batch


@cocotb.test()
async def play_recorded(dut):
    job = json.loads(Path(os.environ["BENCH_JOB"]).read_text())
    block = unit_class(job["unit"])(**job["parameters"])
    bench = Recorded(block, job["seed"], Batch(**job["batch"]))
    player = Testbench(dut, bench, job["seed"])
    for name, value in bench.idle_statics().items():
        getattr(dut, name).value = value
    dut.clk.value = 0
    await Timer(PERIOD_NS, "ns")
    await player.reset()
    await player.play(0, job["stall"], job["idle"])
    result = {
        "checked": player.checked,
        "failed": player.failed,
        "messages": player.messages,
        "bins": player.bins,
        "stalls": player.stalls,
        "idles": player.idles,
        "cycles": player.cycle,
    }
    Path(job["result"]).write_text(json.dumps(result))
