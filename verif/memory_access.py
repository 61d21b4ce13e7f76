"""A cocotb test that reads and writes a memory at random and compares every clock with an array in Python."""

import json
import os
import random
from pathlib import Path

import cocotb
from cocotb.triggers import Timer

from verif.bfm import word


@cocotb.test()
async def access(dut):
    """Job: the memory's parameters, seed, clocks. Words never written and undefined reads are not compared."""
    job = json.loads(Path(os.environ["BENCH_JOB"]).read_text())
    rng = random.Random(job["seed"])
    is_single = job["ports"] == "single"
    contents, expected = {}, None
    counts = {"checked": 0, "failed": 0, "collisions": 0, "held": 0}

    def drive(port, value):
        getattr(dut, port).value = value
        return value

    dut.clk.value = 0
    for _ in range(job["clocks"]):
        reads, writes = rng.random() < 0.7, rng.random() < 0.7
        read_address, write_address = rng.randrange(job["depth"]), rng.randrange(job["depth"])
        data = drive("write_data", rng.randrange(1 << job["width"]))
        if is_single:
            reads &= not writes
            write_address = drive("address", read_address)
        else:
            drive("read_address", read_address)
            drive("write_address", write_address)
        drive("read_enable", int(reads))
        drive("write_enable", int(writes))
        await Timer(5, "ns")
        dut.clk.value = 1
        await Timer(5, "ns")
        dut.clk.value = 0
        collides = reads and writes and read_address == write_address
        if reads:
            expected = contents.get(read_address)
            if collides and job["read_during_write"] != "old":
                expected = data if job["read_during_write"] == "new" else None
        if writes:
            contents[write_address] = data
        if expected is not None:
            counts["checked"] += 1
            counts["failed"] += word(dut.read_data) != expected
            counts["collisions"] += collides
            counts["held"] += not reads
    Path(job["result"]).write_text(json.dumps(counts))
