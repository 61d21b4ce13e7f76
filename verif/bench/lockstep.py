"""The cocotb test of a lock-step pipeline without streams: rows in, rows out ``latency`` advances later, stalls."""

import json
import os
import random
from pathlib import Path

import cocotb
from cocotb.triggers import Timer

from verif.bench.endpoints import word
from verif.bench.harness import run_job

PERIOD_NS = 10


def run_lockstep(block, inputs, outputs, *, stalls=0.2, seed=1, sim=None):
    """Drive ``{port: list of values}`` on a block's emitted Verilog and return ``{port: list of values}``, row by row.

    A share ``stalls`` of the clocks does not advance; meanwhile the inputs carry other rows. An output that is X in
    any bit comes back as ``None``.
    """
    job = {
        "inputs": {port: [int(value) for value in values] for port, values in inputs.items()},
        "outputs": list(outputs),
        "latency": block.latency,
        "stalls": stalls,
        "seed": seed,
    }
    return run_job(block, __name__, job, sim=sim)


@cocotb.test()
async def play(dut):
    job = json.loads(Path(os.environ["BENCH_JOB"]).read_text())
    rng = random.Random(job["seed"])
    rows = list(zip(*job["inputs"].values(), strict=True))
    ports = [getattr(dut, port) for port in job["inputs"]]
    results = {port: [] for port in job["outputs"]}
    dut.clk.value = 0
    advances = 0
    while advances < len(rows) + job["latency"]:
        moves = rng.random() >= job["stalls"]
        row = rows[advances] if moves and advances < len(rows) else rng.choice(rows)
        dut.advance.value = int(moves)
        for port, value in zip(ports, row):
            port.value = value
        await Timer(PERIOD_NS // 2, "ns")
        if moves:
            if advances >= job["latency"]:
                for port, values in results.items():
                    values.append(word(getattr(dut, port)))
            advances += 1
        dut.clk.value = 1
        await Timer(PERIOD_NS // 2, "ns")
        dut.clk.value = 0
    Path(job["result"]).write_text(json.dumps(results))
