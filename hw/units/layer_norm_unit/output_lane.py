"""One lane's result: the deviation times the row's root, rounded, times gamma, plus beta."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from golden.spec import layer_norm_unit as spec
from golden.spec.formats import FP16
from hw.arith.fma import FusedMultiplyAdd
from hw.arith.multiplier import TruncatedMultiplier
from hw.arith.rounding import RoundPack, SubnormalShift
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.layer_norm_unit.layouts import DEVIATION, ROOT

__all__ = ["OutputLane"]

_EXPONENT_WIDTH = 9


class OutputLane(Block):
    """``result = gamma * (deviation * root) + beta``: the product in brackets is rounded once, and so is the sum.

    Golden: step 5 of :func:`golden.units.layer_norm_unit.normalise`, and
    :func:`golden.arith.elementwise.fused_multiply_add`.
    """

    members_doc = {
        "advance": "lock-step enable of the registers",
        "deviation": "of the element",
        "root": "of the row; the result is NaN if the row has an infinity or NaN",
        "gamma": "FP16, `coefficient_stage` advances after the deviation",
        "beta": "FP16, with gamma",
        "result": "FP16, `latency` advances after the deviation",
    }
    coefficient_stage = 3
    latency = coefficient_stage + FusedMultiplyAdd.latency

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "deviation": In(DEVIATION),
            "root": In(ROOT),
            "gamma": In(FP16.width),
            "beta": In(FP16.width),
            "result": Out(FP16.width),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)

        # 1 and 2. The product, in [1/4, 1) unless it is 0.
        m.submodules.product = product = TruncatedMultiplier(
            multiplicand_width=spec.DEVIATION_WIDTH,
            multiplier_width=spec.ROOT_FRACTION + 1,
            dropped=spec.PRODUCT_DROPPED,
            centre=spec.PRODUCT_CENTRE,
            pipelined=True,
        )
        exponent = Signal(signed(_EXPONENT_WIDTH - 1))
        m.d.comb += [
            product.advance.eq(self.advance),
            product.multiplicand.eq(self.deviation.significand),
            product.multiplier.eq(Cat(self.root.fraction, 1)),
            exponent.eq(self.deviation.places + self.root.exponent.as_signed()),
        ]
        significand = pipe.register(product.product, name="product_2")
        exponent = pipe.register(exponent, name="exponent_2", stages=2)
        sign = pipe.register(self.deviation.negative, name="sign_3", stages=3)
        is_nan = pipe.register(self.root.has_special, name="is_nan_3", stages=3)

        # 3 and 4. One rounding.
        sizes = {"width": spec.PRODUCT_FRACTION, "exponent_width": _EXPONENT_WIDTH}
        m.submodules.subnormal = subnormal = SubnormalShift(**sizes)
        m.submodules.pack = pack = RoundPack(format="fp16", **sizes)
        upper = significand[-1]
        m.d.comb += [
            subnormal.significand.eq(Mux(upper, significand, significand << 1)),
            subnormal.exponent.eq((FP16.bias - 2 + upper) - exponent),
            pack.sign.eq(sign),
            pack.exponent.eq(pipe.register(subnormal.exponent, name="exponent_3")),
            pack.significand.eq(pipe.register(subnormal.shifted, name="significand_3")),
            pack.sticky.eq(pipe.register(subnormal.lost, name="sticky_3")),
            pack.is_nan.eq(is_nan),
        ]

        # 4 to 7.
        m.submodules.fma = fma = FusedMultiplyAdd(format="fp16")
        m.d.comb += [
            fma.advance.eq(self.advance),
            fma.a.eq(self.gamma),
            fma.b.eq(pack.word),
            fma.c.eq(self.beta),
            self.result.eq(fma.result),
        ]
        return m
