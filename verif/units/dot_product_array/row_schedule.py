"""The cocotb test that watches when a sampled array works: the units that issue in each clock, the rows reported."""

import json
import os
import random
from pathlib import Path

import cocotb
from cocotb.triggers import Timer

from verif.bench.endpoints import Gate, word
from verif.bench.harness import run_job

PERIOD_NS = 10
PATIENCE = 400


def watch_rows(block, runs, *, stall="none", seed=1, sim=None):
    """Play runs ``{"mask": [...], "query": [...]}`` of transfers, one after the other, on a block's emitted Verilog.

    No input idles, and the outputs stall by a pattern of :mod:`verif.bench.endpoints`, each on its own, or only those for which a
    dictionary names one. For each run this returns ``activity``, the word of each clock from that of the first
    transfers on; ``scores``, for each unit the clocks in which its scores were taken; and ``row_done``, the clocks in
    which the reports of the rows were taken.
    """
    outputs = [*(f"score_{unit}" for unit in range(block.n_units)), "row_done"]
    patterns = [stall.get(name, "none") if isinstance(stall, dict) else stall for name in outputs]
    job = {"runs": runs, "outputs": outputs, "patterns": patterns, "seed": seed}
    return run_job(block, __name__, job, sim=sim)["runs"]


class _Array:
    def __init__(self, dut, outputs):
        self.dut = dut
        self.inputs = {name: getattr(dut, f"{name}__valid") for name in ("mask", "query")}
        self.valid = [getattr(dut, f"{name}__valid") for name in outputs]
        self.ready = [getattr(dut, f"{name}__ready") for name in outputs]

    async def clock(self):
        self.dut.clk.value = 1
        await Timer(PERIOD_NS // 2, "ns")
        self.dut.clk.value = 0

    async def reset(self):
        self.dut.rst.value = 1
        unused = (self.dut.weight__valid, self.dut.weight_lane__valid, self.dut.weight_base, self.dut.weight_stride)
        for port in (*self.inputs.values(), *unused):
            port.value = 0
        self.dut.clk.value = 0
        for _ in range(2):
            await Timer(PERIOD_NS // 2, "ns")
            await self.clock()
        self.dut.rst.value = 0

    async def run(self, transfers, gates):
        """All clocks of one run, until its last row is reported and nothing moves any more."""
        waiting = {name: list(reversed(transfers[name])) for name in self.inputs}
        n_rows, quiet = len(transfers["mask"]), 0
        activity, taken = [], [[] for _ in self.valid]
        while len(taken[-1]) < n_rows or quiet < 2:
            for name, valid in self.inputs.items():
                valid.value = int(bool(waiting[name]))
                if waiting[name]:
                    getattr(self.dut, f"{name}__payload").value = waiting[name][-1]
            is_open = [not gate.closed() for gate in gates]
            for ready, value in zip(self.ready, is_open):
                ready.value = int(value)
            await Timer(PERIOD_NS // 2, "ns")
            for name, beats in waiting.items():
                if beats and word(getattr(self.dut, f"{name}__ready")) == 1:
                    beats.pop()
            clock, moved = len(activity), False
            activity.append(word(self.dut.activity))
            for index, valid in enumerate(self.valid):
                if word(valid) == 1 and is_open[index]:
                    taken[index].append(clock)
                    moved = True
            quiet = 0 if moved or activity[-1] else quiet + 1
            if quiet > PATIENCE:
                raise AssertionError(f"nothing moved for {PATIENCE} clocks after {len(taken[-1])} of {n_rows} rows")
            await self.clock()
        return {"activity": activity, "scores": taken[:-1], "row_done": taken[-1]}


@cocotb.test()
async def play(dut):
    job = json.loads(Path(os.environ["BENCH_JOB"]).read_text())
    rng = random.Random(job["seed"])
    array = _Array(dut, job["outputs"])
    await array.reset()
    results = [await array.run(run, [Gate(pattern, rng) for pattern in job["patterns"]]) for run in job["runs"]]
    Path(job["result"]).write_text(json.dumps({"runs": results}))
