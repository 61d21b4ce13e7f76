"""Retained mass: the sum of a row's probabilities at or above the threshold."""

from amaranth.hdl import Cat, Const, Module, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.rounding import RoundPack
from hw.arith.shifter import LogShifter
from hw.arith.trees import SumTree
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.softmax_unit.probability_lane import UNITS_WIDTH
from hw.units.softmax_unit.row_maximum import BanksParameters

__all__ = ["RetainedMass"]


class RetainedMass(Block):
    """The exact running sum of a row's units, rounded once to FP16, ``latency`` advances after each beat.

    The unit is the smallest FP16 number, and the sum below 4.
    """

    Parameters = BanksParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "valid": "there is a beat",
        "last": "the beat ends its row",
        "units": "of each bank: probability in units of the smallest FP16 number, 0 if below the threshold",
        "mass": "FP16",
    }

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "valid": In(1),
            "last": In(1),
            "units": In(data.ArrayLayout(UNITS_WIDTH, p.n_banks)),
            "mass": Out(FP16.width),
        }

    def prepare(self):
        self.tree = SumTree(n_inputs=self.n_banks, width=UNITS_WIDTH + 1)

    @property
    def latency(self):
        return self.tree.latency + 2

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        m.submodules.tree = tree = self.tree
        valid, last = self.valid, self.last
        for stage in range(1, tree.latency + 1):
            valid = pipe.control(valid, name=f"valid_{stage}")
            last = pipe.register(last, name=f"last_{stage}")
        m.d.comb += tree.advance.eq(self.advance)
        m.d.comb += [tree.addends[bank].eq(units) for bank, units in enumerate(self.units)]

        begun = Signal()
        total = Signal(UNITS_WIDTH, reset_less=True)
        with m.If(self.advance & valid):
            m.d.sync += [begun.eq(~last), total.eq((total & begun.replicate(UNITS_WIDTH)) + tree.total.as_unsigned())]

        # A sum without a one in the counted bits has the smallest exponent, and may lack the hidden one.
        m.submodules.leading_zeros = counter = LeadingZeroCounter(width=UNITS_WIDTH - FP16.precision)
        m.submodules.normaliser = shifter = LogShifter(
            width=UNITS_WIDTH, amount_width=len(counter.count), direction="left"
        )
        m.submodules.pack = pack = RoundPack(format="fp16", width=UNITS_WIDTH, exponent_width=7)
        exponent = Signal(signed(7))
        m.d.comb += [
            counter.value.eq(total[FP16.precision :]),
            shifter.value.eq(total),
            shifter.amount.eq(counter.count),
            # The top bit's exponent field, if the last bit is the smallest number.
            exponent.eq(UNITS_WIDTH - FP16.fraction_width - counter.count),
            pack.significand.eq(shifter.shifted),
            pack.exponent.eq(exponent),
            self.mass.eq(Cat(pipe.register(pack.word[:-1], name="mass_register"), Const(0, 1))),
        ]
        return m
