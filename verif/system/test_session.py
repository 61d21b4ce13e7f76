"""Programs through memory on the emitted Verilog: rows in and out, fences, the window, errors, CLEAR."""

import os
from dataclasses import replace

import numpy as np
import pytest

from golden.spec.accelerator.descriptor import Descriptor
from golden.spec.commands import Command, Memory, Opcode
from golden.spec.sizes import words_for
from golden.system.memory import SystemMemory
from hw.registry import make_block
from verif.system.host import Expect, Poll
from verif.system.script import Script
from verif.system.session import differences, run_script

pytestmark = pytest.mark.core

SEED = int(os.environ.get("SEED", "1"))
RING, DATA, RESULT, SIZE = 0x0FC0, 0x2000, 0x8000, 1 << 16


def rows(sizes, opcode, n_rows, n_in, first, **fields):
    """LOAD or STORE of rows that lie one behind the other in IMEM."""
    base = "destination" if opcode == Opcode.LOAD else "source"
    place = {base: first, f"{base}_stride": words_for(n_in, sizes.row_word)}
    command = Command(opcode=opcode, function=Memory.ROWS, n_rows=n_rows, n_in=n_in, **place)
    return Descriptor(command=command, length=2 * n_in, **fields)


def new_script(block, seed=SEED):
    rng = np.random.default_rng(seed)
    memory = SystemMemory(SIZE)
    memory.data[:] = rng.integers(0, 256, SIZE)
    return Script(block.parameters, memory), memory.data.copy(), rng


def run(block, script, image, **options):
    session = run_script(block, script, image, seed=SEED, **options)
    assert not session.messages, session.messages
    assert session.checked
    wrong = differences(session.memory, script.memory)
    assert not wrong, wrong
    return session


@pytest.mark.parametrize("pattern", ["none", "random"])
def test_rows_of_any_length_at_any_element(pattern):
    block = make_block("accelerator", "tiny")
    script, image, rng = new_script(block)
    script.start(RING, 2)
    for number in range(12):
        n_rows, n_in = int(rng.integers(1, 9)), int(rng.integers(1, 33))
        address, result = (first + 2 * int(rng.integers(0, 2000)) for first in (DATA, RESULT))
        pitch = 2 * n_in + 2 * int(rng.integers(0, 40))
        script.submit([rows(script.sizes, Opcode.LOAD, n_rows, n_in, 0, address=address, pitch=pitch, number=number)])
        store = rows(script.sizes, Opcode.STORE, n_rows, n_in, 0, address=result, pitch=pitch, number=100 + number)
        script.submit([store], with_doorbell=False)
    script.finish()
    run(block, script, image, pattern=pattern, latency=(1, 20))


SMALLEST = {
    "n_banks": 2,
    "n_lanes": 1,
    "simd_lanes": 1,
    "max_tokens": 16,
    "max_dim": 40,
    "channels": 1,
    "patch": 1,
    "latent_width": 4,
    "latent_height": 4,
}


def pair(sizes, number, source=DATA, result=RESULT, n_rows=3, n_in=37, **flags):
    """A LOAD and a STORE of the same rows."""
    load = rows(sizes, Opcode.LOAD, n_rows, n_in, 0, address=source, pitch=90, number=number)
    store = rows(sizes, Opcode.STORE, n_rows, n_in, 0, address=result, pitch=100, number=number + 1, **flags)
    return [load, store]


def forget(script, descriptor):
    """Where a descriptor stores is not defined."""
    command = descriptor.command
    for row in range(command.n_rows):
        first = descriptor.address + row * descriptor.pitch
        script.memory.defined[first : first + descriptor.length] = False


def load_fails(script):
    """At any beat of a load; what is stored behind it does not get to memory."""
    for at in (DATA, DATA + 90, DATA + 2 * 90 + 73):
        script.faults("read", (at, at + 1))
        wanted = pair(script.sizes, 7, flags=2)
        assert not script.submit([*wanted, *pair(script.sizes, 9, DATA + 0x1000, RESULT + 0x1000)])
        recover(script)


