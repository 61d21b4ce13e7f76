"""Ready/valid stream helpers: register slice, skid buffer, FIFO, fork and join; throughput one beat a clock."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from golden.spec.parameters import Parameters, choice, integer
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.lib.pipeline import Pipeline

_MAX_WIDTH = 1 << 16


@dataclass(frozen=True, kw_only=True)
class BeatParameters(Parameters):
    width: int = integer(16, low=1, high=_MAX_WIDTH, doc="bits of the payload")


def _one_to_one(p):
    return {"source": In(stream.Signature(p.width)), "sink": Out(stream.Signature(p.width))}


_ONE_TO_ONE_DOC = {"source": "beats to pass on", "sink": "the same beats in the same order"}


class RegisterSlice(Block):
    """Forward register slice: cuts every path from ``source`` to ``sink`` except that of ready.

    Latency 1; ``source.ready`` follows ``sink.ready`` combinationally.
    """

    Parameters = BeatParameters
    members_doc = _ONE_TO_ONE_DOC
    latency = 1

    members = staticmethod(_one_to_one)

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, source=self.source, sink=self.sink)
        pipe.valid_chain(1)
        m.d.comb += self.sink.payload.eq(pipe.register(self.source.payload, name="beat"))
        return m


class SkidBuffer(Block):
    """Skid buffer: ``source.ready`` comes from a register, and one beat is buffered when the sink stalls.

    Latency 0; payload and valid pass combinationally.
    """

    Parameters = BeatParameters
    members_doc = _ONE_TO_ONE_DOC
    latency = 0

    members = staticmethod(_one_to_one)

    def circuit(self):
        m = Module()
        is_full = Signal()
        waiting = Signal(self.width, reset_less=True)
        m.d.comb += [
            self.source.ready.eq(~is_full),
            self.sink.valid.eq(self.source.valid | is_full),
            self.sink.payload.eq(Mux(is_full, waiting, self.source.payload)),
        ]
        m.d.sync += is_full.eq(self.sink.valid & ~self.sink.ready)
        with m.If(~is_full):
            m.d.sync += waiting.eq(self.source.payload)
        return m


@dataclass(frozen=True, kw_only=True)
class QueueParameters(BeatParameters):
    depth: int = integer(2, low=1, high=1 << 20, doc="beats held")
    storage: str = choice("registers", "registers", "memory", doc="registers that shift, or a memory")

    def check(self):
        if self.storage == "memory" and self.depth < 3:
            self.refuse("depth", "at least 3 where the storage is a memory, one for the output and two in flight")


class StreamQueue(Block):
    """FIFO for ``depth`` beats.

    Latency 1 with registers, 2 with a memory. ``source.ready`` comes from registers only, except at depth 1, where a
    full queue takes a beat in the clock in which it gives one, so that ``source.ready`` follows ``sink.ready``
    combinationally.
    """

    Parameters = QueueParameters
    members_doc = _ONE_TO_ONE_DOC

    members = staticmethod(_one_to_one)

    @property
    def latency(self):
        """Clocks from an accepted beat to its valid output, in an empty queue."""
        return 1 if self.storage == "registers" else 2

    def circuit(self):
        m = Module()
        level = Signal(range(self.depth + 1))
        push = Signal()
        pop = Signal()
        m.d.comb += [
            push.eq(self.source.valid & self.source.ready),
            pop.eq(self.sink.valid & self.sink.ready),
            self.source.ready.eq((level != self.depth) | (pop if self.depth == 1 else 0)),
        ]
        m.d.sync += level.eq(level + push - pop)
        if self.storage == "registers":
            self._shift_registers(m, level, push, pop)
        else:
            self._memory(m, level, push, pop)
        return m

    def _shift_registers(self, m, level, push, pop):
        """The beats are at the bottom; a pop shifts the others down."""
        beats = [Signal(self.width, name=f"beat_{i}", reset_less=True) for i in range(self.depth)]
        free = Signal(range(self.depth + 1))
        m.d.comb += [free.eq(level - pop), self.sink.valid.eq(level != 0), self.sink.payload.eq(beats[0])]
        for i, beat in enumerate(beats):
            enters = Signal(name=f"enters_{i}")
            m.d.comb += enters.eq(push & (free == i))
            beat_above = beats[i + 1] if i + 1 < self.depth else self.source.payload
            with m.If(enters | pop):
                m.d.sync += beat.eq(Mux(enters, self.source.payload, beat_above))

    def _memory(self, m, level, push, pop):
        """A ring of depth - 1 words; the memory's read register is the output slot."""
        words = self.depth - 1
        m.submodules.ring = ring = MemoryBank(depth=words, width=self.width)
        in_ring = Signal(range(self.depth + 1))
        offered = Signal()
        fetch = Signal()
        m.d.comb += [
            in_ring.eq(level - offered),
            # Only words written in earlier clocks are read: no read and write of one word in the same clock.
            fetch.eq((in_ring != 0) & (~offered | self.sink.ready)),
            ring.write_enable.eq(push),
            ring.write_data.eq(self.source.payload),
            ring.read_enable.eq(fetch),
            self.sink.valid.eq(offered),
            self.sink.payload.eq(ring.read_data),
        ]
        m.d.sync += offered.eq(fetch | (offered & ~pop))
        for advance, address in ((push, ring.write_address), (fetch, ring.read_address)):
            pointer = Signal(range(words), name="write_pointer" if advance is push else "read_pointer")
            m.d.comb += address.eq(pointer)
            with m.If(advance):
                m.d.sync += pointer.eq(Mux(pointer == words - 1, 0, pointer + 1))


