"""ScoreMemory: one memory a bank for the sampled elements of a matrix: scores or probabilities."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib import data
from amaranth.lib.wiring import In

from golden.spec.formats import FP16
from golden.spec.limits import MAX_BANKS, MAX_WORDS
from golden.spec.parameters import Parameters, integer, power_of_two
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.top.interfaces import BankReadPort, address_width, score_write

__all__ = ["ScoreMemory"]


@dataclass(frozen=True, kw_only=True)
class ScoreMemoryParameters(Parameters):
    n_banks: int = power_of_two(4, low=2, high=MAX_BANKS, doc="banks")
    n_readers: int = integer(1, low=1, high=4, doc="read ports, of which one is used at a time")
    depth: int = integer(1024, low=2, high=MAX_WORDS, doc="words of a bank")


class ScoreMemory(Block):
    """Every bank is written and read at its own address, one FP16 word a clock each way.

    ``load`` writes and ``peek`` reads one address in all banks, only while no other port is used. All ``readers`` output
    the word that was read last.
    """

    Parameters = ScoreMemoryParameters
    latency = 1
    members_doc = {
        "write": "a word for each bank",
        "readers": "reads of each bank",
        "load": "a word for every bank at one address",
        "peek": "one address in every bank",
    }

    @staticmethod
    def members(p):
        width = address_width(p.depth)
        return {
            "write": In(score_write(p.n_banks, p.depth)),
            "readers": In(BankReadPort(p.n_banks, p.depth)).array(p.n_readers),
            "load": In(
                data.StructLayout({"valid": 1, "address": width, "words": data.ArrayLayout(FP16.width, p.n_banks)})
            ),
            "peek": In(data.StructLayout({"enable": 1, "address": width})),
        }

    def circuit(self):
        m = Module()
        for index in range(self.n_banks):
            m.submodules[f"bank_{index}"] = bank = MemoryBank(depth=self.depth, width=FP16.width)
            write = self.write[index]
            m.d.comb += [
                bank.write_enable.eq(write.valid | self.load.valid),
                bank.write_address.eq(Mux(self.load.valid, self.load.address, write.address)),
                bank.write_data.eq(Mux(self.load.valid, self.load.words[index], write.value)),
                bank.read_enable.eq(Cat(reader.enable[index] for reader in self.readers).any() | self.peek.enable),
                bank.read_address.eq(self.readers[0].address[index]),
                *(reader.word[index].eq(bank.read_data) for reader in self.readers),
            ]
            for reader in self.readers[1:]:
                with m.If(reader.enable[index]):
                    m.d.comb += bank.read_address.eq(reader.address[index])
            with m.If(self.peek.enable):
                m.d.comb += bank.read_address.eq(self.peek.address)
        return m
