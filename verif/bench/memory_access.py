"""A cocotb test that reads and writes a memory at random and compares every clock with an array in Python."""

import json
import os
import random
from pathlib import Path

import cocotb
from cocotb.triggers import Timer

from verif.bench.endpoints import word


@cocotb.test()
async def access(dut):
    """Job: the memory's parameters, seed, clocks. Words never written and undefined reads are not compared."""
    job = json.loads(Path(os.environ["BENCH_JOB"]).read_text())
    rng = random.Random(job["seed"])
    is_single = job["ports"] == "single"
    part_width = job["granularity"] or job["width"]
    parts = range(job["width"] // part_width)
    all_parts = (1 << len(parts)) - 1
    contents, expected = {}, None  # of each part that was written: its value
    counts = {"checked": 0, "failed": 0, "collisions": 0, "held": 0, "partial": 0}

    def drive(port, value):
        getattr(dut, port).value = value
        return value

    def whole(address):
        """The word at an address, None where a part of it was never written."""
        values = [contents.get((address, part)) for part in parts]
        return None if None in values else sum(value << part_width * part for part, value in enumerate(values))

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
        some = rng.randrange(1, 1 << len(parts)) if rng.random() < 0.6 else all_parts
        enables = drive("write_enable", some if writes else 0)
        await Timer(5, "ns")
        dut.clk.value = 1
        await Timer(5, "ns")
        dut.clk.value = 0
        collides = reads and writes and read_address == write_address
        before = whole(read_address) if reads else None
        for part in parts:
            if enables >> part & 1:
                contents[write_address, part] = data >> part_width * part & ((1 << part_width) - 1)
        if reads:
            expected = before
            if collides and job["read_during_write"] != "old":
                expected = whole(read_address) if job["read_during_write"] == "new" else None
        if expected is not None:
            counts["checked"] += 1
            counts["failed"] += word(dut.read_data) != expected
            counts["collisions"] += collides
            counts["held"] += not reads
            counts["partial"] += collides and enables != all_parts
    Path(job["result"]).write_text(json.dumps(counts))
