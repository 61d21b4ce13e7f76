"""A lane's floating-point operations: every operation on every pair of words, against long integers."""

import numpy as np
from amaranth.hdl import Cat, Const, Mux, Signal

from golden.spec.formats import FP32, float_format
from golden.spec.vector_operations import VectorOp
from hw.arith.elementwise import ElementwiseLane
from hw.arith.fma import FusedMultiplyAdd
from verif.formal.lockstep import delayed, lock_step
from verif.formal.properties import Property
from verif.formal.reference import Number, convert, multiply_add

ALL_WORDS = range(1 << 16)


def _sums_and_products(m, fmt, operation, a, b):
    """The result by the operation's definition as a fused multiply-add."""
    one = Const(fmt.bias << fmt.fraction_width, fmt.width)
    if operation == VectorOp.MUL:
        first, second, third = a, b, Cat(Const(0, fmt.width - 1), a[-1] ^ b[-1])
    else:
        first, second, third = a, one, Cat(b[:-1], b[-1] ^ (operation != VectorOp.ADD))
    result = Signal(fmt.width, name="reference_result")
    m.d.comb += result.eq(multiply_add(m, fmt, first, second, third))
    return result[:-1] if operation == VectorOp.ABS_DIFF else result


def _comparisons(m, fmt, operation, a, b):
    """By the numbers' values; a NaN is neither less nor equal, and loses as a maximum; -0 < +0 there."""
    left, right = Number(fmt, a), Number(fmt, b)
    values = [Mux(word[-1], -word[:-1], word[:-1]) for word in (a, b)]  # the order of magnitudes is that of the words
    ordered = ~left.is_nan & ~right.is_nan
    less, equal, greater = values[0] < values[1], values[0] == values[1], values[0] > values[1]
    if operation == VectorOp.LESS:
        return ordered & less
    if operation == VectorOp.LESS_EQUAL:
        return ordered & (less | equal)
    if operation == VectorOp.GREATER:
        return ordered & greater
    first = greater | (equal & ~a[-1]) if operation == VectorOp.MAX else less | (equal & a[-1])
    chosen = Mux(right.is_nan | (first & ~left.is_nan), a, b)
    return Mux(left.is_nan & right.is_nan, fmt.nan, chosen)


def _conversions(m, fmt, operation, a, b):
    if operation == VectorOp.TO_FP32:
        return convert(m, fmt, FP32, a)
    return convert(m, FP32, fmt, Cat(a, b))


_DEFINITIONS = dict.fromkeys((VectorOp.ADD, VectorOp.SUB, VectorOp.ABS_DIFF, VectorOp.MUL), _sums_and_products)
_DEFINITIONS |= dict.fromkeys((VectorOp.TO_FP32, VectorOp.TO_FP16), _conversions)
_DEFINITIONS |= dict.fromkeys(
    (VectorOp.MAX, VectorOp.MIN, VectorOp.GREATER, VectorOp.LESS, VectorOp.LESS_EQUAL), _comparisons
)


def lane(operation):
    """All pairs of words (for TO_FP16 all FP32 words, for TO_FP32 all words) through one operation."""

    def check(c, block):
        fmt = float_format(block.format)
        unary = operation == VectorOp.TO_FP32
        c.drive(block.operation, int(operation))
        c.drive(block.c, 0)
        if unary:
            c.drive(block.b, 0)
        # The last choice is the fast one: it has to be large.
        filled = lock_step(c, block, *([] if unary else [(block.b, ALL_WORDS)]), (block.a, ALL_WORDS))
        expected = delayed(c, block, _DEFINITIONS[operation](c.m, fmt, operation, block.a, block.b))
        c.claim("the result is the definition's", ~filled | (block.result == expected))

    return check


def lane_of(operations, fractions):
    """Several operations on pairs of words of every sign and exponent."""

    def check(c, block):
        fmt = float_format(block.format)
        words = corner_words(fmt, fractions)
        c.drive(block.c, 0)
        filled = lock_step(
            c,
            block,
            (block.operation, [int(operation) for operation in operations]),
            (block.b, words),
            (block.a, words),
        )
        expected = Signal(FP32.width)
        with c.m.Switch(block.operation):
            for operation in operations:
                with c.m.Case(int(operation)):
                    definition = _DEFINITIONS[operation](c.m, fmt, operation, block.a, block.b)
                    c.m.d.comb += expected.eq(definition)
        c.claim("the result is the definition's", ~filled | (block.result == delayed(c, block, expected)))

    return check


def corner_words(fmt, fractions):
    """Both signs, every exponent, ``fractions`` fractions: zero, full, one bit, all but one, patterns, random."""
    width = fmt.fraction_width
    full = (1 << width) - 1
    half = 1 << (width - 1)
    chosen = [0, full, 1, full ^ 1, half, half ^ full, half | 1, half - 2, 2, full ^ 2, 0x5555 & full, 0xAAAA & full]
    rng = np.random.default_rng(1)
    chosen = list(dict.fromkeys([*chosen, *map(int, rng.permutation(full + 1))]))[:fractions]
    exponents = range(1 << fmt.exponent_width)
    return [
        sign << (fmt.width - 1) | exponent << width | fraction
        for sign in (0, 1)
        for exponent in exponents
        for fraction in chosen
    ]


def fused_multiply_add(fractions):
    def check(c, block):
        fmt = float_format(block.format)
        words = corner_words(fmt, fractions)
        filled = lock_step(c, block, (block.a, words), (block.b, words), (block.c, words))
        result = Signal(fmt.width, name="reference_result")
        c.m.d.comb += result.eq(multiply_add(c.m, fmt, block.a, block.b, block.c))
        c.claim("the result is that of long integers", ~filled | (block.result == delayed(c, block, result)))

    return check


def _lane(operation, format):
    words = {VectorOp.TO_FP16: "FP32 words", VectorOp.TO_FP32: "words"}.get(operation, "pairs of words")
    return Property(
        "arithmetic",
        f"{operation.name} of all {words} is exact, then rounded once",
        ElementwiseLane,
        [{"format": format}],
        lane(operation),
        engine="exhaustive",
        timeout=1800,
    )


def _lane_of(operations, format, fractions):
    names = ", ".join(operation.name for operation in operations)
    return Property(
        "arithmetic",
        f"{names}: all pairs of signs and exponents, {fractions} fractions each",
        ElementwiseLane,
        [{"format": format}],
        lane_of(operations, fractions),
        engine="class",
    )


PROPERTIES = [
    *(
        _lane(operation, "fp16")
        for operation in (VectorOp.ADD, VectorOp.SUB, VectorOp.MUL, VectorOp.TO_FP32, VectorOp.TO_FP16)
    ),
    _lane_of(
        (VectorOp.ABS_DIFF, VectorOp.MAX, VectorOp.MIN, VectorOp.GREATER, VectorOp.LESS, VectorOp.LESS_EQUAL),
        "fp16",
        60,
    ),
    _lane(VectorOp.TO_FP32, "bf16"),
    Property(
        "arithmetic",
        "fused multiply-add: all triples of signs and exponents, 14 fractions each",
        FusedMultiplyAdd,
        [{"format": "fp16"}],
        fused_multiply_add(14),
        engine="class",
        timeout=1800,
    ),
    Property(
        "arithmetic",
        "fused multiply-add: all triples of signs and exponents, 1 fraction each",
        FusedMultiplyAdd,
        [{"format": "bf16"}],
        fused_multiply_add(1),
        engine="class",
        timeout=1800,
    ),
]
