"""A cocotb test that offers beats to a stream helper whose output stalls, and counts how many it takes."""

import json
import os
from pathlib import Path

import cocotb
from cocotb.triggers import Timer

from verif.bench.endpoints import word


@cocotb.test()
async def fill(dut):
    job = json.loads(Path(os.environ["BENCH_JOB"]).read_text())

    async def clocks(count):
        taken = 0
        for _ in range(count):
            await Timer(5, "ns")
            taken += word(dut.source__ready) == word(dut.source__valid) == 1
            dut.clk.value = 1
            await Timer(5, "ns")
            dut.clk.value = 0
        return taken

    dut.clk.value = 0
    dut.rst.value = 1
    dut.source__valid.value = 0
    dut.source__payload.value = 0
    dut.sink__ready.value = 0
    await clocks(2)
    dut.rst.value = 0
    dut.source__valid.value = 1
    result = {"taken": await clocks(job["offered"])}
    Path(job["result"]).write_text(json.dumps(result))
