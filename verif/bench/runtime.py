"""The cocotb module of every simulation: runs the scenario that a job names on the design, and writes its result.

A scenario is a coroutine function of one :class:`Simulation`; what it returns, plain data, is the result.
"""

import importlib
import json
import os
import random
import traceback
from pathlib import Path

import cocotb

from verif.bench.clock import Clock


class Simulation:
    """A simulated design, ``dut``, with its clock, the job's plain data, and a generator of random numbers."""

    def __init__(self, dut, job):
        self.dut, self.job = dut, job
        self.clock = Clock(dut)
        self.random = random.Random(job.get("seed", 1))

    def progress(self, share):
        """Tell how far the scenario is, from 0 to 1."""
        Path(self.job["progress"]).write_text(f"{share}")

    def save(self, result):
        """Write a result; one that is written before the end counts if the simulation breaks off."""
        self._write({"result": result})

    def fail(self, message):
        """Write why there is no result."""
        self._write({"error": message})

    def _write(self, data):
        Path(self.job["result"]).write_text(json.dumps(data))


@cocotb.test()
async def run_scenario(dut):
    simulation = Simulation(dut, json.loads(Path(os.environ["BENCH_JOB"]).read_text()))
    module, name = simulation.job["scenario"].split(":")
    try:
        simulation.save(await getattr(importlib.import_module(module), name)(simulation))
    except Exception:
        simulation.fail(traceback.format_exc())
