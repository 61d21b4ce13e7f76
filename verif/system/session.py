"""Runs a script on the accelerator's emitted Verilog, with a memory of given latency on its bus."""

from typing import NamedTuple

import numpy as np

from golden.spec.accelerator.parameters import AcceleratorSizes
from verif.bench.harness import run_job
from verif.bench.scoreboard import Scoreboard
from verif.system.axi_memory import AxiMemory
from verif.system.host import STEPS, Host

__all__ = ["Session", "differences", "run_script"]

PATIENCE = 30_000
"""Clocks without any beat after which a run is given up."""


class Session(NamedTuple):
    """What came of a script."""

    memory: np.ndarray
    read_at: list
    """The clocks in which beats of data were read."""
    clocks: int
    checked: int
    messages: list


def run_script(block, script, image, *, pattern="none", latency=(1, 4), seed=1, sim=None):
    """Run the steps of a :class:`verif.system.script.Script` on a memory that begins as ``image``: a Session."""
    job = {
        "parameters": block.parameters.to_dict(),
        "image": bytes(image).hex(),
        "steps": [[type(step).__name__, *step] for step in script.take()],
        "pattern": pattern,
        "latency": latency,
        "seed": seed,
    }
    result = run_job(block, f"{__name__}:run", job, sim=sim)
    return Session(np.frombuffer(bytes.fromhex(result.pop("memory")), np.uint8), **result)


def differences(memory, expected):
    """Where a memory is not as the model's is, in words, at most five places; ``expected`` tells what is defined."""
    wrong = np.flatnonzero((np.frombuffer(bytes(memory), np.uint8) != expected.data) & expected.defined)
    shown = [f"byte {at:#x} is {memory[at]:#x}, expected {expected.data[at]:#x}" for at in wrong[:5]]
    return [f"{len(wrong)} bytes of memory are wrong", *shown] if len(wrong) else []


async def run(simulation):
    """Scenario of :func:`run_script`."""
    dut, job, clock, scoreboard = simulation.dut, simulation.job, simulation.clock, Scoreboard()
    memory = AxiMemory(
        dut,
        AcceleratorSizes(**job["parameters"]),
        scoreboard.report,
        simulation.random,
        bytearray.fromhex(job["image"]),
    )
    memory.latency = tuple(job["latency"])
    host = Host(dut, memory, scoreboard.report, simulation.random)
    clock.endpoints += [memory, host]
    await clock.start()
    await clock.reset()
    memory.set_pattern(job["pattern"])
    begin = clock.cycle
    host.start([STEPS[name](*fields) for name, *fields in job["steps"]], job["pattern"])
    n_steps = max(1, len(job["steps"]))
    quiet, left = 0, None
    while not (host.done and memory.done):
        moved = (await clock.step())[0]
        quiet = 0 if moved or left != host.n_left else quiet + 1
        left = host.n_left
        if quiet > PATIENCE:
            scoreboard.report(f"nothing moved for {PATIENCE} clocks; the host waits at {host.waits_at}")
            break
        if clock.cycle % 1000 == 0:
            simulation.progress(1 - left / n_steps)
    return {
        "memory": memory.data.hex(),
        "read_at": memory.read_at,
        "clocks": clock.cycle - begin,
        "checked": host.checked,
        "messages": scoreboard.result()["messages"],
    }
