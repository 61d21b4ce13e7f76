"""Gives the command checker random commands and compares its answers with the golden checks."""

import numpy as np

from golden.core.checks import WrittenState, check, extents
from golden.spec.commands import ErrorCode
from golden.spec.sizes import CoreSizes
from hw.top.controller.command_checker import EXTENT, checked_state
from verif.bench.endpoints import set_ports, word
from verif.core.random_commands import random_command


def random_state(rng, sizes):
    tokens = None
    if rng.random() < 0.8:
        count = rng.integers(0, sizes.max_tokens, endpoint=True) if rng.random() < 0.3 else rng.integers(0, 3)
        tokens = [int(row) for row in rng.integers(0, sizes.max_tokens if rng.random() < 0.5 else 3, count)]
    rows = [int(rng.choice([0, 1, sizes.max_tokens, rng.integers(0, sizes.max_tokens)])) for _ in range(sizes.n_masks)]
    return WrittenState(rows, int(rng.choice([0, sizes.max_tokens, rng.integers(0, sizes.max_tokens)])), tokens)


async def check_commands(simulation):
    """Scenario. Job: ``parameters``, ``seed``, ``commands`` (their number), ``latency``."""
    dut, job, clock = simulation.dut, simulation.job, simulation.clock
    sizes = CoreSizes(**job["parameters"])
    rng = np.random.default_rng(job["seed"])
    layout = checked_state(sizes)
    counts = {"failed": [], "checked": 0, "codes": {code.name: 0 for code in ErrorCode}}

    set_ports(dut, {"start": 0, "command": 0, "state": 0})
    await clock.start()
    await clock.reset()
    for _ in range(job["commands"]):
        command, state = random_command(rng, sizes), random_state(rng, sizes)
        tokens = state.tokens or []
        dut.command.value = command.encode()
        dut.state.value = (
            layout.const(
                {
                    "mask_rows": state.mask_count,
                    "mass_rows": state.mass_count,
                    "tokens_valid": state.tokens is not None,
                    "token_count": len(tokens),
                    "token_largest": max(tokens, default=0),
                }
            )
            .as_value()
            .value
        )
        dut.start.value = 1
        await clock.step()
        dut.start.value = 0
        waited = 0
        await clock.settle()
        while not word(dut.done) and waited + 1 < job["latency"]:
            await clock.edge()
            waited += 1
            await clock.settle()
        expected = check(command, sizes, state)
        found = [word(dut.error)]
        wanted = [int(expected)]
        if expected == ErrorCode.NONE:
            parts = [part for part in extents(command, sizes) if part.memory == "imem"]
            for port, written, place in (
                ("source_extent", False, 0),
                ("source_2_extent", False, 1),
                ("destination_extent", True, 0),
            ):
                extent = EXTENT.from_bits(word(getattr(dut, port)))
                chosen = [part for part in parts if part.is_written == written][place : place + 1]
                found.append([extent.is_used, extent.first, extent.end] if extent.is_used else None)
                wanted.append([1, chosen[0].first, chosen[0].end] if chosen else None)
        counts["checked"] += 1
        counts["codes"][expected.name] += 1
        if found != wanted or not word(dut.done) or waited + 1 != job["latency"]:
            counts["failed"].append(f"{command}, {state}: {found}, expected {wanted}, after {waited + 1} clocks")
    return counts
