"""Golden model of the accelerator: a memory with a ring of descriptors in, memory, registers and interrupts out."""

import numpy as np

from golden.core.checks import check
from golden.core.core import Core
from golden.core.memories import Words
from golden.spec.accelerator.descriptor import DESCRIPTOR_FLAGS, DESCRIPTOR_WORDS, Descriptor
from golden.spec.accelerator.errors import AcceleratorError
from golden.spec.accelerator.parameters import DESCRIPTOR_BYTES, AcceleratorSizes
from golden.spec.accelerator.registers import REGISTERS, SPACE_BYTES, register
from golden.spec.commands import Command, ErrorCode, Opcode
from golden.system.transfers import beats_of, elements_of, is_length, rows_of

__all__ = ["Accelerator"]

_COUNT = (1 << 32) - 1
_READ_ONLY_WHILE_ENABLED = ("RING_BASE_LOW", "RING_BASE_HIGH", "RING_SIZE")


class _Stop(Exception):
    """The descriptor under way has an error."""

    def __init__(self, code, address=0, reason=ErrorCode.NONE):
        super().__init__(code.name)
        self.code, self.address, self.reason = code, address, reason


class Accelerator:
    """An accelerator after reset, with its memory.

    Software writes and reads registers; every write has all its effects at once: descriptors are executed one after
    the other. ``is_uncertain`` is set by LOAD_RESPONSE and STORE_RESPONSE: how much of what came later the core has
    executed is then not defined, and so are the contents of its memories.

    Counters that depend on time are not modelled; they read as 0.
    """

    def __init__(self, sizes: AcceleratorSizes, memory):
        self.sizes, self.memory = sizes, memory
        self.core = Core(sizes)
        self.is_uncertain = False
        self._values = {item.name: self._reset_value(item) for item in REGISTERS}
        self._window = [0] * DESCRIPTOR_WORDS
        self._done_number = 0
        self._counts = {"DESCRIPTORS": 0, "READ_BEATS": 0, "WRITE_BEATS": 0, "FETCH_BEATS": 0}

    def _reset_value(self, item):
        value = 0
        for part in item.fields:
            reset = getattr(self.sizes, part.reset) if isinstance(part.reset, str) else part.reset
            value |= reset << part.low & part.mask
        return value

    @property
    def interrupt(self):
        """The interrupt."""
        return bool(self._values["INTERRUPT_ENABLE"] & self._values["INTERRUPT_STATUS"])

    @property
    def error(self):
        """The code for which it stopped."""
        return AcceleratorError(self._values["ERROR"] & register("ERROR")["code"].mask)

    def read(self, offset):
        """The value of a register; ``LookupError`` where there is none: the bus answers with SLVERR."""
        name, _ = self._at(offset)
        if name == "STATUS":
            stopped = 2 if self.error else 0
            ready = 0 if self._values["CONTROL"] & 1 or self.error else 8
            return 1 | stopped | ready
        if name.startswith("COUNT_"):
            return self._counts.get(name.removeprefix("COUNT_"), 0) & _COUNT
        return self._values[name]

    def write(self, offset, value):
        """Write a register, with all that follows from it."""
        name, index = self._at(offset)
        values = self._values
        if name == "CONTROL":
            values["CONTROL"] = value & 1
            if value & register("CONTROL")["clear"].mask:
                self._clear()
            if value & register("CONTROL")["clear_counters"].mask:
                self._counts = dict.fromkeys(self._counts, 0)
        elif name == "INTERRUPT_STATUS":
            values[name] &= ~value
        elif name == "INTERRUPT_ENABLE":
            values[name] = value & sum(part.mask for part in register(name).fields)
        elif name in _READ_ONLY_WHILE_ENABLED and not values["CONTROL"] & 1:
            values[name] = value & sum(part.mask for part in register(name).fields)
            if name == "RING_SIZE":
                values["HEAD"] = values["TAIL"] = values["DONE"] = 0
        elif name in ("TAIL", "DOORBELL"):
            values["TAIL"] = (value + (values["TAIL"] if name == "DOORBELL" else 0)) & _COUNT
        elif name in ("DIRECT", "DIRECT_SUBMIT"):
            self._direct(name, index, value)
        if values["CONTROL"] & 1:
            self._run_ring()

    def _at(self, offset):
        for item in REGISTERS:
            if 0 <= offset - item.offset < 4 * item.count and offset % 4 == 0 and offset < SPACE_BYTES:
                return item.name, (offset - item.offset) // 4
        raise LookupError(f"there is no register at {offset:#x}")

    def _clear(self):
        for name in ("ERROR", "ERROR_NUMBER", "ERROR_ADDRESS_LOW", "ERROR_ADDRESS_HIGH", "HEAD", "TAIL", "DONE"):
            self._values[name] = 0
        if self.core.refusal is not None:
            self.core.execute([Command(opcode=Opcode.CLEAR)])

    def _event(self, name):
        self._values["INTERRUPT_STATUS"] |= register("INTERRUPT_STATUS")[name].mask

    def _stop(self, stop, number):
        self._values["ERROR"] = stop.code | stop.reason << register("ERROR")["reason"].low
        self._values["ERROR_NUMBER"] = number
        self._values["ERROR_ADDRESS_LOW"] = stop.address & _COUNT
        self._values["ERROR_ADDRESS_HIGH"] = stop.address >> 32
        self._event("error")
        if stop.code in (AcceleratorError.LOAD_RESPONSE, AcceleratorError.STORE_RESPONSE):
            self.is_uncertain = True

    def _direct(self, name, index, value):
        if self.error:
            return
        if self._values["CONTROL"] & 1:
            self._stop(_Stop(AcceleratorError.DIRECT_BUSY), 0)
        elif name == "DIRECT":
            self._window[index] = value
        else:
            self._execute(b"".join(word.to_bytes(4, "little") for word in self._window))

    def _run_ring(self):
        values, sizes = self._values, self.sizes
        base = values["RING_BASE_LOW"] | values["RING_BASE_HIGH"] << 32
        slots = 1 << values["RING_SIZE"]
        while not self.error and values["DONE"] != values["TAIL"]:
            if values["RING_SIZE"] > sizes.max_ring_log2 or (values["TAIL"] - values["DONE"]) & _COUNT > slots:
                self._stop(_Stop(AcceleratorError.RING_RANGE), 0)
            elif base % DESCRIPTOR_BYTES or base >> sizes.address_width:
                self._stop(_Stop(AcceleratorError.RING_ALIGNMENT), 0)
            else:
                address = (base + values["HEAD"] % slots * DESCRIPTOR_BYTES) & ((1 << sizes.address_width) - 1)
                end = address + DESCRIPTOR_BYTES
                if self.memory.fails(self.memory.read_faults, address, end):
                    self._stop(_Stop(AcceleratorError.FETCH_RESPONSE, address), 0)
                    return
                self._counts["FETCH_BEATS"] += sizes.descriptor_beats
                values["HEAD"] = (values["HEAD"] + 1) & _COUNT
                if self._execute(self.memory.data[address:end].tobytes()):
                    values["DONE"] = (values["DONE"] + 1) & _COUNT
                    if values["DONE"] == values["TAIL"]:
                        self._event("idle")

    def _execute(self, data):
        """One descriptor, of 64 bytes; False if it stopped the machine."""
        descriptor = Descriptor.decode(data)
        try:
            self._perform(descriptor)
        except _Stop as stop:
            self._stop(stop, descriptor.number)
            return False
        self._counts["DESCRIPTORS"] += 1
        self._values["DONE_NUMBER"] = descriptor.number
        if descriptor.has("interrupt"):
            self._event("command")
        return True

    def _perform(self, descriptor):
        command, sizes = descriptor.command, self.sizes
        if descriptor.flags & ~sum(DESCRIPTOR_FLAGS.values()) or descriptor.reserved:
            raise _Stop(AcceleratorError.FLAGS, descriptor.address)
        rows = rows_of(descriptor, sizes)
        if rows is not None:
            if not is_length(descriptor, rows):
                raise _Stop(AcceleratorError.LENGTH, descriptor.address)
            if (descriptor.address | rows.pitch) % 2:
                raise _Stop(AcceleratorError.ALIGNMENT, descriptor.address)
            if descriptor.address >> sizes.address_width:
                raise _Stop(AcceleratorError.ADDRESS, descriptor.address)
        code = check(command, sizes, self.core.state)
        if code != ErrorCode.NONE:
            self.core.execute([command])
            raise _Stop(AcceleratorError.REFUSED, descriptor.address, code)
        if command.opcode == Opcode.STORE:
            beats = self.core.execute([command]).store
            assert beats is not None
            self._store(rows, elements_of(command, Words(beats.values, beats.defined), sizes))
        else:
            self.core.execute([command], () if rows is None else beats_of(command, self._load(rows), sizes))

    def _load(self, rows):
        elements = np.zeros((rows.n_rows, rows.n_elements), np.uint16)
        for index, start in enumerate(rows.starts()):
            for first, end in self._pieces(start, rows.bytes, self.sizes.bus_bytes):
                if self.memory.fails(self.memory.read_faults, first, end):
                    raise _Stop(AcceleratorError.LOAD_RESPONSE, first)
                self._counts["READ_BEATS"] += 1
            elements[index] = np.frombuffer(self.memory.data[start : start + rows.bytes].tobytes(), "<u2")
        return elements

    def _store(self, rows, elements):
        for data, defined, start in zip(elements.data, elements.defined, rows.starts(), strict=True):
            n_bytes = 2 * len(data)
            for first, end in self._pieces(start, n_bytes, self.sizes.bus_bytes * self.sizes.most_beats):
                if self.memory.fails(self.memory.write_faults, max(first, start), min(end, start + n_bytes)):
                    beat = max(first, start) // self.sizes.bus_bytes * self.sizes.bus_bytes
                    raise _Stop(AcceleratorError.STORE_RESPONSE, beat)
                low, high = max(first, start), min(end, start + n_bytes)
                self._counts["WRITE_BEATS"] += -(-high // self.sizes.bus_bytes) - low // self.sizes.bus_bytes
            self.memory.data[start : start + n_bytes] = np.frombuffer(data.astype("<u2").tobytes(), np.uint8)
            self.memory.defined[start : start + n_bytes] = np.repeat(defined, 2)

    @staticmethod
    def _pieces(start, n_bytes, size):
        """The aligned pieces of ``size`` bytes that hold some bytes, ``(first, end)`` each."""
        first = start // size * size
        return [(at, at + size) for at in range(first, start + n_bytes, size)] if n_bytes else []
