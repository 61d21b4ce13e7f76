"""Runs programs on the core's emitted Verilog at full speed: what it stores, and which units are busy in each clock."""

import json
import os
from pathlib import Path
from typing import NamedTuple

import cocotb
import numpy as np
from cocotb.triggers import Timer

from verif.bench.endpoints import word
from verif.bench.harness import run_job

__all__ = ["Session", "run_program"]


class Session(NamedTuple):
    """What came of a program."""

    values: np.ndarray  # uint16 [beats, row_word] of the store stream
    last: np.ndarray  # bool [beats]
    busy: np.ndarray  # bool [clocks, units], up to the last stored beat
    ends: np.ndarray  # of each STORE, the clock of its last beat


def run_program(block, program, *, sim=None):
    """Run a program (:class:`golden.program.assembler.Program`) that ends with a STORE, without stalls: a :class:`Session`."""
    job = {
        "commands": [f"{command.encode():x}" for command in program.commands],
        "load": [f"{beat:x}" for beat in program.beat_integers()],
        "stores": len(program.stored),
    }
    result = run_job(block, "verif.core.session", job, sim=sim, long=True)
    word_bytes = 2 * block.parameters.row_word
    beats = b"".join(int(beat, 16).to_bytes(word_bytes, "little") for beat in result["store"])
    busy = np.array(result["busy"], np.int64)
    return Session(
        np.frombuffer(beats, "<u2").reshape(-1, block.parameters.row_word),
        np.array(result["last"], bool),
        (busy[:, None] >> np.arange(4) & 1).astype(bool),
        np.array(result["ends"]),
    )


@cocotb.test()
async def play(dut):
    """A program at full speed."""
    job = json.loads(Path(os.environ["BENCH_JOB"]).read_text())
    for name in ("commands__valid", "load__valid", "store__ready", "clk", "commands__payload", "load__payload"):
        getattr(dut, name).value = 0
    dut.rst.value = 1
    for clock in (0, 1, 0, 1, 0):
        dut.clk.value = clock
        await Timer(5, "ns")
    dut.rst.value = 0
    dut.store__ready.value = 1

    found = {"store": [], "last": [], "busy": [], "ends": []}
    streams = {name: [iter([int(text, 16) for text in job[name]]), None] for name in ("commands", "load")}
    top = len(dut.store__payload) - 1
    while len(found["ends"]) < job["stores"]:
        for name, stream in streams.items():
            if stream[1] is None:
                stream[1] = next(stream[0], None)
                if stream[1] is not None:
                    getattr(dut, f"{name}__payload").value = stream[1]
                getattr(dut, f"{name}__valid").value = int(stream[1] is not None)
        await Timer(5, "ns")
        for name, stream in streams.items():
            if stream[1] is not None and word(getattr(dut, f"{name}__ready")):
                stream[1] = None
        if word(dut.store__valid):
            # What was never written may be X.
            beat = int("".join(bit if bit in "01" else "0" for bit in str(dut.store__payload.value)), 2)
            found["store"].append(f"{beat & ((1 << top) - 1):x}")
            found["last"].append(beat >> top)
            if beat >> top:
                found["ends"].append(len(found["busy"]))
                Path(job["progress"]).write_text(f"{len(found['ends']) / job['stores']}")
        if word(dut.error):
            raise RuntimeError(f"command {word(dut.error_command)} was refused with error {word(dut.error)}")
        found["busy"].append(word(dut.busy))
        dut.clk.value = 1
        await Timer(5, "ns")
        dut.clk.value = 0
    Path(job["result"]).write_text(json.dumps(found))
