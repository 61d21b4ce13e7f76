"""The accelerator's golden model: programs through its memory, its registers, its errors."""

import numpy as np
import pytest

from golden.spec.accelerator.descriptor import Descriptor
from golden.spec.accelerator.errors import AcceleratorError
from golden.spec.accelerator.parameters import AcceleratorSizes
from golden.spec.accelerator.registers import MAGIC, register
from golden.spec.commands import Command, ErrorCode, Memory, Opcode
from golden.system.accelerator import Accelerator
from golden.system.memory import SystemMemory
from hw.presets import CORES

RING, SOURCE, RESULT = 0x1000, 0x2002, 0x3006
LOAD = Command(opcode=Opcode.LOAD, function=Memory.ROWS, n_rows=3, n_in=10, destination=0, destination_stride=2)
STORE = Command(opcode=Opcode.STORE, function=Memory.ROWS, n_rows=3, n_in=10, source=0, source_stride=2)


def offset(name):
    return register(name).offset


def machine(*descriptors, log2=4):
    """An accelerator whose ring has these descriptors, enabled, and 3 rows of 10 elements in its memory."""
    memory = SystemMemory(1 << 14)
    rows = np.arange(30, dtype="<u2").reshape(3, 10)
    for row, data in enumerate(rows):
        memory.place(SOURCE + 24 * row, data)
    for index, descriptor in enumerate(descriptors):
        memory.place(RING + 64 * (index % (1 << log2)), descriptor.encode())
    accelerator = Accelerator(AcceleratorSizes.parse(CORES["tiny"]), memory)
    accelerator.write(offset("RING_BASE_LOW"), RING)
    accelerator.write(offset("RING_SIZE"), log2)
    accelerator.write(offset("INTERRUPT_ENABLE"), 7)
    accelerator.write(offset("CONTROL"), 1)
    return accelerator, rows


def load(**changes):
    return Descriptor(**{"command": LOAD, "number": 1, "length": 20, "pitch": 24, "address": SOURCE} | changes)


def store(**changes):
    return Descriptor(**{"command": STORE, "number": 2, "length": 20, "pitch": 26, "address": RESULT} | changes)


def test_rows_go_through_the_core_and_nothing_beside_them_changes():
    accelerator, rows = machine(load(), store(flags=2))
    before = accelerator.memory.data.copy()
    accelerator.write(offset("DOORBELL"), 2)
    for row, data in enumerate(rows):
        before[RESULT + 26 * row :][:20] = np.frombuffer(data.tobytes(), np.uint8)
    assert (accelerator.memory.data == before).all()
    assert accelerator.read(offset("DONE")) == accelerator.read(offset("HEAD")) == 2
    assert accelerator.read(offset("DONE_NUMBER")) == 2
    assert accelerator.read(offset("INTERRUPT_STATUS")) == 0b101 and accelerator.interrupt
    accelerator.write(offset("INTERRUPT_STATUS"), 5)
    assert not accelerator.interrupt
    assert accelerator.read(offset("MAGIC")) == MAGIC


@pytest.mark.parametrize(
    ("changes", "code", "address"),
    [
        ({"flags": 4}, AcceleratorError.FLAGS, SOURCE),
        ({"length": 18}, AcceleratorError.LENGTH, SOURCE),
        ({"pitch": 25}, AcceleratorError.ALIGNMENT, SOURCE),
        ({"address": SOURCE + 1}, AcceleratorError.ALIGNMENT, SOURCE + 1),
        ({"address": 1 << 32}, AcceleratorError.ADDRESS, 1 << 32),
        ({"command": Command(opcode=77)}, AcceleratorError.REFUSED, SOURCE),
        ({"address": 1 << 14}, AcceleratorError.LOAD_RESPONSE, 1 << 14),
    ],
)
def test_a_wrong_descriptor_stops_the_machine_until_clear(changes, code, address):
    accelerator, _ = machine(load(**changes), store())
    accelerator.write(offset("TAIL"), 2)
    assert accelerator.error == code
    assert (
        accelerator.read(offset("ERROR_ADDRESS_LOW")) | accelerator.read(offset("ERROR_ADDRESS_HIGH")) << 32 == address
    )
    assert accelerator.read(offset("ERROR_NUMBER")) == 1
    assert accelerator.read(offset("DONE")) == 0 and accelerator.interrupt
    if code == AcceleratorError.REFUSED:
        assert accelerator.read(offset("ERROR")) >> 8 == ErrorCode.UNKNOWN_OPCODE
    accelerator.write(offset("CONTROL"), 3)
    assert accelerator.error == AcceleratorError.NONE and accelerator.read(offset("TAIL")) == 0
    accelerator.memory.place(RING, load().encode())
    accelerator.write(offset("TAIL"), 2)
    assert accelerator.read(offset("DONE")) == 2


def test_the_ring_wraps_and_must_not_overflow():
    accelerator, _ = machine(load(), store(), log2=1)
    for tail in (2, 4, 5):
        accelerator.write(offset("TAIL"), tail)
        assert accelerator.read(offset("DONE")) == tail
    accelerator.write(offset("TAIL"), 8)
    assert accelerator.error == AcceleratorError.RING_RANGE


def test_a_write_that_fails():
    accelerator, _ = machine(load(), store())
    accelerator.memory.write_faults.append((RESULT + 30, RESULT + 31))
    accelerator.write(offset("TAIL"), 2)
    assert accelerator.error == AcceleratorError.STORE_RESPONSE and accelerator.is_uncertain
    assert accelerator.read(offset("ERROR_ADDRESS_LOW")) == (RESULT + 26) // 8 * 8


def test_a_descriptor_through_the_window():
    accelerator, _ = machine()
    accelerator.write(offset("CONTROL"), 0)
    for index, word in enumerate(np.frombuffer(load().encode(), "<u4").tolist()):
        accelerator.write(offset("DIRECT") + 4 * index, word)
    accelerator.write(offset("DIRECT_SUBMIT"), 0)
    assert accelerator.read(offset("DONE_NUMBER")) == 1 and accelerator.read(offset("DONE")) == 0
    accelerator.write(offset("CONTROL"), 1)
    accelerator.write(offset("DIRECT"), 0)
    assert accelerator.error == AcceleratorError.DIRECT_BUSY


def test_there_is_nothing_between_the_registers():
    accelerator, _ = machine()
    with pytest.raises(LookupError, match="there is no register at 0x3c"):
        accelerator.read(0x3C)
