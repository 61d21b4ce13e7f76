"""The memory wrapper: the only place in the project that instantiates memories."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.parameters import Parameters, choice, integer
from hw.lib.block import Block


@dataclass(frozen=True, kw_only=True)
class MemoryBankParameters(Parameters):
    depth: int = integer(256, low=1, high=1 << 24, doc="words")
    width: int = integer(16, low=1, high=1 << 16, doc="bits a word")
    ports: str = choice("read_write", "single", "read_write", doc="one shared port, or one read and one write port")
    read_during_write: str = choice(
        "undefined", "old", "new", "undefined", doc="what a read of the word written in the same clock returns"
    )
    granularity: int | None = integer(
        None, low=1, high=1 << 16, doc="bits that a write enable stands for; by default the whole width"
    )

    @property
    def n_enables(self):
        """Write enables: parts of a word that can be written alone."""
        return self.width // (self.granularity or self.width)

    def check(self):
        if self.granularity is not None and self.width % self.granularity:
            self.refuse("granularity", f"a divisor of width={self.width}")
        if self.ports == "single" and self.read_during_write != "undefined":
            self.refuse("read_during_write", "undefined for a single port, which reads or writes but never both")


_READ_WRITE_DOC = {
    "write_enable": "write write_data to write_address at this clock edge; a bit for each part of the word",
    "write_address": "word to write, below depth",
    "write_data": "data to write",
    "read_enable": "read read_address at this clock edge; without it read_data holds",
    "read_address": "word to read, below depth",
    "read_data": "the word read at the last clock edge with read_enable",
}
_SINGLE_DOC = {
    "write_enable": "write write_data to address at this clock edge; a bit for each part of the word",
    "read_enable": "read address at this clock edge; without it read_data holds",
    "address": "word to read or write, below depth",
    "write_data": "data to write",
    "read_data": "the word read at the last clock edge with read_enable; undefined after one with both enables",
}


class MemoryBank(Block):
    """A synchronous memory with registered read data, as an inferred model or as a memory compiler's macro.

    Members (``address_width`` is at least 1):

    * ``ports="read_write"``: ``read_enable``, ``read_address``, ``read_data`` and ``write_enable``,
      ``write_address``, ``write_data``. If both ports touch one word in a clock, ``read_data`` becomes the word
      before (``old``) or after (``new``) the write, or anything (``undefined``: the model returns the old word,
      a macro may not).
    * ``ports="single"``: ``address``, ``read_enable``, ``write_enable``, ``write_data``, ``read_data``. Read or
      write in a clock, not both.

    ``write_enable`` has one bit for every ``granularity`` bits of a word, lowest bits first; by default it is one bit.

    Timing: a read takes one clock and ``read_data`` then holds until the next read; a write is seen by every read
    of a later clock. Contents and ``read_data`` are undefined until written; there is no reset. Addresses from
    ``depth`` on must not be used.

    A macro has the same module name and ports, plus ``clk``.
    """

    Parameters = MemoryBankParameters
    role = "memory"
    latency = 1

    def prepare(self):
        self.members_doc = _SINGLE_DOC if self.ports == "single" else _READ_WRITE_DOC

    @staticmethod
    def members(p):
        address_width = max(1, ceil_log2(p.depth))
        data = {"write_data": In(p.width), "read_data": Out(p.width)}
        enables = {"read_enable": In(1), "write_enable": In(p.n_enables)}
        if p.ports == "single":
            return {**enables, "address": In(address_width), **data}
        return {**enables, "read_address": In(address_width), "write_address": In(address_width), **data}

    @property
    def module_name(self):
        name = f"memory_{'1rw' if self.ports == 'single' else '1r1w'}_{self.depth}x{self.width}"
        name += f"_by_{self.granularity}" if self.granularity else ""
        return name if self.ports == "single" else f"{name}_{self.read_during_write}"

    @property
    def module_attributes(self):
        return super().module_attributes | {"bits": self.depth * self.width}

    def describe(self):
        """The row of the list of macros for a chip."""
        return {"module": self.module_name, **self.parameters.to_dict(), "bits": self.depth * self.width}

    def circuit(self):
        m = Module()
        if self.ports == "single":
            read_address = write_address = self.address
            read = self.read_enable & ~self.write_enable.any()
        else:
            read_address, write_address = self.read_address, self.write_address
            read = self.read_enable

        word = self._only_word(m) if self.depth == 1 else self._words(m, read_address, write_address)
        if self.read_during_write == "new":
            meets = Signal()
            forwarded = Signal(self.width)
            part = self.width // self.parameters.n_enables
            m.d.comb += [
                meets.eq(read_address == write_address),
                forwarded.eq(
                    Cat(
                        Mux(meets & enable, self.write_data.word_select(index, part), word.word_select(index, part))
                        for index, enable in enumerate(self.write_enable)
                    )
                ),
            ]
            word = forwarded
        read_register = Signal(self.width, reset_less=True)
        with m.If(read):
            m.d.sync += read_register.eq(word)
        m.d.comb += self.read_data.eq(read_register)
        return m

    def _words(self, m, read_address, write_address):
        """The array; returns the word at read_address."""
        m.submodules.words = words = Memory(shape=self.width, depth=self.depth, init=[])
        write_port = words.write_port(granularity=self.granularity)
        read_port = words.read_port(domain="comb")
        m.d.comb += [
            write_port.addr.eq(write_address),
            write_port.data.eq(self.write_data),
            write_port.en.eq(self.write_enable),
            read_port.addr.eq(read_address),
        ]
        return read_port.data

    def _only_word(self, m):
        """A single word is a register: tools warn of an array whose address is constant."""
        word = Signal(self.width, name="only_word", reset_less=True)
        part = self.width // self.parameters.n_enables
        for index, enable in enumerate(self.write_enable):
            with m.If(enable):
                m.d.sync += word.word_select(index, part).eq(self.write_data.word_select(index, part))
        return word
