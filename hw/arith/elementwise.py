"""One lane of element-wise operations: all of them are fused multiply-adds of selected operands."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP32, OPERAND_FORMATS, float_format
from golden.spec.parameters import Parameters, choice, flag, subset
from golden.spec.vector_operations import LANE_OPERATIONS, OPERATION_WIDTH, TWO_OPERAND_OPS, VectorOp, operations_of
from hw.arith.compare import FloatCompare
from hw.arith.convert import SplitSingle
from hw.arith.fma import FusedDatapath, decode_operand
from hw.arith.fused_layouts import exact_product_layout, operand_layout
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline

__all__ = ["ElementwiseLane"]

_COMPARISONS = (VectorOp.GREATER, VectorOp.LESS, VectorOp.LESS_EQUAL)


@dataclass(frozen=True, kw_only=True)
class ElementwiseLaneParameters(Parameters):
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, doc="format of the operands")
    operations: tuple[str, ...] = subset(LANE_OPERATIONS, *LANE_OPERATIONS, least=0, doc="the operations that exist")
    gives_product: bool = flag(False, doc="whether the exact product of two factors can be asked for instead")

    def check(self):
        if not self.operations and not self.gives_product:
            self.refuse("operations", "at least one, without gives_product")

    @property
    def float_format(self):
        return float_format(self.format)

    def has(self, *codes):
        """Whether at least one of these operations exists."""
        return not operations_of(self.operations).isdisjoint(codes)

    @property
    def wide(self):
        """Whether there are FP32 words, as results or as operands."""
        return self.has(VectorOp.TO_FP32, VectorOp.TO_FP16)


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
    operands are selected before the first of four register rows: the inputs should arrive early in the clock. What only
    absent operations need, ports included, is left out. With gives_product the multiplier also works for an
    accumulator: ``multiplies`` takes two factors in place of the operands, and their exact product leaves before any
    rounding. Golden model: ``golden.arith.elementwise.elementwise``.
    """

    Parameters = ElementwiseLaneParameters
    members_doc = {
        "advance": "lock-step enable of all registers",
        "operation": "a VectorOp",
        "a": "first operand; for TO_FP16 the low half of an FP32 word",
        "b": "second operand; for TO_FP16 the high half",
        "c": "addend of FMA",
        "multiplies": "multiply the factors, the operation does not matter",
        "left": "a factor; its exponent may be below the format's range",
        "right": "the other factor",
        "result": "latency clocks later",
        "product_exponent": "after 1 advance: the sum of the exponents of the factors",
        "product_is_zero": "after 1 advance: a factor is zero",
        "product": "after product_latency advances",
    }
    latency = 1 + FusedDatapath.latency
    product_latency = 1 + FusedDatapath.product_latency

    @staticmethod
    def members(p):
        fmt = p.float_format
        operand = operand_layout(fmt)
        members = {"advance": In(1)}
        if p.operations:
            members |= {"operation": In(OPERATION_WIDTH), "a": In(fmt.width)}
        if p.has(*TWO_OPERAND_OPS):
            members["b"] = In(fmt.width)
        if p.has(VectorOp.FMA):
            members["c"] = In(fmt.width)
        if p.operations:
            members["result"] = Out(FP32.width if p.wide else fmt.width)
        if p.gives_product:
            members |= {
                **{"multiplies": In(1), "left": In(operand), "right": In(operand)},
                "product_exponent": Out(signed(operand["exponent"].width + 1)),
                "product_is_zero": Out(1),
                "product": Out(exact_product_layout(fmt)),
            }
        return members

    def circuit(self):
        m = Module()
        p, fmt = self.parameters, self.parameters.float_format
        pipe = Pipeline(m, advance=self.advance)
        operands, product_zero, controls = self._operands(m, fmt) if p.operations else (None, None, {})
        if p.gives_product:
            operands, product_zero = self._or_factors(m, fmt, operands, product_zero)
        m.submodules.datapath = datapath = FusedDatapath(
            format=self.format, wide=p.wide, clears_sign=p.has(VectorOp.ABS_DIFF), gives_product=self.gives_product
        )
        first, second, third = (
            pipe.register(operand, name=f"{name}_1")
            for name, operand in zip(("first", "second", "third"), operands, strict=True)
        )
        m.d.comb += [
            datapath.advance.eq(self.advance),
            datapath.a.eq(first),
            datapath.b.eq(second),
            datapath.c.eq(third),
            datapath.product_zero.eq(pipe.register(product_zero, name="product_zero_1")),
            *(
                getattr(datapath, name).eq(pipe.register(controls[name], name=f"{name}_1"))
                for name in datapath.parameters.options
            ),
        ]
        if p.operations:
            m.d.comb += self.result.eq(datapath.result)
        if p.gives_product:
            m.d.comb += [
                self.product_exponent.eq(first.exponent + second.exponent),
                self.product_is_zero.eq(~first.hidden | ~second.hidden),
                self.product.eq(datapath.product),
            ]
        return m

    def _or_factors(self, m, fmt, operands, product_zero):
        """The factors and a zero of the product's sign where they are wanted; otherwise the operands, if any."""
        zero = Signal(operand_layout(fmt), name="zero_addend")
        is_zero = Signal(name="factor_is_zero")
        m.d.comb += [zero.sign.eq(self.left.sign ^ self.right.sign), is_zero.eq(~self.left.hidden | ~self.right.hidden)]
        if operands is None:
            return (self.left, self.right, zero), is_zero
        chosen = []
        for name, factor, operand in zip(
            ("first", "second", "third"), (self.left, self.right, zero), operands, strict=True
        ):
            either = Signal(operand_layout(fmt), name=f"{name}_chosen")
            m.d.comb += either.eq(Mux(self.multiplies, factor, operand))
            chosen.append(either)
        return chosen, Mux(self.multiplies, is_zero, product_zero)

    def _operands(self, m, fmt):
        """The operands that are multiplied and added, whether their product is zero, and the controls by name."""
        operands, zeros = [], []
        for name, word in zip(("first", "second", "third"), self._choose(m, fmt), strict=True):
            operand, zero = decode_operand(m, fmt, word, name=name)
            operands.append(operand)
            zeros.append(zero)
        product_zero = Signal()
        m.d.comb += product_zero.eq(zeros[0] | zeros[1])
        controls = {"widen": self.operation == VectorOp.TO_FP32, "absolute": self.operation == VectorOp.ABS_DIFF}
        if not self.parameters.has(VectorOp.TO_FP32):
            controls["widen"] = Const(0, 1)
        if not self.parameters.has(VectorOp.TO_FP16):
            return operands, product_zero, controls
        narrow = Signal()
        m.submodules.split = split = SplitSingle(format=self.format)
        m.d.comb += [narrow.eq(self.operation == VectorOp.TO_FP16), split.word.eq(Cat(self.a, self.b))]
        first, second, third = operands
        operands = [Mux(narrow, split.upper, first), second, Mux(narrow, split.lower, third)]
        # The lower half of an FP32 word keeps its exponent below an upper half of zero.
        return [operand_layout(fmt)(operand) for operand in operands], product_zero & ~narrow, controls

    def _choose(self, m, fmt):
        """The words that are multiplied and added, for all operations but TO_FP16."""
        has = self.parameters.has
        first = Signal(fmt.width, name="first_word")
        second = Signal(fmt.width, name="second_word")
        third = Signal(fmt.width, name="third_word")
        zero = Signal(fmt.width)
        sign = fmt.width - 1
        cases = {}
        if has(VectorOp.MAX, VectorOp.MIN, *_COMPARISONS):
            m.submodules.compare = compare = FloatCompare(format=self.format)
            m.d.comb += [compare.left.eq(self.a), compare.right.eq(self.b)]
            cases |= {
                VectorOp.MAX: [first.eq(Mux(compare.left_is_maximum, self.a, self.b))],
                VectorOp.MIN: [first.eq(Mux(compare.left_is_minimum, self.a, self.b))],
                VectorOp.GREATER: [first.eq(compare.greater)],
                VectorOp.LESS: [first.eq(compare.less)],
                VectorOp.LESS_EQUAL: [first.eq(compare.less | compare.equal)],
            }
        if has(*TWO_OPERAND_OPS):
            cases |= {
                VectorOp.ADD: [third.eq(self.b)],
                VectorOp.SUB: [third.eq(self.b ^ (1 << sign))],
                VectorOp.ABS_DIFF: [third.eq(self.b ^ (1 << sign))],
                VectorOp.MUL: [second.eq(self.b)],
            }
        if has(VectorOp.FMA):
            cases[VectorOp.FMA] = [second.eq(self.b), third.eq(self.c)]
        m.d.comb += [
            first.eq(self.a),
            second.eq(fmt.bias << fmt.fraction_width),
            # A zero of the product's sign is neutral, also for products of zero.
            zero.eq(Cat(Const(0, sign), first[sign] ^ second[sign])),
            third.eq(zero),
        ]
        with m.Switch(self.operation):
            for operation, statements in cases.items():
                if has(operation):
                    with m.Case(operation):
                        m.d.comb += statements
        return first, second, third
