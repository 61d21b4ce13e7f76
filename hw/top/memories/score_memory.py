"""ScoreMemory: one memory a bank for the kept elements of a matrix, its scores or its probabilities."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.formats import FP16
from golden.spec.limits import MAX_BANKS, MAX_WORDS
from golden.spec.parameters import Parameters, integer, power_of_two
from hw.lib.block import Block
from hw.lib.memory import MemoryBank

__all__ = ["ScoreMemory"]


@dataclass(frozen=True, kw_only=True)
class ScoreMemoryParameters(Parameters):
    n_banks: int = power_of_two(4, low=2, high=MAX_BANKS, doc="banks")
    depth: int = integer(1024, low=2, high=MAX_WORDS, doc="words of a bank")

    @property
    def address_width(self):
        return ceil_log2(self.depth)


class ScoreMemory(Block):
    """Every bank is written and read at an address of its own, one FP16 word a clock each way.

    ``load`` writes and ``peek`` reads one address in all banks, while nobody else does. ``words`` has what was read
    last, from the clock after the read on.
    """

    Parameters = ScoreMemoryParameters
    latency = 1
    members_doc = {
        "write": "a word for each bank",
        "read": "an address for each bank",
        "load": "a word for every bank at one address",
        "peek": "one address in every bank",
        "words": "the words read last",
    }

    @staticmethod
    def members(p):
        width = p.address_width
        words = data.ArrayLayout(FP16.width, p.n_banks)
        write = data.StructLayout({"valid": 1, "address": width, "value": FP16.width})
        return {
            "write": In(data.ArrayLayout(write, p.n_banks)),
            "read": In(data.StructLayout({"enable": p.n_banks, "address": data.ArrayLayout(width, p.n_banks)})),
            "load": In(data.StructLayout({"valid": 1, "address": width, "words": words})),
            "peek": In(data.StructLayout({"enable": 1, "address": width})),
            "words": Out(words),
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
                bank.read_enable.eq(self.read.enable[index] | self.peek.enable),
                bank.read_address.eq(Mux(self.peek.enable, self.peek.address, self.read.address[index])),
                self.words[index].eq(bank.read_data),
            ]
        return m
