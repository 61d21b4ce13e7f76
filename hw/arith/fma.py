"""Fused multiply-add: two words multiplied, a third one added, one rounding."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP32, OPERAND_FORMATS, float_format
from golden.spec.parameters import Parameters, choice
from hw.arith.fused_layouts import FusedParameters, exact_product_layout, operand_layout
from hw.arith.fused_stages import FusedProduct, FusedRound, FusedSum
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline

__all__ = ["FusedMultiplyAdd", "FusedDatapath", "decode_operand"]


class FusedDatapath(Block):
    """``a * b + c`` on decoded operands, rounded once to nearest even; shared by all operations of a lane.

    Three register rows, the last one holds the result; a result every clock.
    """

    Parameters = FusedParameters
    members_doc = {
        "advance": "lock-step enable of all registers",
        "a": "multiplicand, see operand_layout",
        "b": "multiplier",
        "c": "addend",
        "product_zero": "whether a or b is zero; may be left out where c's exponent is known to be no larger",
        "widen": "with wide: give the result as an FP32 word; it must be exact",
        "absolute": "with clears_sign: clear the sign of the result",
        "result": "the word, canonical NaN for every NaN; with wide zeros above it, or an FP32 word",
        "product": "with gives_product, one advance after the operands: see exact_product_layout",
    }
    latency = 3
    product_latency = 1

    @staticmethod
    def members(p):
        fmt = float_format(p.format)
        operand = operand_layout(fmt)
        return {
            "advance": In(1),
            "a": In(operand),
            "b": In(operand),
            "c": In(operand),
            "product_zero": In(1),
            **{name: In(1) for name in p.options},
            "result": Out(FP32.width if p.wide else fmt.width),
            **({"product": Out(exact_product_layout(fmt))} if p.gives_product else {}),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        options = self.parameters.to_dict()
        m.submodules.product = product = FusedProduct(**options)
        m.submodules.sum = total = FusedSum(**options)
        m.submodules.round = rounding = FusedRound(format=self.format, wide=self.wide)
        names = ["a", "b", "c", "product_zero", *self.parameters.options]
        m.d.comb += [getattr(product, name).eq(getattr(self, name)) for name in names]
        m.d.comb += total.product.eq(pipe.register(product.product, name="stage_1"))
        if self.gives_product:
            m.d.comb += [
                self.product.magnitude.eq(total.magnitude),
                *(self.product[name].eq(total.product[name]) for name in ("sign", "is_nan", "is_inf")),
            ]
        m.d.comb += rounding.total.eq(pipe.register(total.total, name="stage_2"))
        m.d.comb += self.result.eq(pipe.register(rounding.result, name="stage_3"))
        return m


@dataclass(frozen=True, kw_only=True)
class FusedMultiplyAddParameters(Parameters):
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, doc="format of operands and result")


class FusedMultiplyAdd(Block):
    """``result = a * b + c``, rounded once to nearest even, subnormals included, canonical NaN; a result every clock.

    Registers on the inputs and on the result. Golden model: ``golden.arith.elementwise.fused_multiply_add``.
    """

    Parameters = FusedMultiplyAddParameters
    members_doc = {
        "advance": "lock-step enable of all registers",
        "a": "multiplicand",
        "b": "multiplier",
        "c": "addend",
        "result": "the sum, latency clocks later",
    }
    latency = 1 + FusedDatapath.latency

    @staticmethod
    def members(p):
        width = float_format(p.format).width
        return {"advance": In(1), "a": In(width), "b": In(width), "c": In(width), "result": Out(width)}

    def circuit(self):
        m = Module()
        fmt = float_format(self.format)
        pipe = Pipeline(m, advance=self.advance)
        m.submodules.datapath = datapath = FusedDatapath(format=self.format)
        zeros = []
        for name in ("a", "b", "c"):
            word = pipe.register(getattr(self, name), name=f"{name}_word")
            operand, zero = decode_operand(m, fmt, word, name=f"{name}_operand")
            m.d.comb += getattr(datapath, name).eq(operand)
            zeros.append(zero)
        m.d.comb += [
            datapath.product_zero.eq(zeros[0] | zeros[1]),
            datapath.advance.eq(self.advance),
            self.result.eq(datapath.result),
        ]
        return m


def decode_operand(m, fmt, word, name):
    """The operand of a word in ``fmt``, and whether it is zero."""
    word = data.View(float_layout(fmt), word)
    operand, zero = Signal(operand_layout(fmt), name=name), Signal(name=f"{name}_zero")
    # Subnormals have the exponent of field 1.
    m.d.comb += [
        operand.fraction.eq(word.fraction),
        operand.hidden.eq(word.exponent.any()),
        operand.exponent.eq(Cat(word.exponent[0] | ~operand.hidden, word.exponent[1:])),
        operand.sign.eq(word.sign),
        zero.eq(~operand.hidden & ~word.fraction.any()),
    ]
    return operand, zero
