"""OutputLane: a sum times its column's scale, rounded to FP32, and added to the previous output."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16, FP32
from golden.spec.parameters import Parameters, integer
from hw.arith.compressor import Heap
from hw.arith.float_adder import FloatAdder
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.multiplier import add_unsigned_product
from hw.arith.rounding import RoundPack
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline
from hw.units.mixed_precision_array.layouts import EXPONENT

__all__ = ["OutputLane"]

_PRODUCT_STAGES = 6
_LEVELS = 3
"""Levels of full adders before the registers inside the multiplier."""


@dataclass(frozen=True, kw_only=True)
class OutputLaneParameters(Parameters):
    sum_width: int = integer(24, low=13, high=32, doc="bits of the sum")


class OutputLane(Block):
    """``result = previous + sum * scale / 2**exponent``: the product rounded to FP32, then the sum, ties to even.

    A product is never subnormal in FP32, so only the addition handles subnormals. NaN and infinite scales follow
    IEEE 754. It is DSTAR's inverse quantisation and accumulation (section 4.2).
    """

    Parameters = OutputLaneParameters
    members_doc = {
        "advance": "lock-step enable",
        "sum": "of a tile, two's complement",
        "exponent": "of the tile's sums",
        "scale": "of the column's weights, FP16",
        "previous": "FP32 word to which the product is added",
        "result": "FP32 word, ``latency`` advances later",
    }
    latency = _PRODUCT_STAGES + FloatAdder.latency

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "sum": In(signed(p.sum_width)),
            "exponent": In(EXPONENT),
            "scale": In(float_layout(FP16)),
            "previous": In(FP32.width),
            "result": Out(FP32.width),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        m.submodules.adder = adder = FloatAdder(format="fp32")
        m.d.comb += [
            adder.advance.eq(self.advance),
            adder.left.eq(self._product(m, pipe)),
            adder.right.eq(pipe.register(self.previous, name="previous", stages=_PRODUCT_STAGES)),
            self.result.eq(adder.sum),
        ]
        return m

    def _product(self, m, pipe):
        """The FP32 word of the product."""
        scale = self.scale
        is_special = scale.exponent == FP16.max_exponent
        negative = self.sum < 0
        magnitude = Signal(self.sum_width)
        significand = Signal(FP16.precision)
        biased = Signal(signed(10))
        m.d.comb += [
            magnitude.eq(Mux(negative, -self.sum, self.sum)),
            significand.eq(Cat(scale.fraction, scale.exponent != 0)),
            # Of the product's top bit: the significands' product has sum_width + FP16.precision bits.
            biased.eq(
                Mux(scale.exponent == 0, 1, scale.exponent)
                - (FP16.bias + FP16.fraction_width)
                - self.exponent
                + (FP32.bias + self.sum_width + FP16.precision - 1)
            ),
        ]
        state = {
            "sign": negative ^ scale.sign,
            "biased": biased,
            "is_nan": is_special & ((scale.fraction != 0) | (self.sum == 0)),
            "is_inf": is_special,
        }

        def delayed(stage):
            return {name: pipe.register(value, name=f"{name}_{stage}") for name, value in state.items()}

        magnitude = pipe.register(magnitude, name="magnitude")
        significand = pipe.register(significand, name="significand")
        state = delayed(1)
        width = self.sum_width + FP16.precision
        heap = Heap(m, "heap", width)
        add_unsigned_product(m, heap, magnitude, significand, "partial")
        rest = Heap(m, "rest", width)
        rest.add_rows(
            (offset, pipe.register(row, name=f"row_{index}"))
            for index, (offset, row) in enumerate(heap.reduce(levels=_LEVELS))
        )
        state = delayed(2)
        final = Heap(m, "final", width)
        final.add_rows(
            (offset, pipe.register(row, name=f"last_row_{index}")) for index, (offset, row) in enumerate(rest.reduce())
        )
        state = delayed(3)
        product = pipe.register(final.total(), name="product")
        state = delayed(4)
        m.submodules.zeros = zeros = LeadingZeroCounter(width=width)
        m.submodules.normalise = shifter = LogShifter(
            width=width, amount_width=len(zeros.count), direction="left", small_steps_first=False
        )
        m.d.comb += [zeros.value.eq(product), shifter.value.eq(product), shifter.amount.eq(zeros.count)]
        state["biased"] = (state["biased"] - zeros.count)[:10].as_signed()
        normalised = pipe.register(shifter.shifted, name="normalised")
        state = delayed(5)
        m.submodules.pack = pack = RoundPack(format="fp32", width=width, exponent_width=10)
        m.d.comb += [
            pack.sign.eq(state["sign"]),
            pack.exponent.eq(state["biased"]),
            pack.significand.eq(normalised),
            pack.sticky.eq(0),
            pack.is_inf.eq(state["is_inf"]),
            pack.is_nan.eq(state["is_nan"]),
        ]
        return pipe.register(pack.word, name="product_word")
