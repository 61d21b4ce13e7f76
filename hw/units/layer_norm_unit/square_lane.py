"""The square of one deviation, in the fixed point in which a row's squares are added."""

from amaranth.hdl import Cat, Const, Module
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from golden.spec import layer_norm_unit as spec
from hw.arith.compressor import Heap
from hw.arith.multiplier import add_square
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.layer_norm_unit.layouts import DEVIATION

__all__ = ["SquareLane"]


class SquareLane(Block):
    """``square = deviation**2`` rounded down to SQUARE_FRACTION fraction bits, ``latency`` clocks later, one a clock.

    Golden: step 3 of :func:`golden.units.layer_norm_unit.normalise`.
    """

    members_doc = {"deviation": "significand and places", "square": "fraction bits only"}
    latency = 2

    @staticmethod
    def members(p):
        return {"deviation": In(DEVIATION), "square": Out(spec.SQUARE_FRACTION)}

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=Const(1))
        heap = Heap(m, "square", 2 * spec.DEVIATION_WIDTH)
        add_square(m, heap, self.deviation.significand, "square_partial")
        square = pipe.register(heap.total(), name="whole_square")
        places = pipe.register(self.deviation.places, name="places_1")
        half_width = bits_for(spec.SQUARE_FRACTION // 2) - 1
        m.submodules.shifter = shifter = LogShifter(width=spec.SQUARE_FRACTION, amount_width=1 + half_width)
        gone = places[half_width:].any()
        m.d.comb += [
            shifter.value.eq(Cat(Const(0, spec.SQUARE_FRACTION - len(square)), square)),
            shifter.amount.eq(Cat(Const(0, 1), places[:half_width])),
        ]
        shifted = shifter.shifted & (~gone).replicate(spec.SQUARE_FRACTION)
        m.d.comb += self.square.eq(pipe.register(shifted, name="shifted"))
        return m
