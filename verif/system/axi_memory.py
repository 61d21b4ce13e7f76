"""A memory on the accelerator's bus, as an endpoint: latency, back-pressure, faults, and AXI's rules as checks."""

from collections import deque

from golden.spec.accelerator.parameters import PAGE_BYTES
from verif.bench.endpoints import StallPattern, word

__all__ = ["AxiMemory"]

_REQUEST = ("id", "addr", "len", "size", "burst")


class _Channel:
    """A channel that the accelerator drives: ready by a pattern; valid and payload must be stable."""

    def __init__(self, dut, name, fields, report):
        self.name, self._report = name, report
        self._fields = [getattr(dut, f"m_axi_{name}{field}") for field in fields]
        self._valid, self._ready = getattr(dut, f"m_axi_{name}valid"), getattr(dut, f"m_axi_{name}ready")
        self._ready.value = self._driven = 0
        self.waiting = None

    def drive(self, is_ready):
        if is_ready != self._driven:
            self._ready.value = self._driven = int(is_ready)

    def sample(self, cycle):
        """The fields, as text of bits, if a beat moves at the coming edge."""
        valid = word(self._valid)
        if not valid:
            if self.waiting is not None or valid is None:
                self._report(f"{self.name}: valid fell or is X in cycle {cycle}")
            self.waiting = None
            return None
        beat = [str(handle.value) for handle in self._fields]
        if self.waiting not in (None, beat):
            self._report(f"{self.name}: payload changed while stalled in cycle {cycle}")
        self.waiting = None if self._driven else beat
        return beat if self._driven else None

    @property
    def is_valid(self):
        return word(self._valid) == 1


