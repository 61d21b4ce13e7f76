"""The endpoints of streams and plain ports; :class:`verif.bench.clock.Clock` moves them."""

import random
from collections import deque
from typing import NamedTuple

PATTERNS = ("none", "random", "bursty")


class StallPattern:
    """Decides each cycle whether a source idles or a sink stalls: never, at random, in long runs, or mostly (rare)."""

    def __init__(self, pattern, rng):
        self.pattern, self._rng = pattern, rng
        self._is_stalled, self._left = False, 0

    def stalls(self):
        if self.pattern == "none":
            return False
        if self.pattern in ("random", "rare"):
            return self._rng.random() < (0.4 if self.pattern == "random" else 0.9)
        if not self._left:
            self._is_stalled = not self._is_stalled
            self._left = self._rng.randint(1, 24)
        self._left -= 1
        return self._is_stalled


def word(handle):
    """The value of a port, or ``None`` if any bit of it is X or Z."""
    try:
        return int(str(handle.value), 2)
    except ValueError:
        return None


class MaskedWord(NamedTuple):
    """An expected beat of which only the bits of ``care`` are defined; the others may be X."""

    value: int
    care: int

    def met_by(self, text):
        """Whether the bits of a port, as text from the highest one on, are as expected."""
        known = int("".join(bit if bit in "01" else "0" for bit in text), 2)
        unknown = int("".join("0" if bit in "01" else "1" for bit in text), 2)
        return (known ^ self.value) & self.care == 0 and unknown & self.care == 0


class Source:
    """Drives one input stream; valid and payload are stable until a beat is taken; else the payload is noise."""

    def __init__(self, dut, name):
        self.name = name
        self._payload = getattr(dut, f"{name}__payload", None)  # a stream may carry nothing but its beats
        self._valid = getattr(dut, f"{name}__valid")
        self._ready = getattr(dut, f"{name}__ready")
        self._noise = random.Random(name)
        self._is_idle = False
        self.start([])
        self._idle()

    def _idle(self):
        """Nothing is offered; the noise changes once after each beat."""
        if self._is_idle:
            return
        self._is_idle = True
        self._valid.value = 0
        if self._payload is not None:
            self._payload.value = self._noise.getrandbits(len(self._payload))

    def start(self, beats, idle=None, after=()):
        """Begin to send beats, with a :class:`StallPattern` or None (never idle), after other sources are done."""
        self._beats, self._idle_pattern, self._after = deque(beats), idle, after
        self._offered = False
        self.taken_at = []
        self.idles = self.waits = 0

    @property
    def done(self):
        return not self._beats and not self._offered

    @property
    def offers(self):
        """Whether a beat waits to be taken."""
        return self._offered

    def drive(self, cycle):
        if self._offered:
            return
        if not all(other.done for other in self._after):
            self._idle()
            return
        if self._beats and not (self._idle_pattern and self._idle_pattern.stalls()):
            if self._payload is not None:
                self._payload.value = self._beats[0]
            self._valid.value = 1
            self._offered, self._is_idle = True, False
        else:
            self.idles += bool(self._beats)
            self._idle()

    def sample(self, cycle):
        """True if a beat moves at the coming edge."""
        if not self._offered:
            return False
        if word(self._ready) != 1:
            self.waits += 1
            return False
        self._beats.popleft()
        self._offered = False
        self.taken_at.append(cycle)
        return True

    def offer_anything(self, rng):
        """Drive any payload, valid or not, that nobody may take."""
        if self._payload is not None:
            self._payload.value = rng.getrandbits(len(self._payload))
        self._valid.value = rng.randint(0, 1)
        self._is_idle = False

    def abort(self):
        """Forget everything, as reset does."""
        self.start([])
        self._idle()


