"""One lane of element-wise operations: all of them are fused multiply-adds of selected operands."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP32, OPERAND_FORMATS, float_format
from golden.spec.parameters import Parameters, choice
from golden.spec.vector_operations import OPERATION_WIDTH, VectorOp
from hw.arith.compare import FloatCompare
from hw.arith.convert import SplitSingle
from hw.arith.fma import FusedDatapath, decode_operand
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline

__all__ = ["ElementwiseLane"]


@dataclass(frozen=True, kw_only=True)
class ElementwiseLaneParameters(Parameters):
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, doc="format of the operands")


class ElementwiseLane(Block):
    """``result = operation(a, b, c)``, one a clock, rounded once to nearest even, subnormals included, canonical NaN.

    ======================== ===================================== =============================
    operation                result                                as first * second + third
    ======================== ===================================== =============================
    ADD, SUB                 a + b, a - b                          a * 1 + b, a * 1 + (-b)
    ABS_DIFF                 abs(a - b)                            a * 1 + (-b), sign cleared
    MUL                      a * b                                 a * b + 0 of the product's sign
    FMA                      a * b + c                             a * b + c
    MAX, MIN                 the larger, the smaller number        the chosen one * 1 + 0
    GREATER, LESS,           1 or 0                                the smallest subnormal * 1,
    LESS_EQUAL                                                     or 0 * 1
    TO_FP32                  a in FP32                             a * 1 + 0, not rounded
    TO_FP16                  {b, a} in the format                  upper * 1 + lower
    ======================== ===================================== =============================

    Results in the format are in the low half, with zeros above. Results of other operations are undefined. The
    operands are selected before the first of four register rows: the inputs should arrive early in the clock.
    Golden model: ``golden.arith.elementwise.elementwise``.
    """

    Parameters = ElementwiseLaneParameters
    members_doc = {
        "advance": "lock-step enable of all registers",
        "operation": "a VectorOp",
        "a": "first operand; for TO_FP16 the low half of an FP32 word",
        "b": "second operand; for TO_FP16 the high half",
        "c": "addend of FMA",
        "result": "latency clocks later",
    }
    latency = 1 + FusedDatapath.latency

    @staticmethod
    def members(p):
        width = float_format(p.format).width
        return {
            "advance": In(1),
            "operation": In(OPERATION_WIDTH),
            "a": In(width),
            "b": In(width),
            "c": In(width),
            "result": Out(FP32.width),
        }

    def circuit(self):
        m = Module()
        fmt = float_format(self.format)
        pipe = Pipeline(m, advance=self.advance)
        narrow = Signal()
        m.d.comb += narrow.eq(self.operation == VectorOp.TO_FP16)

        m.submodules.split = split = SplitSingle(format=self.format)
        m.d.comb += split.word.eq(Cat(self.a, self.b))
        operands, zeros = [], []
        for name, word in zip(("first", "second", "third"), self._choose(m, fmt), strict=True):
            operand, zero = decode_operand(m, fmt, word, name=name)
            operands.append(operand)
            zeros.append(zero)
        first, second, third = operands

        m.submodules.datapath = datapath = FusedDatapath(format=self.format, wide=True)
        absolute = Signal()
        widen = Signal()
        product_zero = Signal()
        m.d.comb += [
            absolute.eq(self.operation == VectorOp.ABS_DIFF),
            widen.eq(self.operation == VectorOp.TO_FP32),
            # The lower half of an FP32 word keeps its exponent below an upper half of zero.
            product_zero.eq((zeros[0] | zeros[1]) & ~narrow),
            datapath.advance.eq(self.advance),
            datapath.a.eq(pipe.register(Mux(narrow, split.upper, first), name="first_1")),
            datapath.b.eq(pipe.register(second, name="second_1")),
            datapath.c.eq(pipe.register(Mux(narrow, split.lower, third), name="third_1")),
            datapath.product_zero.eq(pipe.register(product_zero, name="product_zero_1")),
            datapath.absolute.eq(pipe.register(absolute, name="absolute_1")),
            datapath.widen.eq(pipe.register(widen, name="widen_1")),
            self.result.eq(datapath.result),
        ]
        return m

    def _choose(self, m, fmt):
        """The words that are multiplied and added, for all operations but TO_FP16."""
        m.submodules.compare = compare = FloatCompare(format=self.format)
        m.d.comb += [compare.left.eq(self.a), compare.right.eq(self.b)]
        first = Signal(fmt.width, name="first_word")
        second = Signal(fmt.width, name="second_word")
        third = Signal(fmt.width, name="third_word")
        zero = Signal(fmt.width)
        sign = fmt.width - 1
        m.d.comb += [
            first.eq(self.a),
            second.eq(fmt.bias << fmt.fraction_width),
            # A zero of the product's sign is neutral, also for products of zero.
            zero.eq(Cat(Const(0, sign), first[sign] ^ second[sign])),
            third.eq(zero),
        ]
        with m.Switch(self.operation):
            with m.Case(VectorOp.ADD):
                m.d.comb += third.eq(self.b)
            with m.Case(VectorOp.SUB, VectorOp.ABS_DIFF):
                m.d.comb += third.eq(self.b ^ (1 << sign))
            with m.Case(VectorOp.MUL):
                m.d.comb += second.eq(self.b)
            with m.Case(VectorOp.FMA):
                m.d.comb += [second.eq(self.b), third.eq(self.c)]
            with m.Case(VectorOp.MAX):
                m.d.comb += first.eq(Mux(compare.left_is_maximum, self.a, self.b))
            with m.Case(VectorOp.MIN):
                m.d.comb += first.eq(Mux(compare.left_is_minimum, self.a, self.b))
            with m.Case(VectorOp.GREATER):
                m.d.comb += first.eq(compare.greater)
            with m.Case(VectorOp.LESS):
                m.d.comb += first.eq(compare.less)
            with m.Case(VectorOp.LESS_EQUAL):
                m.d.comb += first.eq(compare.less | compare.equal)
        return first, second, third
