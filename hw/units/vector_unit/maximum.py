"""One lane's running maximum."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline
from hw.units.vector_unit.factor import FactorParameters
from hw.units.vector_unit.stages import KEY_STAGE

__all__ = ["LaneMaximum"]


class LaneMaximum(Block):
    """The largest word, as a key that orders words: 0 none, 1 NaN, then -Inf to +Inf.

    Each port's documentation names its pipeline stage, see :mod:`hw.units.vector_unit.stages`.
    """

    Parameters = FactorParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "word": "stage 0: the command's word",
        "takes_part": "stage 1: the lane is enabled",
        "update": "stage 1: update the maximum with the word",
        "start": "stage 1: restart the maximum",
        "maximum_key": "stage 2: the maximum's key",
    }
    latency = KEY_STAGE

    @staticmethod
    def members(p):
        width = p.float_format.width
        return {
            "advance": In(1),
            "word": In(width),
            "takes_part": In(1),
            "update": In(1),
            "start": In(1),
            "maximum_key": Out(width),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        fmt = self.parameters.float_format
        word = pipe.register(self.word, name="word_1")
        parts = float_layout(fmt)(word)
        is_nan = Signal()
        ordered = Signal(fmt.width)
        key = Signal(fmt.width)
        m.d.comb += [
            is_nan.eq((parts.exponent == fmt.max_exponent) & parts.fraction.any()),
            ordered.eq(Mux(parts.sign, ~word, word | 1 << (fmt.width - 1))),
            key.eq(Mux(is_nan, 1, ordered) & self.takes_part.replicate(fmt.width)),
        ]
        largest = Signal(fmt.width, reset_less=True)
        best = Signal(fmt.width)
        m.d.comb += best.eq(Mux(self.start | (largest < key), key, largest))
        with m.If(self.advance & self.update):
            m.d.sync += largest.eq(best)
        m.d.comb += self.maximum_key.eq(largest)
        return m
