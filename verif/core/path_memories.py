"""The memories beside a path of the core, in Python: words come late, writes wait, what was never written is X."""

from collections import deque

from cocotb.types import LogicArray

from verif.bench.endpoints import StallPattern, word
from verif.bench.port_bits import decode, width_of, word_text

__all__ = ["ArbitratedReads", "MemoryReadPort", "Direct", "WriteMonitor", "WriteStream"]

_UNDER_WAY = 3
"""Words that a memory with random latency may have pending."""
_LATEST = 4


def _set(handle, text):
    handle.value = LogicArray(text)


class MemoryReadPort:
    """A pair of streams: addresses, and the words in the same order, from the next clock on."""

    role = "reads"

    def __init__(self, testbench, name, port):
        self.name, self._testbench = name, testbench
        self._width = width_of(testbench.shapes[f"{port}__word"])
        self._address, self._answer = (
            [getattr(testbench.dut, f"{port}__{stream}__{part}") for part in ("payload", "valid", "ready")]
            for stream in ("address", "word")
        )
        self.start("none", None)

    def start(self, pattern, allowed):
        self._stall, self._late = StallPattern(pattern, self._testbench.random), pattern != "none"
        self._allowed, self._reads = allowed, 0
        self._pending = deque()  # (clock from which on it is there, word)
        self._offered = False

    def drive(self, cycle):
        self._is_ready = len(self._pending) < _UNDER_WAY and not self._stall.stalls()
        self._address[2].value = int(self._is_ready)
        self._offered = bool(self._pending) and (self._offered or self._pending[0][0] <= cycle)
        _set(self._answer[0], word_text(self._pending[0][1] if self._offered else None, self._width))
        self._answer[1].value = int(self._offered)

    def sample(self, cycle):
        if self._offered and self._testbench.bit(self._answer[2], f"{self.name}: ready"):
            self._pending.popleft()
            self._offered = False
        if self._testbench.bit(self._address[1], f"{self.name}: valid of an address") and self._is_ready:
            address = word(self._address[0])
            self._testbench.check_read(self.name, self._reads, self._allowed)
            self._reads += 1
            delay = self._testbench.random.randint(1, _LATEST) if self._late else 1
            self._pending.append((cycle + delay, self._testbench.read(self.name, 0, address)))


class Direct:
    """A memory of one or more banks that is read at once: the word is there in the next clock, and stays."""

    role = "reads"

    def __init__(self, testbench, name, port):
        self.name, self._testbench = name, testbench
        self._shape = testbench.shapes[f"{port}__address"]
        word = testbench.shapes[f"{port}__word"]
        self._width, self._words = width_of(word.elem_shape), [None] * word.length
        self._enable, self._address, self._answer = (
            getattr(testbench.dut, f"{port}__{part}") for part in ("enable", "address", "word")
        )
        self.start("none", None)

    def start(self, pattern, allowed):
        self._allowed = allowed
        self._reads = [0] * len(self._words)

    def drive(self, cycle):
        _set(self._answer, "".join(word_text(value, self._width) for value in reversed(self._words)))

    def _takes(self, bank):
        return True

    def sample(self, cycle):
        asked = word(self._enable)
        bits = [None if asked is None else asked >> bank & 1 for bank in range(len(self._words))]
        addresses = decode(self._shape, str(self._address.value))
        for bank, (enable, address) in enumerate(zip(bits, addresses, strict=True)):
            if enable is None:
                self._testbench.report(f"{self.name}: the enable of a read is X in cycle {cycle}")
            elif enable and self._takes(bank):
                allowed = self._allowed and self._allowed[bank]
                self._testbench.check_read(f"{self.name} {bank}", self._reads[bank], allowed)
                self._reads[bank] += 1
                self._words[bank] = self._testbench.read(self.name, bank, address)


class ArbitratedReads(Direct):
    """The same where a bank takes a read only now and then, and its word is there in the next clock only."""

    def __init__(self, testbench, name, port):
        self._ready_port = getattr(testbench.dut, f"{port}__ready")
        super().__init__(testbench, name, port)

    def start(self, pattern, allowed):
        super().start(pattern, allowed)
        self._stalls = [StallPattern(pattern, self._testbench.random) for _ in self._words]
        self._is_ready = [False] * len(self._words)

    def drive(self, cycle):
        super().drive(cycle)
        self._is_ready = [not pattern.stalls() for pattern in self._stalls]
        self._ready_port.value = sum(ready << bank for bank, ready in enumerate(self._is_ready))
        self._words = [None] * len(self._words)

    def _takes(self, bank):
        return self._is_ready[bank]


class WriteStream:
    """Takes writes now and then; ``split`` turns a payload into ``(part, address, value)`` triples."""

    role = "writes"

    def __init__(self, testbench, name, port, split):
        self.name, self._testbench, self._shape, self._split = name, testbench, testbench.shapes[port], split
        self._payload, self._valid, self._ready = (
            getattr(testbench.dut, f"{port}__{part}") for part in ("payload", "valid", "ready")
        )
        self.start("none", None)

    def start(self, pattern, allowed):
        self._stall = StallPattern(pattern, self._testbench.random)
        self._waiting = None
        self.stalls = 0

    def drive(self, cycle):
        self._is_ready = not self._stall.stalls()
        self._ready.value = int(self._is_ready)

    def sample(self, cycle):
        if not self._testbench.bit(self._valid, f"{self.name}: valid of a write"):
            if self._waiting is not None:
                self._testbench.report(f"{self.name}: valid fell in cycle {cycle} though the write was not taken")
            self._waiting = None
            return
        text = str(self._payload.value)
        if self._waiting not in (None, text):
            self._testbench.report(f"{self.name}: the write changed while it waited, in cycle {cycle}")
        self._waiting = None if self._is_ready else text
        if not self._is_ready:
            self.stalls += 1
            return
        for part, address, value in self._split(decode(self._shape, text)):
            self._testbench.wrote(self.name, part, address, value)


class WriteMonitor:
    """Writes without ready, one a bank: fields valid, address and value."""

    role = "writes"

    def __init__(self, testbench, name, port):
        self.name, self._testbench, self._shape = name, testbench, testbench.shapes[port]
        self._port = getattr(testbench.dut, port)

    def start(self, pattern, allowed):
        pass

    def drive(self, cycle):
        pass

    def sample(self, cycle):
        writes = decode(self._shape, str(self._port.value))
        for bank, write in enumerate(writes):
            if write["valid"] is None:
                self._testbench.report(f"{self.name}: the enable of a write is X in cycle {cycle}")
            elif write["valid"]:
                self._testbench.wrote(self.name, bank, write["address"], write["value"])
