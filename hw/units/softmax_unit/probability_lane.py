"""One bank's probability: the exponential times the row's multiplier, compared with the threshold."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from golden.spec import softmax_unit as spec
from golden.spec.formats import FP16
from hw.arith.multiplier import TruncatedMultiplier
from hw.arith.rounding import RoundPack, SubnormalShift
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline
from hw.units.softmax_unit.layouts import MULTIPLIER, POWER

__all__ = ["ProbabilityLane", "UNITS_WIDTH"]

_EXPONENT_WIDTH = 8
_SHIFT_WIDTH = 4
UNITS_WIDTH = FP16.precision + (1 << _SHIFT_WIDTH) - 1
"""Bits of a probability, at most 2, in units of the smallest FP16 number."""


class ProbabilityLane(Block):
    """``value = power * multiplier``, rounded once to FP16; its mask bit; if that is set, also in fixed point.

    Golden: step 5 of :func:`golden.units.softmax_unit.softmax`.
    """

    members_doc = {
        "advance": "lock-step enable of the registers",
        "power": "0 where not enabled",
        "enable": "whether the power is an element of the row",
        "multiplier": "of the row",
        "bound": "constant: smallest FP16 word with mask bit 1",
        "value": "FP16, `latency` advances later",
        "keep": "with the value: its mask bit",
        "units": "with the value: the same in units of the smallest FP16 number, 0 if keep is 0",
    }
    latency = 4

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "power": In(POWER),
            "enable": In(1),
            "multiplier": In(MULTIPLIER),
            "bound": In(FP16.width - 1),
            "value": Out(FP16.width),
            "keep": Out(1),
            "units": Out(UNITS_WIDTH),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)

        # 1. The product in [1, 4).
        m.submodules.product = product = TruncatedMultiplier(
            multiplicand_width=spec.FRACTION + 1,
            multiplier_width=spec.FRACTION + 1,
            dropped=spec.PRODUCT_DROPPED,
            centre=spec.PRODUCT_CENTRE,
        )
        exponent = Signal(spec.WHOLE_WIDTH + 1)
        m.d.comb += [
            product.multiplicand.eq(Cat(self.power.fraction, 1)),
            product.multiplier.eq(Cat(self.multiplier.fraction, 1)),
            exponent.eq(self.power.whole + self.multiplier.exponent),
        ]
        significand = pipe.register(product.product, name="product_1")
        exponent = pipe.register(exponent, name="exponent_1")
        enable = pipe.register(self.enable, name="enable_1")
        is_nan = pipe.register(self.enable & self.multiplier.has_nan, name="is_nan_1")

        # 2 and 3. One rounding.
        sizes = {"width": spec.PRODUCT_FRACTION + 1, "exponent_width": _EXPONENT_WIDTH}
        m.submodules.subnormal = subnormal = SubnormalShift(**sizes)
        m.submodules.pack = pack = RoundPack(format="fp16", **sizes)
        upper = significand[-1]
        m.d.comb += [
            subnormal.significand.eq(Mux(upper, significand[1:], significand[:-1])),
            subnormal.exponent.eq((FP16.bias + upper) - exponent),
            pack.exponent.eq(pipe.register(subnormal.exponent, name="exponent_2")),
            pack.significand.eq(pipe.register(subnormal.shifted, name="significand_2")),
            pack.sticky.eq(pipe.register(subnormal.lost | (upper & significand[0]), name="sticky_2")),
            pack.is_nan.eq(pipe.register(is_nan, name="is_nan_2")),
        ]
        value = pipe.register(pack.word[:-1], name="value_3")
        enable = pipe.register(enable & ~is_nan, name="enable_3", stages=2)

        # 4. The threshold.
        keep = Signal()
        number = float_layout(FP16)(Cat(value, Const(0, 1)))
        hidden = Signal()
        m.d.comb += [keep.eq(enable & (value >= self.bound)), hidden.eq(number.exponent.any())]
        m.submodules.shifter = shifter = LogShifter(width=UNITS_WIDTH, amount_width=_SHIFT_WIDTH, direction="left")
        units = Signal(UNITS_WIDTH)
        m.d.comb += [
            shifter.value.eq(Cat(number.fraction, hidden)),
            shifter.amount.eq(number.exponent - hidden),
            units.eq(shifter.shifted & keep.replicate(UNITS_WIDTH)),
            self.value.eq(Cat(pipe.register(value, name="value_4"), Const(0, 1))),
            self.keep.eq(pipe.register(keep, name="keep_4")),
            self.units.eq(pipe.register(units, name="units_4")),
        ]
        return m
