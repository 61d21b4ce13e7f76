"""Software, as an endpoint: a list of steps on the registers, the memory and the interrupt."""

from collections import deque
from typing import NamedTuple

from golden.spec.accelerator.registers import register
from verif.bench.endpoints import Source, StallPattern, StreamMonitor, word

__all__ = ["STEPS", "AtLeast", "Expect", "ExpectInterrupt", "Faults", "Host", "Place", "Poll", "Write"]


class Write(NamedTuple):
    """Write a register."""

    name: str
    value: int
    index: int = 0
    response: int = 0


class Poll(NamedTuple):
    """Read a register until the bits of ``mask`` are ``value``."""

    name: str
    value: int
    mask: int = 0xFFFFFFFF


class Expect(NamedTuple):
    """Read a register once; the bits of ``mask`` must be ``value``."""

    name: str
    value: int
    mask: int = 0xFFFFFFFF


class ExpectInterrupt(NamedTuple):
    """The interrupt must be this."""

    value: int


class AtLeast(NamedTuple):
    """Read a register until it is this or has passed it: it counts upwards."""

    name: str
    value: int


class Place(NamedTuple):
    """Put bytes into memory, as hexadecimal text."""

    address: int
    data: str


class Faults(NamedTuple):
    """From now on reads (or writes) of these addresses, ``(first, end)``, are errors."""

    kind: str
    ranges: tuple


STEPS = {step.__name__: step for step in (Write, Poll, Expect, AtLeast, ExpectInterrupt, Place, Faults)}


class _Channel(Source):
    """A channel of AXI4-Lite that software drives: a source of ``{port: value}``."""

    def __init__(self, dut, name, fields):
        self._ports = [getattr(dut, f"s_axi_{name}{field}") for field in fields]
        super().__init__(_Renamed(dut, name), name)

    def drive(self, cycle):
        was_offered = self._offered
        super().drive(cycle)
        if self._offered and not was_offered:
            for port, value in zip(self._ports, self._beats[0], strict=True):
                port.value = value


class _Renamed:
    """A channel's valid and ready under the names of a stream."""

    def __init__(self, dut, name):
        for signal in ("valid", "ready"):
            setattr(self, f"{name}__{signal}", getattr(dut, f"s_axi_{name}{signal}"))


class _Answers(StreamMonitor):
    def __init__(self, dut, name, fields, report):
        super().__init__(_Renamed(dut, name), name, report)
        self._ports = [getattr(dut, f"s_axi_{name}{field}") for field in fields]

    def _value(self):
        return tuple(word(port) for port in self._ports)


class Host:
    """Executes steps in order; ``checked`` counts what was compared."""

    name = "host"

    def __init__(self, dut, memory, report, rng):
        self._memory = memory
        self._report, self._rng, self._interrupt = report, rng, dut.interrupt
        self._sent = {name: _Channel(dut, name, fields) for name, fields in _SENT.items()}
        self._answers = {"b": _Answers(dut, "b", ("resp",), report), "r": _Answers(dut, "r", ("data", "resp"), report)}
        self._pattern, self.checked = "none", 0
        self.reset()

    def reset(self):
        """Forget all steps."""
        self._steps, self._waits_for = deque(), None
        for channel in self._sent.values():
            channel.abort()
        for channel in self._answers.values():
            channel.start(None)

    def start(self, steps, pattern):
        """Begin with steps, channels stalling by a pattern."""
        self._steps, self._pattern = deque(steps), pattern
        for channel in self._answers.values():
            channel.start(StallPattern(pattern, self._rng))

    @property
    def done(self):
        return not self._steps and self._waits_for is None

    @property
    def n_left(self):
        """Steps that are not done."""
        return len(self._steps)

    @property
    def waits_at(self):
        """The step that is not done."""
        return self._steps[0] if self._steps else None

    def _send(self, name, *values):
        self._sent[name].start([values], StallPattern(self._pattern, self._rng))

    def _begin(self):
        """The next step: one that needs the bus, or one that is done at once."""
        step = self._steps[0]
        if isinstance(step, Place):
            data = bytes.fromhex(step.data)
            self._memory.data[step.address : step.address + len(data)] = data
        elif isinstance(step, Faults):
            setattr(self._memory, f"{step.kind}_faults", list(step.ranges))
        elif isinstance(step, ExpectInterrupt):
            self.checked += 1
            if word(self._interrupt) != step.value:
                self._report(f"the interrupt is {word(self._interrupt)}, expected {step.value}")
        elif isinstance(step, Write):
            self._send("aw", register(step.name).offset + 4 * step.index, 0)
            self._send("w", step.value, 15)
            self._waits_for = "b"
            return
        else:
            self._send("ar", register(step.name).offset, 0)
            self._waits_for = "r"
            return
        self._steps.popleft()

    def drive(self, cycle):
        while self._steps and self._waits_for is None:
            self._begin()
        for channel in (*self._sent.values(), *self._answers.values()):
            channel.drive(cycle)

    def sample(self, cycle):
        for channel in self._sent.values():
            channel.sample(cycle)
        for name, channel in self._answers.items():
            if channel.sample(cycle):
                if name != self._waits_for:
                    self._report(f"an answer on channel {name} that nobody waits for")
                else:
                    self._answered(channel.beats.pop())
        return False

    def _answered(self, beat):
        step, self._waits_for = self._steps[0], None
        if isinstance(step, Write):
            if beat[0] != step.response:
                self._report(f"the write of {step.name} was answered with {beat[0]}, expected {step.response}")
        else:
            value, response = beat
            if isinstance(step, AtLeast):
                if value is not None and (value - step.value) & 0xFFFFFFFF < 1 << 31:
                    self._steps.popleft()
                return
            is_met = response == 0 and value is not None and value & step.mask == step.value & step.mask
            if isinstance(step, Poll) and not is_met and response == 0:
                return
            self.checked += 1
            if not is_met:
                shown = "X" if value is None else f"{value:#x}"
                self._report(f"{step.name} is {shown}, expected {step.value:#x} under {step.mask:#x}")
        self._steps.popleft()


_SENT = {"aw": ("addr", "prot"), "w": ("data", "strb"), "ar": ("addr", "prot")}