class AxiMemory:
    """``data`` are its bytes; an access beyond them, or to one of the faults ``(first, end)``, is an error.

    ``latency``: clocks from a request to the first beat of its answer, ``(least, most)``. Beats of the two identifiers
    of reads are mixed at random. ``pattern`` is that of the ready signals and of gaps between beats. Bits that are X
    become 0 in memory.
    """

    name = "memory"

    def __init__(self, dut, sizes, report, rng, data):
        self.data, self.read_faults, self.write_faults = data, [], []
        self.latency, self._sizes, self._report, self._rng = (1, 4), sizes, report, rng
        self._aw = _Channel(dut, "aw", _REQUEST, report)
        self._ar = _Channel(dut, "ar", _REQUEST, report)
        self._w = _Channel(dut, "w", ("data", "strb", "last"), report)
        self._r = {name: getattr(dut, f"m_axi_r{name}") for name in ("valid", "ready", "id", "data", "resp", "last")}
        self._b = {name: getattr(dut, f"m_axi_b{name}") for name in ("valid", "ready", "id", "resp")}
        self.stalls = 0
        self.set_pattern("none")
        self.reset()

    def set_pattern(self, pattern):
        """How often channels stall."""
        self._patterns = {name: StallPattern(pattern, self._rng) for name in ("aw", "w", "ar", "r", "b")}

    def reset(self):
        """The bus is reset with the accelerator."""
        self._reads = {0: deque(), 1: deque()}
        self._writes, self._beats, self._answers = deque(), deque(), deque()
        self._beat = self._answer = None
        self._r["valid"].value = self._b["valid"].value = 0
        for channel in (self._aw, self._ar, self._w):
            channel.drive(False)
            channel.waiting = None
        self.read_at, self.n_written, self.most_reads = [], 0, 0

    @property
    def done(self):
        return not (
            any(self._reads.values()) or self._writes or self._beats or self._answers or self._beat or self._answer
        )

    def _stalls(self, name):
        is_stalled = self._patterns[name].stalls()
        self.stalls += is_stalled
        return is_stalled

    def drive(self, cycle):
        for name, channel in (("aw", self._aw), ("ar", self._ar), ("w", self._w)):
            channel.drive(not self._stalls(name))
        if self._beat is None and not self._stalls("r"):
            ready = [one for one, queue in self._reads.items() if queue and queue[0]["at"] <= cycle]
            if ready:
                self._offer(self._rng.choice(ready))
        if self._answer is None and self._answers and self._answers[0][0] <= cycle and not self._stalls("b"):
            self._answer = self._answers.popleft()
            self._b["resp"].value, self._b["id"].value = self._answer[1], 0
            self._b["valid"].value = 1

    def _offer(self, identifier):
        """Drive the next beat of the oldest read of an identifier."""
        read = self._reads[identifier][0]
        first, n_bytes = read["addr"], 1 << read["size"]
        value = int.from_bytes(self.data[first : first + n_bytes], "little") << 8 * (first % self._sizes.bus_bytes)
        self._r["data"].value = value & ((1 << self._sizes.data_width) - 1)
        self._r["resp"].value = self._response(self.read_faults, first, first + n_bytes)
        self._r["id"].value = identifier
        self._r["last"].value = int(read["left"] == 1)
        self._r["valid"].value = 1
        self._beat = identifier

    def _response(self, faults, first, end):
        fails = end > len(self.data) or any(low < end and first < high for low, high in faults)
        return self._rng.choice((2, 3)) if fails else 0

    def sample(self, cycle):
        request = self._ar.sample(cycle)
        if request:
            read = self._request("read", request)
            self._reads[read["id"] & 1].append(read | {"at": cycle + self._rng.randint(*self.latency)})
            self.most_reads = max(self.most_reads, len(self._reads[1]))
        request = self._aw.sample(cycle)
        if request:
            self._writes.append(self._request("write", request))
        beat = self._w.sample(cycle)
        if beat:
            if not self._writes and not self._aw.is_valid:
                self._report(f"a write beat came before its request in cycle {cycle}")
            self._beats.append(beat)
        self._write(cycle)
        if self._beat is not None and word(self._r["ready"]) == 1:
            self._next_beat(cycle)
        if self._answer is not None and word(self._b["ready"]) == 1:
            self._answer = None
            self._b["valid"].value = 0
        return bool(request or beat or self._beat is not None)

    def _request(self, kind, texts):
        fields = dict(zip(_REQUEST, (int(text, 2) for text in texts), strict=True))
        first, n_beats, n_bytes = fields["addr"], fields["len"] + 1, 1 << fields["size"]
        is_descriptor = kind == "read" and fields["id"] == 0
        wanted = min(64, self._sizes.bus_bytes) if is_descriptor else self._sizes.bus_bytes
        problems = {
            "is no INCR": fields["burst"] != 1,
            "has the wrong size": n_bytes != wanted,
            "begins within a beat": first % n_bytes != 0,
            "crosses 4 KiB": first // PAGE_BYTES != (first + n_beats * n_bytes - 1) // PAGE_BYTES,
            "is too long": n_beats > (self._sizes.descriptor_beats if is_descriptor else self._sizes.burst_beats),
            "has an unknown identifier": fields["id"] > (1 if kind == "read" else 0),
        }
        for problem, is_so in problems.items():
            if is_so:
                self._report(f"a {kind} burst {problem}: {fields}")
        return fields | {"left": n_beats}

    def _next_beat(self, cycle):
        queue = self._reads[self._beat]
        if self._beat:
            self.read_at.append(cycle)
        queue[0]["left"] -= 1
        queue[0]["addr"] += 1 << queue[0]["size"]
        if not queue[0]["left"]:
            queue.popleft()
        self._beat = None
        self._r["valid"].value = 0

    def _write(self, cycle):
        """Complete the oldest write if all its beats are here."""
        if not self._writes or len(self._beats) < self._writes[0]["left"]:
            return
        write = self._writes.popleft()
        beats = [self._beats.popleft() for _ in range(write["left"])]
        if [beat[2] for beat in beats] != ["0"] * (len(beats) - 1) + ["1"]:
            self._report(f"wlast is not with the last of {len(beats)} beats")
        changes = {}
        for index, (data, strobes, _) in enumerate(beats):
            at = write["addr"] + index * self._sizes.bus_bytes
            if "1" not in strobes or "01" in strobes.strip("0"):
                self._report(f"strobes {strobes} of the beat at {at:#x} are not one run")
            for lane, strobe in enumerate(reversed(strobes)):
                if strobe == "1":
                    text = data[len(data) - 8 * lane - 8 : len(data) - 8 * lane]
                    changes[at + lane] = int("".join(bit if bit == "1" else "0" for bit in text), 2)
        self.n_written += len(beats)
        response = self._response(self.write_faults, min(changes), max(changes) + 1)
        if not response:
            for at, value in changes.items():
                self.data[at] = value
        self._answers.append((cycle + self._rng.randint(*self.latency), response))
