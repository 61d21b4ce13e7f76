"""The driver in C, compiled for this machine, on the golden model of the accelerator: calls, errors, a full ring."""

import shutil

import numpy as np
import pytest

from golden.spec.accelerator.descriptor import DESCRIPTOR_FLAGS, Descriptor
from golden.spec.accelerator.errors import AcceleratorError
from golden.spec.accelerator.parameters import AcceleratorSizes
from golden.spec.accelerator.registers import register
from golden.spec.commands import Command, Elementwise, ErrorCode, Memory, Opcode
from golden.spec.sizes import words_for
from golden.system.accelerator import Accelerator
from golden.system.memory import SystemMemory
from hw.software.driver import Device, DriverError, build_library

RING, LOG2, DATA, RESULT = 0x1000, 3, 0x2001 + 1, 0x3000
N_ROWS, N_IN = 5, 7


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    return build_library(tmp_path_factory.mktemp("driver"), compiler)


class Machine:
    """The model and the driver, with a ring in its memory."""

    def __init__(self, library, is_open=True):
        self.sizes = AcceleratorSizes()
        self.memory = SystemMemory(1 << 16)
        self.model = Accelerator(self.sizes, self.memory)
        self.device = Device(library, self.model.read, self.model.write)
        self.rows = np.arange(N_ROWS * N_IN, dtype=np.float16).reshape(N_ROWS, N_IN) / 8 - 2
        self.memory.place(DATA, self.rows)
        self.ring = self.memory.data[RING : RING + (64 << LOG2)]
        if is_open:
            self.device.open(self.ring, RING, LOG2)

    def commands(self):
        """Load rows, add them to themselves, store."""
        stride = words_for(N_IN, self.sizes.row_word)
        place = {"n_rows": N_ROWS, "n_in": N_IN}
        after = N_ROWS * stride
        return [
            (Command(opcode=Opcode.LOAD, function=Memory.ROWS, destination_stride=stride, **place), DATA),
            (
                Command(
                    opcode=Opcode.ELEMENTWISE,
                    function=Elementwise.ADD,
                    source_stride=stride,
                    source_2_stride=stride,
                    destination=after,
                    destination_stride=stride,
                    **place,
                ),
                0,
            ),
            (Command(opcode=Opcode.STORE, function=Memory.ROWS, source=after, source_stride=stride, **place), RESULT),
        ]

    def result(self):
        return self.memory.data[RESULT : RESULT + 2 * N_ROWS * N_IN].view(np.uint16).reshape(N_ROWS, N_IN)

    def expected(self):
        return (self.rows + self.rows).view(np.uint16)


def test_sizes_are_those_of_the_registers(library):
    machine = Machine(library, is_open=False)
    for name, value in machine.device.sizes.items():
        assert value == getattr(machine.sizes, name), name


def test_what_is_no_accelerator_is_not_found(library):
    with pytest.raises(DriverError, match="there is no accelerator"):
        Device(library, lambda offset: 0, lambda offset, value: None)
    magic = Machine(library, is_open=False).model.read(0)
    with pytest.raises(DriverError, match="another major version"):
        Device(library, lambda offset: 0 if offset else magic, lambda offset, value: None)


@pytest.mark.parametrize("is_open", [True, False], ids=["ring", "direct"])
def test_a_program(library, is_open):
    machine = Machine(library, is_open)
    device = machine.device
    for number, (command, address) in enumerate(machine.commands()):
        descriptor = device.descriptor_for(command, address)
        if is_open:
            position = device.submit(descriptor)
            assert position == number + 1
        else:
            device.execute(descriptor, limit=10)
    if is_open:
        device.wait(limit=10)
        assert device.is_complete(position)
        device.close(limit=10)
    assert device.failure() is None
    assert np.array_equal(machine.result(), machine.expected())


def test_the_ring_wraps_and_tells_that_it_is_full(library):
    machine = Machine(library)
    device = machine.device
    clear = device.descriptor_for(Command(opcode=Opcode.CLEAR))
    for number in range(3 << LOG2):
        assert device.submit(clear) == number + 1
    # A machine that takes nothing any more.
    machine.model.write(register("CONTROL").offset, 0)
    for _ in range(1 << LOG2):
        position = device.submit(clear)
    assert not device.is_complete(position)
    with pytest.raises(DriverError, match="the ring is full"):
        device.submit(clear)
    with pytest.raises(DriverError, match="the limit was reached"):
        device.wait(limit=5)
    machine.model.write(register("CONTROL").offset, 1)
    device.wait(limit=5)


@pytest.mark.parametrize(
    "change, code, reason",
    [
        ({"length": 3}, AcceleratorError.LENGTH, ErrorCode.NONE),
        ({"flags": 4}, AcceleratorError.FLAGS, ErrorCode.NONE),
        ({"address": DATA + 1}, AcceleratorError.ALIGNMENT, ErrorCode.NONE),
        ({"address": 1 << 40}, AcceleratorError.ADDRESS, ErrorCode.NONE),
        ({"command": Command(opcode=200)}, AcceleratorError.REFUSED, ErrorCode.UNKNOWN_OPCODE),
        ({"address": 1 << 20}, AcceleratorError.LOAD_RESPONSE, ErrorCode.NONE),
    ],
    ids=lambda value: value.name if isinstance(value, AcceleratorError) else "",
)
def test_errors_are_told_and_cleared(library, change, code, reason):
    machine = Machine(library)
    device = machine.device
    load, address = machine.commands()[0]
    right = device.descriptor_for(load, address)
    wrong = Descriptor(**{**vars(right), "number": 77, **change})
    device.submit(wrong)
    with pytest.raises(DriverError, match="has stopped with an error"):
        device.wait(limit=5)
    with pytest.raises(DriverError, match="has stopped with an error"):
        device.submit(right)
    failure = device.failure()
    assert (failure.code, failure.reason, failure.number) == (code, reason, 77)
    assert failure.address == wrong.address
    assert device.stop_text(code) == code.doc
    device.clear(limit=5)
    assert device.failure() is None
    for command, place in machine.commands():
        device.submit(device.descriptor_for(command, place))
    device.wait(limit=5)
    assert np.array_equal(machine.result(), machine.expected())


def test_interrupts(library):
    machine = Machine(library)
    device, model = machine.device, machine.model
    events = {item.name: item.mask for item in register("INTERRUPT_STATUS").fields}
    device.enable_interrupts(events["command"])
    plain = device.descriptor_for(Command(opcode=Opcode.CLEAR))
    device.submit(plain)
    assert not model.interrupt
    device.submit(Descriptor(**{**vars(plain), "flags": DESCRIPTOR_FLAGS["interrupt"]}))
    assert model.interrupt
    assert device.take_interrupts() & events["command"]
    assert not model.interrupt


def test_wrong_arguments(library):
    machine = Machine(library, is_open=False)
    device = machine.device
    clear = device.descriptor_for(Command(opcode=Opcode.CLEAR))
    with pytest.raises(DriverError, match="no ring is open"):
        device.submit(clear)
    for address, log2 in ((RING + 2, LOG2), (RING, 0), (1 << 40, LOG2)):
        with pytest.raises(DriverError, match="an argument is not legal"):
            device.open(machine.ring, address, log2)
    with pytest.raises(ValueError, match="ring must have at least 1024 bytes, not 512"):
        device.open(machine.ring, RING, LOG2 + 1)
    device.open(machine.ring, RING, LOG2)
    with pytest.raises(DriverError, match="a ring is open"):
        device.open(machine.ring, RING, LOG2)
    with pytest.raises(DriverError, match="a ring is open"):
        device.execute(clear)
