"""SharedMemory: arbitrated memory with several readers and writers."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, connect

from golden.spec.parameters import Parameters, flag, integer
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.lib.stream import SkidBuffer
from hw.top.interfaces import ReadPort, address_width

__all__ = ["SharedMemory"]

_HELD = 2
"""Outstanding words of a reader: one in flight while another one is taken."""


@dataclass(frozen=True, kw_only=True)
class SharedMemoryParameters(Parameters):
    depth: int = integer(256, low=1, high=1 << 20, doc="words")
    width: int = integer(64, low=1, high=1 << 17, doc="bits of a word")
    part_width: int = integer(
        16, low=1, high=1 << 16, doc="bits that are written together, a memory bank each; the last ones may be fewer"
    )
    n_readers: int = integer(2, low=1, high=8, doc="read ports")
    n_writers: int = integer(2, low=1, high=8, doc="write ports")
    has_next: bool = flag(False, doc="whether parts of two neighbouring words can be written together")

    @property
    def address_width(self):
        return address_width(self.depth)

    @property
    def n_parts(self):
        """Parts of a word."""
        return -(-self.width // self.part_width)


class SharedMemory(Block):
    """Reads and writes a word a clock; fixed priority, the port with the lowest number first.

    ``readers`` get their words in order, from the next clock on; two words may be waiting to be taken. ``writers``
    send address, word and one enable for each part of it; with ``is_next`` the part is of the word after that. A read
    in the clock of a write of the same word is undefined.
    """

    Parameters = SharedMemoryParameters

    members_doc = {"readers": "reads that wait for each other", "writers": "parts of a word to write"}

    @staticmethod
    def members(p):
        write = {"address": p.address_width, "data": p.width, "enable": p.n_parts}
        if p.has_next:
            write["is_next"] = p.n_parts
        return {
            "readers": In(ReadPort(p.address_width, p.width)).array(p.n_readers),
            "writers": In(stream.Signature(data.StructLayout(write))).array(p.n_writers),
        }

    def circuit(self):
        m = Module()
        read_enable, read_address, word = self._read(m)
        write = self._write(m)
        following = Signal(self.parameters.address_width)
        if self.has_next:
            m.d.comb += following.eq(write.address + 1)
        for index in range(self.parameters.n_parts):
            part = slice(index * self.part_width, min((index + 1) * self.part_width, self.width))
            m.submodules[f"part_{index}"] = bank = MemoryBank(depth=self.depth, width=part.stop - part.start)
            m.d.comb += [
                bank.read_enable.eq(read_enable),
                bank.read_address.eq(read_address),
                word[part].eq(bank.read_data),
                bank.write_enable.eq(write.enable[index]),
                bank.write_address.eq(
                    Mux(write.is_next[index], following, write.address) if self.has_next else write.address
                ),
                bank.write_data.eq(write.data[part]),
            ]
        return m

    def _read(self, m):
        word = Signal(self.width)
        enable, address = 0, 0
        taken = 0  # by a port of a lower number
        for index, reader in enumerate(self.readers):
            ask, answer = reader.address, reader.word
            held = Signal(range(_HELD + 1), name=f"held_{index}")
            granted, arrives = Signal(name=f"granted_{index}"), Signal(name=f"arrives_{index}")
            m.submodules[f"first_{index}"] = first = SkidBuffer(width=len(word))
            m.submodules[f"second_{index}"] = second = SkidBuffer(width=len(word))
            connect(m, first.sink, second.source)
            m.d.comb += [
                ask.ready.eq((held != _HELD) & ~taken),
                granted.eq(ask.valid & ask.ready),
                first.source.valid.eq(arrives),
                first.source.payload.eq(word),
                answer.payload.eq(second.sink.payload),
                answer.valid.eq(second.sink.valid),
                second.sink.ready.eq(answer.ready),
            ]
            m.d.sync += [arrives.eq(granted), held.eq(held + granted - (answer.valid & answer.ready))]
            enable, address = enable | granted, Mux(granted, ask.payload, address)
            taken = taken | (ask.valid & (held != _HELD))
        read_enable, read_address = Signal(), Signal(self.parameters.address_width)
        m.d.comb += [read_enable.eq(enable), read_address.eq(address)]
        return read_enable, read_address, word

    def _write(self, m):
        ports = list(self.writers)
        chosen = Signal(ports[0].payload.shape())
        for port in reversed(ports):
            with m.If(port.valid):
                m.d.comb += chosen.eq(port.payload)
        free = 1
        for port in ports:
            m.d.comb += port.ready.eq(free)
            free = free & ~port.valid
        result = Signal(chosen.shape(), name="written")
        m.d.comb += [
            result.address.eq(chosen.address),
            result.data.eq(chosen.data),
            result.enable.eq(Mux(free, 0, chosen.enable)),
        ]
        if self.has_next:
            m.d.comb += result.is_next.eq(chosen.is_next)
        return result
