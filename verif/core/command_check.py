"""Gives the command checker random commands and compares its answers with the golden checks."""

import numpy as np

from golden.core.checks import WrittenState, check, extents
from golden.spec.commands import ErrorCode
from golden.spec.sizes import CoreSizes
from hw.top.controller.command_checker import checked_state
from hw.top.controller.footprint import BASES, bases_in, footprint_layout
from verif.bench.endpoints import set_ports, word
from verif.core.random_commands import random_command


def random_state(rng, sizes):
    tokens = None
    if rng.random() < 0.8:
        count = rng.integers(0, sizes.max_tokens, endpoint=True) if rng.random() < 0.3 else rng.integers(0, 3)
        tokens = [int(row) for row in rng.integers(0, sizes.max_tokens if rng.random() < 0.5 else 3, count)]
    rows = [int(rng.choice([0, 1, sizes.max_tokens, rng.integers(0, sizes.max_tokens)])) for _ in range(sizes.n_masks)]
    return WrittenState(rows, int(rng.choice([0, sizes.max_tokens, rng.integers(0, sizes.max_tokens)])), tokens)


def _places(footprint):
    """The extents of a footprint, as those of the golden checks."""
    found = set()
    for base in BASES:
        place = footprint["places"][base]
        for memory in bases_in(base):
            if place["memory"][memory]:
                found.add((memory, place["first"], place["end"], bool(place["is_written"])))
    return found


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
            footprint = footprint_layout(sizes).from_bits(word(dut.footprint))
            places = {(part.memory, part.first, part.end, part.is_written) for part in extents(command, sizes, state)}
            found.append(_places(footprint))
            wanted.append(places)
        counts["checked"] += 1
        counts["codes"][expected.name] += 1
        if found != wanted or not word(dut.done) or waited + 1 != job["latency"]:
            counts["failed"].append(f"{command}, {state}: {found}, expected {wanted}, after {waited + 1} clocks")
    return counts
