"""Floating-point adder for one format, one rounding."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FORMATS, float_format
from golden.spec.parameters import Parameters, choice
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.rounding import RoundPack
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline

__all__ = ["FloatAdder"]

_BELOW = 3
"""Guard, round and sticky bit below the significand."""


@dataclass(frozen=True, kw_only=True)
class FloatAdderParameters(Parameters):
    format: str = choice("fp32", *FORMATS, doc="format of the operands and of the sum")


class FloatAdder(Block):
    """``sum = left + right``, rounded once to nearest, ties to even; subnormals included.

    A NaN, or infinities of both signs, give the canonical NaN. A sum of exact opposites is +0. Timing: five advances.
    """

    Parameters = FloatAdderParameters
    members_doc = {
        "advance": "lock-step enable",
        "left": "first addend",
        "right": "second addend",
        "sum": "the result, five advances later",
    }
    latency = 5

    @staticmethod
    def members(p):
        width = float_format(p.format).width
        return {"advance": In(1), "left": In(width), "right": In(width), "sum": Out(width)}

    def circuit(self):
        m = Module()
        self._format = float_format(self.format)
        pipe = Pipeline(m, advance=self.advance)
        larger, smaller, state = self._order(m, pipe)
        aligned = self._align(m, pipe, smaller, state["distance"])
        state = {name: pipe.register(value, name=f"{name}_2") for name, value in state.items() if name != "distance"}
        larger = pipe.register(larger, name="larger_2")
        total = Signal(len(larger) + _BELOW + 1)
        operand = Cat(Const(0, _BELOW), larger)
        m.d.comb += total.eq(Mux(state["subtracts"], operand - aligned, operand + aligned))
        total = pipe.register(total, name="total")
        state = {name: pipe.register(value, name=f"{name}_3") for name, value in state.items()}
        self._round(m, pipe, total, state)
        return m

    def _order(self, m, pipe):
        """Stage 1: order by magnitude, hidden bits, and the control of the following stages."""
        fmt = self._format
        words = [Signal(float_layout(fmt), name=f"{side}_word") for side in ("left", "right")]
        m.d.comb += [words[0].eq(self.left), words[1].eq(self.right)]
        magnitudes = [Cat(word.fraction, word.exponent) for word in words]
        swaps = Signal()
        m.d.comb += swaps.eq(magnitudes[0] < magnitudes[1])
        larger, smaller = (Signal(float_layout(fmt), name=name) for name in ("larger_word", "smaller_word"))
        m.d.comb += [larger.eq(Mux(swaps, words[1], words[0])), smaller.eq(Mux(swaps, words[0], words[1]))]
        fields = [Mux(word.exponent == 0, 1, word.exponent) for word in (larger, smaller)]
        is_special = [word.exponent == fmt.max_exponent for word in (larger, smaller)]
        has_nan = [special & (word.fraction != 0) for special, word in zip(is_special, (larger, smaller), strict=True)]
        subtracts = larger.sign ^ smaller.sign
        state = {
            "distance": (fields[0] - fields[1])[: fmt.exponent_width],
            "exponent": fields[0][: fmt.exponent_width],
            "sign": larger.sign,
            "subtracts": subtracts,
            "is_inf": is_special[0],
            "is_nan": has_nan[0] | has_nan[1] | (is_special[0] & is_special[1] & subtracts),
        }
        state = {name: pipe.register(value, name=f"{name}_1") for name, value in state.items()}
        significands = [
            pipe.register(Cat(word.fraction, word.exponent != 0), name=name)
            for name, word in (("larger", larger), ("smaller", smaller))
        ]
        return *significands, state

    def _align(self, m, pipe, significand, distance):
        """Stage 2: align the smaller one to the larger one's exponent, with a sticky bit."""
        width = len(significand) + _BELOW - 1
        m.submodules.align = shifter = LogShifter(width=width, amount_width=len(distance), sticky=True)
        m.d.comb += [shifter.value.eq(Cat(Const(0, _BELOW - 1), significand)), shifter.amount.eq(distance)]
        return pipe.register(Cat(shifter.lost, shifter.shifted), name="aligned")

    def _round(self, m, pipe, total, state):
        """Stages 4 and 5: normalise, as far as the exponent allows; round."""
        fmt = self._format
        m.submodules.zeros = zeros = LeadingZeroCounter(width=len(total))
        m.submodules.normalise = shifter = LogShifter(
            width=len(total), amount_width=len(zeros.count), direction="left", small_steps_first=False
        )
        is_limited = Signal()
        amount = Signal(len(zeros.count))
        m.d.comb += [
            zeros.value.eq(total),
            is_limited.eq(state["exponent"] < zeros.count),
            amount.eq(Mux(is_limited, state["exponent"], zeros.count)),
            shifter.value.eq(total),
            shifter.amount.eq(amount),
        ]
        m.submodules.pack = pack = RoundPack(
            format=self.format, width=len(total), exponent_width=fmt.exponent_width + 2
        )
        # An exact zero is positive, unless both addends are negative zeros.
        sign = state["sign"] & ~(state["subtracts"] & (zeros.count == len(total)))
        m.d.comb += [
            pack.sign.eq(pipe.register(sign, name="sign_4")),
            pack.exponent.eq(pipe.register(state["exponent"] + 1 - amount, name="exponent_4").as_signed()),
            pack.significand.eq(pipe.register(shifter.shifted, name="normalised")),
            pack.sticky.eq(0),
            pack.is_inf.eq(pipe.register(state["is_inf"], name="is_inf_4")),
            pack.is_nan.eq(pipe.register(state["is_nan"], name="is_nan_4")),
            self.sum.eq(pipe.register(pack.word, name="sum_5")),
        ]
