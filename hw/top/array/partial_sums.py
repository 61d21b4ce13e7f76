"""PartialSums: the FP32 sums of a dot-product unit, of products that come in pieces."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.formats import FP16, FP32
from golden.spec.limits import MAX_SLOTS, MAX_WORDS
from golden.spec.parameters import Parameters, integer
from hw.arith.float_adder import FloatAdder
from hw.arith.rounding import FloatRounder
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.memory import MemoryBank
from hw.lib.pipeline import Pipeline

__all__ = ["PartialSums"]

_MINUS_ZERO = FP32.sign_bit
"""What does not change any number that is added to it."""


@dataclass(frozen=True, kw_only=True)
class PartialSumsParameters(Parameters):
    depth: int = integer(64, low=1, high=MAX_WORDS, doc="sums")
    n_slots: int = integer(16, low=1, high=MAX_SLOTS, doc="columns of the unit in a row, at most")


class PartialSums(Block):
    """Sums at ``first + row * slots + slot``, row after row: each new term replaces them, or is added, rounded once.

    With ``gives`` the sum comes as FP16, rounded once more, and is not kept. One term a clock; a term that is kept is
    in the memory ``latency`` clocks after it was taken.
    """

    Parameters = PartialSumsParameters
    latency = 2 + FloatAdder.latency
    members_doc = {
        "start": "begin with the first row; only while nothing is in flight",
        "first": "at start: the sum of slot 0 of the first row",
        "slots": "constant: sums from row to row",
        "adds": "constant: terms are added to what is there",
        "gives": "constant: sums come out, and are not kept",
        "terms": "FP32 numbers, each with its slot and whether it is the row's last one here",
        "sums": "FP16 numbers",
    }

    @staticmethod
    def members(p):
        address = max(1, ceil_log2(p.depth))
        term = {"value": FP32.width, "slot": ceil_log2(p.n_slots), "last_of_row": 1}
        return {
            "start": In(1),
            "first": In(address),
            "slots": In(address),
            "adds": In(1),
            "gives": In(1),
            "terms": In(stream.Signature(data.StructLayout(term))),
            "sums": Out(stream.Signature(FP16.width)),
        }

    def circuit(self):
        m = Module()
        m.submodules.memory = memory = MemoryBank(depth=self.depth, width=FP32.width)
        m.submodules.adder = adder = FloatAdder(format="fp32")
        pipe = Pipeline(m, source=self.terms, sink=self.sums)
        row = Signal(len(self.first), reset_less=True)
        address = Signal(len(row))
        taken = Signal()
        m.d.comb += [
            taken.eq(self.terms.valid & self.terms.ready),
            address.eq(row + self.terms.payload.slot),
            memory.read_enable.eq(taken),
            memory.read_address.eq(address),
        ]
        with m.If(self.start):
            m.d.sync += row.eq(self.first)
        with m.Elif(taken & self.terms.payload.last_of_row):
            m.d.sync += row.eq(row + self.slots)
        m.d.comb += [
            adder.advance.eq(pipe.advance),
            adder.left.eq(pipe.register(self.terms.payload.value, name="term")),
            adder.right.eq(Mux(self.adds, memory.read_data, _MINUS_ZERO)),
        ]
        in_sum = self.terms.valid
        for stage in range(1, self.latency):
            in_sum = pipe.control(in_sum, name=f"valid_{stage}")
        m.d.comb += [
            memory.write_enable.eq(in_sum & ~self.gives & pipe.advance),
            memory.write_address.eq(pipe.register(address, name="address", stages=self.latency - 1)),
            memory.write_data.eq(adder.sum),
            self.sums.valid.eq(pipe.control(in_sum & self.gives, name="valid_sum")),
            self.sums.payload.eq(pipe.register(self._narrow(m, adder.sum), name="narrow")),
        ]
        return m

    @staticmethod
    def _narrow(m, word):
        """An FP32 word rounded to FP16."""
        word = data.View(float_layout(FP32), word)
        special, fraction = word.exponent == FP32.max_exponent, word.fraction.any()
        m.submodules.rounder = rounder = FloatRounder(format="fp16", width=FP32.precision, exponent_width=10)
        exponent = Signal(signed(10))
        m.d.comb += [
            exponent.eq(word.exponent - (FP32.bias - FP16.bias)),
            rounder.sign.eq(word.sign),
            rounder.exponent.eq(exponent),
            # What is subnormal in FP32 is far below half of the smallest number.
            rounder.significand.eq(Cat(word.fraction, 1) & word.exponent.any().replicate(FP32.precision)),
            rounder.sticky.eq(0),
            rounder.is_inf.eq(special & ~fraction),
            rounder.is_nan.eq(special & fraction),
        ]
        return rounder.word