@dataclass(frozen=True, kw_only=True)
class ForkParameters(BeatParameters):
    n: int = integer(2, low=1, high=1024, doc="outputs")


class StreamFork(Block):
    """Broadcasts every beat to n outputs, which accept it independently; the beat is done when all have accepted it.

    Latency 0; ``source.ready`` follows the outputs' ready combinationally.
    """

    Parameters = ForkParameters
    members_doc = {"source": "beats to pass on", "sink": "n streams, each with all beats"}
    latency = 0

    @staticmethod
    def members(p):
        return {"source": In(stream.Signature(p.width)), "sink": Out(stream.Signature(p.width)).array(p.n)}

    def circuit(self):
        m = Module()
        served = Signal(self.n)
        ready = Signal(self.n)
        for i, sink in enumerate(self.sink):
            m.d.comb += [
                sink.payload.eq(self.source.payload),
                sink.valid.eq(self.source.valid & ~served[i]),
                ready[i].eq(sink.ready),
            ]
        satisfied = Signal(self.n)
        m.d.comb += [satisfied.eq(served | ready), self.source.ready.eq(satisfied.all())]
        with m.If(self.source.valid):
            m.d.sync += served.eq(Mux(self.source.ready, 0, satisfied))
        return m


@dataclass(frozen=True, kw_only=True)
class JoinParameters(BeatParameters):
    n: int = integer(2, low=1, high=1024, doc="inputs")


class StreamJoin(Block):
    """Joins one beat of each of n inputs to one output beat, input 0 in the lowest bits.

    Combinational; the inputs' ready follows every valid and ``sink.ready``.
    """

    Parameters = JoinParameters
    members_doc = {"source": "n streams", "sink": "their beats side by side"}
    latency = 0

    @staticmethod
    def members(p):
        return {"source": In(stream.Signature(p.width)).array(p.n), "sink": Out(stream.Signature(p.n * p.width))}

    def circuit(self):
        m = Module()
        m.d.comb += [
            self.sink.payload.eq(Cat(source.payload for source in self.source)),
            self.sink.valid.eq(Cat(source.valid for source in self.source).all()),
        ]
        for source in self.source:
            m.d.comb += source.ready.eq(self.sink.valid & self.sink.ready)
        return m
