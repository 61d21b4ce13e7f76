"""The cocotb test that runs words through a lock-step function unit, one a clock, the enable low at times."""

import json
import os
import random
from pathlib import Path

import cocotb
from cocotb.triggers import Timer

PERIOD_NS = 10
STALLED = 0.03  # share of the clocks with the enable low


async def edge(dut):
    """One clock; what was written to the inputs before it is there half a period before the edge."""
    dut.clk.value = 0
    await Timer(PERIOD_NS // 2, "ns")
    dut.clk.value = 1
    await Timer(PERIOD_NS // 2, "ns")


@cocotb.test()
async def sweep(dut):
    job = json.loads(Path(os.environ["BENCH_JOB"]).read_text())
    rng = random.Random(job["seed"])
    latency, words = job["latency"], range(*job["words"])
    results, moved, stalls = [], 0, 0
    for index, word in enumerate([*words, *range(latency - 1)]):
        while rng.random() < STALLED:
            dut.advance.value = 0
            dut.x.value = rng.randrange(1 << len(dut.x))
            await edge(dut)
            stalls += 1
            moved += index >= latency and int(dut.y.value) != results[-1]
        dut.advance.value = 1
        dut.x.value = word
        await edge(dut)
        if index >= latency - 1:
            results.append(int(dut.y.value))
    Path(job["result"]).write_text(json.dumps({"y": results, "moved": int(moved), "stalls": stalls}))
