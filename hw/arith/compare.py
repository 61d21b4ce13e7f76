"""Comparison of two floating-point words."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from golden.spec.formats import float_format
from golden.spec.parameters import Parameters, choice
from hw.lib.block import Block
from hw.lib.formats import float_layout

__all__ = ["FloatCompare"]


@dataclass(frozen=True, kw_only=True)
class FloatCompareParameters(Parameters):
    format: str = choice("fp16", "fp16", "bf16", "fp32", doc="format of the words")


class FloatCompare(Block):
    """Order of two words, as IEEE 754 compares them and as a total order of the numbers with −0 < +0. Combinational.

    Golden model: ``golden.arith.elementwise`` (less, less_equal, greater, maximum, minimum).
    """

    Parameters = FloatCompareParameters
    members_doc = {
        "left": "a word",
        "right": "a word",
        "less": "left < right; false with a NaN",
        "equal": "left == right, where −0 equals +0; false with a NaN",
        "greater": "left > right; false with a NaN",
        "left_is_maximum": "whether the larger one is left: a number wins over NaN, −0 < +0",
        "left_is_minimum": "whether the smaller one is left: a number wins over NaN, −0 < +0",
    }

    @staticmethod
    def members(p):
        width = float_format(p.format).width
        return {
            "left": In(width),
            "right": In(width),
            "less": Out(1),
            "equal": Out(1),
            "greater": Out(1),
            "left_is_maximum": Out(1),
            "left_is_minimum": Out(1),
        }

    def circuit(self):
        m = Module()
        fmt = float_format(self.format)
        left, right = data.View(float_layout(fmt), self.left), data.View(float_layout(fmt), self.right)
        left_magnitude, right_magnitude = self.left[:-1], self.right[:-1]
        left_nan = Signal()
        right_nan = Signal()
        m.d.comb += [
            left_nan.eq(left.exponent.all() & left.fraction.any()),
            right_nan.eq(right.exponent.all() & right.fraction.any()),
        ]
        smaller = Signal()
        same = Signal()
        both_zero = Signal()
        below = Signal()
        same_word = Signal()
        ordered = Signal()
        m.d.comb += [
            smaller.eq(left_magnitude < right_magnitude),
            same.eq(left_magnitude == right_magnitude),
            both_zero.eq(~(left_magnitude | right_magnitude).any()),
            same_word.eq(same & (left.sign == right.sign)),
            # The order of the words as sign and magnitude, which puts -0 below +0.
            below.eq(Mux(left.sign ^ right.sign, left.sign, Mux(left.sign, ~smaller & ~same, smaller))),
            ordered.eq(~left_nan & ~right_nan),
            self.less.eq(below & ordered & ~both_zero),
            self.equal.eq((same_word | both_zero) & ordered),
            self.greater.eq(~below & ~same_word & ordered & ~both_zero),
            self.left_is_maximum.eq(right_nan | (~below & ~left_nan)),
            self.left_is_minimum.eq(right_nan | (below & ~left_nan)),
        ]
        return m
