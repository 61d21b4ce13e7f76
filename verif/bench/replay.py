"""A cocotb test that sends given beats back to back through a unit and records what comes out: for very many beats."""

import json
import os
from pathlib import Path

import cocotb
from cocotb.triggers import Timer

from verif.bench.endpoints import word


@cocotb.test()
async def replay(dut):
    """Job: ``source`` and ``sink`` (names of streams), ``beats``, ``drain`` (clocks to wait for the last one)."""
    job = json.loads(Path(os.environ["BENCH_JOB"]).read_text())
    source, sink = job["source"], job["sink"]
    offered, given = getattr(dut, f"{source}__payload"), getattr(dut, f"{sink}__payload")
    source_valid, sink_valid = getattr(dut, f"{source}__valid"), getattr(dut, f"{sink}__valid")
    clk, rst = getattr(dut, "clk", None), getattr(dut, "rst", None)

    async def clock():
        await Timer(5, "ns")
        beat = word(given) if word(sink_valid) == 1 else None
        if clk is not None:
            clk.value = 1
        await Timer(5, "ns")
        if clk is not None:
            clk.value = 0
        return beat

    getattr(dut, f"{sink}__ready").value = 1
    source_valid.value = 0
    if clk is not None:
        clk.value = 0
        rst.value = 1
        await clock()
        await clock()
        rst.value = 0
    source_valid.value = 1
    received = []
    for beat in job["beats"]:
        offered.value = beat
        received.append(await clock())
    source_valid.value = 0
    received += [await clock() for _ in range(job["drain"])]
    Path(job["result"]).write_text(json.dumps({"beats": [beat for beat in received if beat is not None]}))