class StreamMonitor:
    """Takes one output stream, checks valid, ready and the stability of payloads, and records what it takes and when.

    ``read`` makes a value of the payload's port.
    """

    def __init__(self, dut, name, report, read=word):
        self.name, self._report, self._read = name, report, read
        self._payload = getattr(dut, f"{name}__payload", None)
        self._valid = getattr(dut, f"{name}__valid")
        self._ready = getattr(dut, f"{name}__ready", None)  # absent where every beat must be taken
        self._begin(None)
        if self._ready is not None:
            self._ready.value = self._driven = 0

    def _begin(self, stall):
        self._stall = stall
        self._is_ready, self._waiting = False, None
        self.beats, self.seen_at = [], []
        self.stalls = 0

    def start(self, stall=None):
        """Forget what was taken; from now on stall by a :class:`StallPattern`, or never (None)."""
        self._begin(stall)

    @property
    def is_stalled(self):
        """Whether a beat was valid in the last clock and not taken."""
        return self._waiting is not None

    def drive(self, cycle):
        self._is_ready = self._ready is None or self._stall is None or not self._stall.stalls()
        # A write takes as long as all else in a clock.
        if self._ready is not None and self._is_ready != self._driven:
            self._ready.value = self._driven = int(self._is_ready)

    def sample(self, cycle):
        """True if a beat moves at the coming edge."""
        valid = word(self._valid)
        if valid is None:
            self._report(f"{self.name}: valid is X in cycle {cycle}")
            return False
        if not valid:
            if self._waiting is not None:
                self._report(f"{self.name}: valid fell in cycle {cycle} though the beat was not taken")
                self._waiting = None
            return False
        payload = self._value()
        if self._waiting is not None and payload != self._waiting[0]:
            self._report(f"{self.name}: payload changed while stalled in cycle {cycle}")
        if not self._is_ready:
            self.stalls += 1
            self._waiting = (payload,)
            return False
        self._waiting = None
        self._take(payload, cycle)
        return True

    def _value(self):
        return 0 if self._payload is None else self._read(self._payload)

    def _take(self, payload, cycle):
        self.beats.append(payload)
        self.seen_at.append(cycle)


class Sink(StreamMonitor):
    """A stream monitor that compares every beat with the expected one."""

    def __init__(self, dut, name, report):
        self._expected = deque()
        super().__init__(dut, name, report)
        self.checked = 0
        self.start([])

    def start(self, expected, stall=None):
        """Begin to expect beats, with a :class:`StallPattern` or None (never stall)."""
        self._begin(stall)
        self._expected = deque(expected)
        self.compare = True

    @property
    def done(self):
        return not self._expected

    def _value(self):
        """The payload, as text where only a part of it is defined."""
        is_masked = self._expected and isinstance(self._expected[0], MaskedWord)
        return str(self._payload.value) if is_masked else super()._value()

    def _take(self, payload, cycle):
        if not self.compare:
            return
        self.seen_at.append(cycle)
        if not self._expected:
            self._report(f"{self.name}: a beat too many in cycle {cycle}")
            return
        expected = self._expected.popleft()
        self.checked += 1
        number = len(self.seen_at) - 1
        if isinstance(expected, MaskedWord):
            if not expected.met_by(payload):
                width = len(payload)
                self._report(
                    f"{self.name}: beat {number} is {payload}, expected {expected.value:0{width}b} "
                    f"where {expected.care:0{width}b}"
                )
        elif payload != expected:
            shown = "X" if payload is None else f"{payload:#x}"
            self._report(f"{self.name}: beat {number} is {shown}, expected {expected:#x}")

    def check_quiet(self, when):
        """Report an output that is valid although nothing is under way."""
        if word(self._valid) != 0:
            self._report(f"{self.name}: valid is not 0 {when}")


class Probe:
    """Records a plain output port in every clock."""

    def __init__(self, dut, name):
        self._port = getattr(dut, name)
        self.values = []

    def drive(self, cycle):
        pass

    def sample(self, cycle):
        self.values.append(word(self._port))
        return False


def set_ports(dut, values):
    """Drive plain input ports, ``{name: value}``."""
    for name, value in values.items():
        getattr(dut, name).value = value
