"""Writes what software does, step by step, and lets the golden model do it at the same time."""

from golden.spec.accelerator.errors import AcceleratorError
from golden.spec.accelerator.registers import register
from golden.system.accelerator import Accelerator
from verif.system.host import AtLeast, Expect, ExpectInterrupt, Faults, Place, Poll, Write

__all__ = ["STOPPED", "Script"]

STOPPED = register("STATUS")["stopped"].mask
_UNTIMED = register("INTERRUPT_STATUS")["command"].mask | register("INTERRUPT_STATUS")["error"].mask
"""Whether the ring was empty between two doorbells depends on time."""
_CLEARING = register("STATUS")["clearing"].mask


class Script:
    """Software that drives one accelerator: ``steps`` for the hardware, ``model`` has done them already.

    Descriptors go into the ring from its slot 0 on; before a slot is used again, DONE is awaited.
    """

    def __init__(self, sizes, memory):
        self.sizes, self.memory = sizes, memory
        self.model = Accelerator(sizes, memory)
        self.steps, self.base, self.log2 = [], 0, 0
        self._tail = self._done = 0  # DONE as software knows it

    @property
    def n_submitted(self):
        """Descriptors that are in the ring or went through it: the next one is in this slot, modulo its size."""
        return self._tail

    def take(self):
        """The steps since the last call."""
        steps, self.steps = self.steps, []
        return steps

    def write(self, name, value, index=0):
        """Write a register."""
        self.steps.append(Write(name, value, index))
        self.model.write(register(name).offset + 4 * index, value)

    def expect(self, name, mask=0xFFFFFFFF):
        """The hardware must read what the model does."""
        self.steps.append(Expect(name, self.model.read(register(name).offset), mask))

    def place(self, address, data):
        """Put bytes into memory."""
        data = bytes(data)
        self.steps.append(Place(address, data.hex()))
        self.memory.place(address, data)

    def faults(self, kind, *ranges):
        """From now on these addresses fail."""
        self.steps.append(Faults(kind, ranges))
        setattr(self.memory, f"{kind}_faults", list(ranges))

    def start(self, base, log2, interrupts=7):
        """Set the ring and enable it."""
        self.base, self.log2 = base, log2
        self.write("CONTROL", 0)
        self.steps.append(Poll("STATUS", 1, 1))
        self.write("RING_BASE_LOW", base & 0xFFFFFFFF)
        self.write("RING_BASE_HIGH", base >> 32)
        self.write("RING_SIZE", log2)
        self.write("INTERRUPT_ENABLE", interrupts)
        self.write("CONTROL", 1)
        self._tail = self._done = 0

    def submit(self, descriptors, with_doorbell=True):
        """Put descriptors into the ring, as many as it has slots, and start them; an error is awaited and looked at."""
        slots = 1 << self.log2
        assert len(descriptors) <= slots
        if self._tail + len(descriptors) - self._done > slots:
            self._done = self._tail + len(descriptors) - slots
            self.steps.append(AtLeast("DONE", self._done))
        for descriptor in descriptors:
            self.place(self.base + self._tail % slots * 64, descriptor.encode())
            self._tail += 1
        if with_doorbell:
            self.write("DOORBELL", len(descriptors))
        else:
            self.write("TAIL", self._tail)
        return self.model.error == AcceleratorError.NONE

    def check_error(self):
        """The machine must stop as the model did."""
        self.steps.append(Poll("STATUS", STOPPED, STOPPED))
        for name in ("ERROR", "ERROR_NUMBER", "ERROR_ADDRESS_LOW", "ERROR_ADDRESS_HIGH", "DONE"):
            self.expect(name)
        if self.model.error == AcceleratorError.REFUSED:
            # The core tells it late: descriptors behind may have been taken.
            self.steps.append(AtLeast("HEAD", self.model.read(register("HEAD").offset)))
        elif not self.model.is_uncertain:
            self.expect("HEAD")
        self.expect("INTERRUPT_STATUS", _UNTIMED)
        self.steps.append(ExpectInterrupt(int(self.model.interrupt)))

    def clear(self):
        """CLEAR, and wait for its end; the ring is then empty."""
        self.write("CONTROL", 3)
        self.steps.append(Poll("STATUS", 0, _CLEARING))
        self.write("INTERRUPT_STATUS", 7)
        self._tail = self._done = 0
        for name in ("ERROR", "HEAD", "TAIL", "DONE"):
            self.expect(name)
        self.steps.append(ExpectInterrupt(0))

    def direct(self, descriptor):
        """Execute a descriptor through the window; the ring must be off."""
        self.steps.append(Poll("STATUS", 8, 8))
        data = descriptor.encode()
        for index in range(16):
            self.write("DIRECT", int.from_bytes(data[4 * index : 4 * index + 4], "little"), index)
        self.write("DIRECT_SUBMIT", 1)

    def finish(self):
        """Wait until everything is complete, and look at the ring and the interrupt."""
        self.steps.append(Poll("STATUS", 1, 1))
        for name in ("HEAD", "TAIL", "DONE", "DONE_NUMBER", "INTERRUPT_STATUS", "COUNT_DESCRIPTORS"):
            self.expect(name)
        self.steps.append(ExpectInterrupt(int(self.model.interrupt)))
        self._done = self._tail
        self.write("INTERRUPT_STATUS", 7)
