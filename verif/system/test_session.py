"""Programs through memory on the emitted Verilog: rows in and out, fences, the window, errors, CLEAR."""

import os

import numpy as np
import pytest

from golden.spec.accelerator.descriptor import Descriptor
from golden.spec.commands import Command, Memory, Opcode
from golden.spec.sizes import words_for
from golden.system.memory import SystemMemory
from hw.registry import make_block
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
