"""The largest score of each row."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.formats import FP16
from golden.spec.softmax_unit import FACTOR_WIDTH, BanksParameters
from hw.arith.trees import MaximumTree
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline
from hw.units.softmax_unit.layouts import MAXIMUM

__all__ = ["RowMaximum"]

_LEVELS_PER_STAGE = 2


class RowMaximum(Block):
    """The largest enabled score of a row, ``latency`` clocks after the row's last beat; never stalls.

    Scores are compared as integers, negative ones with all bits inverted. A NaN is reported and may be the maximum.
    """

    Parameters = BanksParameters
    members_doc = {
        "valid": "there is a beat",
        "last": "the beat ends its row",
        "scores": "FP16",
        "enable": "enabled scores",
        "factor": "with the last beat: passed on",
        "row": "the row's maximum",
        "row_valid": "the row's maximum is valid",
    }

    @staticmethod
    def members(p):
        return {
            "valid": In(1),
            "last": In(1),
            "scores": In(data.ArrayLayout(FP16.width, p.n_banks)),
            "enable": In(p.n_banks),
            "factor": In(FACTOR_WIDTH),
            "row": Out(MAXIMUM),
            "row_valid": Out(1),
        }

    @property
    def latency(self):
        return max(1, -(-ceil_log2(self.n_banks) // _LEVELS_PER_STAGE))

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=Const(1))
        m.submodules.tree = tree = MaximumTree(n_inputs=self.n_banks, width=FP16.width, n_stages=self.latency)
        m.d.comb += tree.advance.eq(1)
        nans = Signal(self.n_banks)
        for bank, word in enumerate(self.scores):
            score = float_layout(FP16)(word)
            ordered = Signal(FP16.width, name=f"ordered_{bank}")
            m.d.comb += [
                ordered.eq(Mux(score.sign, ~word, Cat(word[:-1], 1))),
                tree.values[bank].eq(ordered & self.enable[bank].replicate(FP16.width)),
                nans[bank].eq(self.enable[bank] & (score.exponent == FP16.max_exponent) & score.fraction.any()),
            ]
        beat = data.StructLayout({"has_nan": 1, "last": 1, "factor": FACTOR_WIDTH})
        beat = Signal(beat)
        m.d.comb += [beat.has_nan.eq(nans.any()), beat.last.eq(self.last), beat.factor.eq(self.factor)]
        beat = pipe.register(beat, name="tree_beat", stages=self.latency)
        valid = self.valid
        for stage in range(1, self.latency + 1):
            valid = pipe.control(valid, name=f"valid_{stage}")

        begun = Signal()  # the row has had a beat
        largest = Signal(FP16.width, reset_less=True)
        earlier_nan = Signal(reset_less=True)
        best = Signal(FP16.width)
        m.d.comb += [
            best.eq(Mux(begun & (largest > tree.largest), largest, tree.largest)),
            self.row.maximum.eq(Mux(best[-1], Cat(best[:-1], 0), ~best)),
            self.row.has_nan.eq(beat.has_nan | (begun & earlier_nan)),
            self.row.factor.eq(beat.factor),
            self.row_valid.eq(valid & beat.last),
        ]
        with m.If(valid):
            m.d.sync += [begun.eq(~beat.last), largest.eq(best), earlier_nan.eq(self.row.has_nan)]
        return m