def core_refuses(script):
    """The refused command is never counted as complete, not even when CLEAR ends the refusal."""
    load, store = pair(script.sizes, 16, flags=2)
    wrong = replace(load, flags=2, command=replace(load.command, destination_stride=0))
    assert not script.submit([load, store, wrong, store])
    script.check_error()
    script.expect("COUNT_DESCRIPTORS")
    script.clear()
    script.expect("COUNT_DESCRIPTORS")
    script.expect("DONE_NUMBER")


def store_fails(script):
    for at in (RESULT, RESULT + 73, RESULT + 273):
        script.faults("write", (at, at + 1))
        wanted = pair(script.sizes, 20)
        assert not script.submit(wanted)
        forget(script, wanted[1])
        recover(script)


def fetch_fails(script):
    slot = RING + script.n_submitted % 16 * 64 + 64
    script.faults("read", (slot, slot + 64))
    assert not script.submit(pair(script.sizes, 30))
    recover(script)


def ring_is_misused(script):
    script.write("DOORBELL", 17)
    recover(script)
    script.write("TAIL", 10)  # whatever is there
    recover(script)
    script.write("CONTROL", 0)
    script.write("DIRECT", 0)
    for number in (31, 33):
        for descriptor in pair(script.sizes, number, result=RESULT + 0x800):
            script.direct(descriptor)
    script.finish()
    script.start(RING + 32, 4)
    script.write("DOORBELL", 1)
    script.check_error()
    script.clear()
    script.start(RING, 4)
    script.write("DIRECT", 0)
    recover(script)


def fences_order_memory(script):
    sizes = script.sizes
    first, second = pair(sizes, 40), pair(sizes, 42, RESULT, RESULT + 0x2000)
    again = replace(second[0], flags=1, pitch=100)
    assert script.submit([*first, again, second[1]])
    script.finish()


def clear_in_mid_flight(script):
    """Nobody knows how many of the stores were done; nothing beside them is touched."""
    for n in range(1, 7):
        wanted = [*pair(script.sizes, 50), *pair(script.sizes, 52, DATA + 0x800, RESULT + 0x3000)]
        script.submit(wanted)
        script.steps += [Expect("MAGIC", 0x54694453)] * n
        forget(script, wanted[1])
        forget(script, wanted[3])
        script.clear()
        works(script)


def works(script):
    assert script.submit(pair(script.sizes, 60, result=RESULT + 0x4000))
    script.steps.append(Poll("STATUS", 1, 1))
    for name in ("DONE", "DONE_NUMBER", "ERROR"):
        script.expect(name)
    script.write("INTERRUPT_STATUS", 7)


def recover(script):
    script.check_error()
    script.clear()
    script.faults("read")
    script.faults("write")
    works(script)


SCENARIOS = (
    core_refuses,
    load_fails,
    store_fails,
    fetch_fails,
    ring_is_misused,
    fences_order_memory,
    clear_in_mid_flight,
)


@pytest.mark.parametrize("data_width", [32, 256])
def test_errors_are_told_and_nothing_later_is_done(data_width):
    block = make_block("accelerator", None, SMALLEST | {"data_width": data_width, "burst_beats": 8})
    script, image, _ = new_script(block)
    script.start(RING, 4)
    for scenario in SCENARIOS:
        scenario(script)
    run(block, script, image, pattern="random", latency=(1, 60))


def test_loads_fill_the_bus_whatever_its_latency():
    """Loads of 4 KiB one after the other, 100 clocks of latency: at least 95 % of what the bus can carry."""
    large = {"max_dim": 512, "imem_depth": 4096, "wmem_depth": 1024}
    block = make_block("accelerator", None, SMALLEST | large | {"data_width": 32})
    script, image, _ = new_script(block)
    script.start(RING, 4)
    n_loads, n_rows, n_in = 8, 4, 512
    loads = [
        rows(script.sizes, Opcode.LOAD, n_rows, n_in, 1024 * (i % 4), address=DATA + 4096 * i, pitch=1024)
        for i in range(n_loads)
    ]
    script.submit(loads)
    script.finish()
    read_at = run(block, script, image, latency=(100, 100)).read_at
    assert len(read_at) == n_loads * 1024
    assert len(read_at) >= 0.95 * (read_at[-1] - read_at[0] + 1)
