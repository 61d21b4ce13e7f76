"""ScoreMemory: one memory a bank for the sampled elements of a matrix: scores or probabilities."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In

from golden.spec.formats import FP16
from golden.spec.limits import MAX_BANKS, MAX_WORDS
from golden.spec.parameters import Parameters, flag, integer, power_of_two
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.top.interfaces import ArbitratedBankReadPort, BankReadPort, address_width, score_write

__all__ = ["ScoreMemory"]


@dataclass(frozen=True, kw_only=True)
class ScoreMemoryParameters(Parameters):
    n_banks: int = power_of_two(4, low=2, high=MAX_BANKS, doc="banks")
    is_shared: bool = flag(False, doc="whether there is an arbitrated read port beside the first one")
    depth: int = integer(1024, low=2, high=MAX_WORDS, doc="words of a bank")


class ScoreMemory(Block):
    """Every bank is written and read at its own address, one FP16 word a clock each way.

    ``load`` writes and ``peek`` reads one address in all banks, only while no other port is used;
    ``reader`` also outputs the words that ``peek`` reads. ``reader`` holds its words until its next read, whatever
    ``second`` reads.
    """

    Parameters = ScoreMemoryParameters
    latency = 1
    members_doc = {
        "write": "a word for each bank",
        "reader": "reads of each bank, at once",
        "second": "reads of each bank where the first port has none",
        "load": "a word for every bank at one address",
        "peek": "one address in every bank",
    }

    @staticmethod
    def members(p):
        width = address_width(p.depth)
        return {
            "write": In(score_write(p.n_banks, p.depth)),
            "reader": In(BankReadPort(p.n_banks, p.depth)),
            **({"second": In(ArbitratedBankReadPort(p.n_banks, p.depth))} if p.is_shared else {}),
            "load": In(
                data.StructLayout({"valid": 1, "address": width, "words": data.ArrayLayout(FP16.width, p.n_banks)})
            ),
            "peek": In(data.StructLayout({"enable": 1, "address": width})),
        }

    def circuit(self):
        m = Module()
        for index in range(self.n_banks):
            m.submodules[f"bank_{index}"] = bank = MemoryBank(depth=self.depth, width=FP16.width)
            write, reader = self.write[index], self.reader
            reads = Signal(name=f"reads_{index}")
            m.d.comb += [
                bank.write_enable.eq(write.valid | self.load.valid),
                bank.write_address.eq(Mux(self.load.valid, self.load.address, write.address)),
                bank.write_data.eq(Mux(self.load.valid, self.load.words[index], write.value)),
                reads.eq(reader.enable[index] | self.peek.enable),
                bank.read_enable.eq(reads),
                bank.read_address.eq(Mux(self.peek.enable, self.peek.address, reader.address[index])),
                reader.word[index].eq(bank.read_data),
            ]
            if self.is_shared:
                self._share(m, index, bank, reads)
        return m

    def _share(self, m, index, bank, reads):
        """The second port takes what the first one leaves, whose word is kept in a register."""
        second = self.second
        is_read = Signal(name=f"is_read_{index}")
        word = Signal(FP16.width, name=f"word_{index}", reset_less=True)
        m.d.sync += is_read.eq(reads)
        with m.If(is_read):
            m.d.sync += word.eq(bank.read_data)
        m.d.comb += [
            self.reader.word[index].eq(Mux(is_read, bank.read_data, word)),
            second.ready[index].eq(~reads),
            second.word[index].eq(bank.read_data),
        ]
        with m.If(~reads):
            m.d.comb += [bank.read_enable.eq(second.enable[index]), bank.read_address.eq(second.address[index])]
