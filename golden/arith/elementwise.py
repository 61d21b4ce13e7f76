"""Element-wise floating-point operations of one vector lane, exact integers until the single rounding."""

import numpy as np

from golden.arith.floats import decode, is_nan, round_pack, word_type
from golden.spec.formats import FP16, FP32, check_operand_format
from golden.spec.vector_operations import VectorOp

__all__ = [
    "fused_multiply_add",
    "add",
    "subtract",
    "absolute_difference",
    "multiply",
    "maximum",
    "minimum",
    "less",
    "less_equal",
    "greater",
    "to_fp32",
    "add_fp32",
    "from_fp32",
    "elementwise",
    "ELEMENTWISE_OPS",
]

# An operand shifted this far below the other one cannot reach its rounding position, in any format up to FP16's
# precision, and may be replaced by the smallest magnitude of its sign.
_FAR = 36


def fused_multiply_add(a, b, c, fmt=FP16):
    """``a * b + c`` rounded once to nearest even, as IEEE 754 fusedMultiplyAdd with canonical NaNs.

    The operands are words of ``fmt`` in arrays of any shapes that broadcast. An exact zero sum of opposite signs is
    +0. Tininess does not matter, since no flags are produced.
    """
    check_operand_format(fmt)
    x, y, z = decode(fmt, a), decode(fmt, b), decode(fmt, c)
    product_sign = x.sign ^ y.sign
    product_inf = x.is_inf | y.is_inf
    nan = x.is_nan | y.is_nan | z.is_nan | (product_inf & (x.is_zero | y.is_zero))
    nan |= product_inf & z.is_inf & (product_sign != z.sign)

    product, exponent = x.significand * y.significand, x.exponent + y.exponent
    # The exponent of a zero is meaningless.
    exponent, addend_exponent = (
        np.where(product == 0, z.exponent, exponent),
        np.where(z.significand == 0, exponent, z.exponent),
    )
    gap = exponent - addend_exponent
    left = np.where(gap < -_FAR, np.minimum(product, 1), product << np.clip(gap, 0, _FAR))
    right = np.where(gap > _FAR, np.minimum(z.significand, 1), z.significand << np.clip(-gap, 0, _FAR))
    base = np.maximum(np.minimum(exponent, addend_exponent), np.maximum(exponent, addend_exponent) - _FAR)
    total = np.where(product_sign == 1, -left, left) + np.where(z.sign == 1, -right, right)

    sign = np.where(total == 0, product_sign & z.sign, total < 0)
    sign = np.where(product_inf, product_sign, np.where(z.is_inf, z.sign, sign))
    return round_pack(fmt, sign, np.abs(total), base, nan=nan, inf=product_inf | z.is_inf)


def multiply(a, b, fmt=FP16):
    """``a * b`` rounded once."""
    x, y = decode(fmt, a), decode(fmt, b)
    inf = x.is_inf | y.is_inf
    nan = x.is_nan | y.is_nan | (inf & (x.is_zero | y.is_zero))
    return round_pack(fmt, x.sign ^ y.sign, x.significand * y.significand, x.exponent + y.exponent, nan=nan, inf=inf)


def add(a, b, fmt=FP16):
    """``a + b`` rounded once; −0 only for −0 + −0."""
    return fused_multiply_add(a, np.asarray(fmt.one, word_type(fmt)), b, fmt)


def subtract(a, b, fmt=FP16):
    """``a − b`` rounded once."""
    return add(a, np.asarray(b, word_type(fmt)) ^ word_type(fmt).type(fmt.sign_bit), fmt)


def absolute_difference(a, b, fmt=FP16):
    """``|a − b|`` rounded once."""
    return subtract(a, b, fmt) & word_type(fmt).type(fmt.sign_bit - 1)


def _signed_magnitude(word, fmt):
    word = np.asarray(word).astype(np.int64)
    magnitude = word & (fmt.sign_bit - 1)
    return np.where(word & fmt.sign_bit, -magnitude, magnitude), word >> (fmt.width - 1)


def _ordered(a, b, fmt):
    return ~(is_nan(fmt, a) | is_nan(fmt, b))


def less(a, b, fmt=FP16):
    """``a < b``, false if either is NaN; −0 equals +0."""
    return _ordered(a, b, fmt) & (_signed_magnitude(a, fmt)[0] < _signed_magnitude(b, fmt)[0])


def less_equal(a, b, fmt=FP16):
    """``a <= b``, false if either is NaN; −0 equals +0."""
    return _ordered(a, b, fmt) & (_signed_magnitude(a, fmt)[0] <= _signed_magnitude(b, fmt)[0])


def greater(a, b, fmt=FP16):
    """``a > b``, false if either is NaN; −0 equals +0."""
    return less(b, a, fmt)


def _select(a, b, first_wins, fmt):
    a, b = np.asarray(a, word_type(fmt)), np.asarray(b, word_type(fmt))
    nan_a, nan_b = is_nan(fmt, a), is_nan(fmt, b)
    chosen = np.where(nan_b | (first_wins & ~nan_a), a, b)
    return np.where(nan_a & nan_b, word_type(fmt).type(fmt.nan), chosen)


def maximum(a, b, fmt=FP16):
    """The larger number; a number wins over NaN, two NaNs give NaN, −0 < +0."""
    (value_a, sign_a), (value_b, sign_b) = _signed_magnitude(a, fmt), _signed_magnitude(b, fmt)
    return _select(a, b, (value_a > value_b) | ((value_a == value_b) & (sign_a < sign_b)), fmt)


def minimum(a, b, fmt=FP16):
    """The smaller number; a number wins over NaN, two NaNs give NaN, −0 < +0."""
    (value_a, sign_a), (value_b, sign_b) = _signed_magnitude(a, fmt), _signed_magnitude(b, fmt)
    return _select(a, b, (value_a < value_b) | ((value_a == value_b) & (sign_a > sign_b)), fmt)


def _convert(word, source, target):
    number = decode(source, word)
    return round_pack(target, number.sign, number.significand, number.exponent, nan=number.is_nan, inf=number.is_inf)


def to_fp32(a, fmt=FP16):
    """The words widened to FP32, exactly; NaNs become canonical."""
    return _convert(a, fmt, FP32)


def add_fp32(a, b):
    """``a + b`` of FP32 words, rounded once; NaNs are canonical."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.asarray(a, np.uint32).view(np.float32) + np.asarray(b, np.uint32).view(np.float32)
    return np.where(np.isnan(total), np.uint32(FP32.nan), total.astype(np.float32).view(np.uint32))


def from_fp32(word, fmt=FP16):
    """FP32 words rounded once to ``fmt``."""
    return _convert(word, FP32, fmt)


def _from_halves(a, b, fmt):
    word = np.asarray(a).astype(np.uint32) | np.asarray(b).astype(np.uint32) << np.uint32(16)
    return from_fp32(word, fmt)


_FUNCTIONS = {
    VectorOp.ADD: lambda a, b, c, fmt: add(a, b, fmt),
    VectorOp.SUB: lambda a, b, c, fmt: subtract(a, b, fmt),
    VectorOp.ABS_DIFF: lambda a, b, c, fmt: absolute_difference(a, b, fmt),
    VectorOp.MUL: lambda a, b, c, fmt: multiply(a, b, fmt),
    VectorOp.FMA: fused_multiply_add,
    VectorOp.MAX: lambda a, b, c, fmt: maximum(a, b, fmt),
    VectorOp.MIN: lambda a, b, c, fmt: minimum(a, b, fmt),
    VectorOp.GREATER: lambda a, b, c, fmt: greater(a, b, fmt),
    VectorOp.LESS: lambda a, b, c, fmt: less(a, b, fmt),
    VectorOp.LESS_EQUAL: lambda a, b, c, fmt: less_equal(a, b, fmt),
    VectorOp.TO_FP32: lambda a, b, c, fmt: to_fp32(a, fmt),
    VectorOp.TO_FP16: lambda a, b, c, fmt: _from_halves(a, b, fmt),
}

ELEMENTWISE_OPS = tuple(_FUNCTIONS)


def elementwise(operation, a, b, c, fmt=FP16):
    """The 32-bit results of one lane: ``operation`` on 16-bit words ``a``, ``b``, ``c`` (arrays that broadcast).

    A result in ``fmt`` is in the low half with zeros above; ``TO_FP32`` fills all 32 bits; a comparison gives 0 or
    1; ``TO_FP16`` rounds the FP32 word whose low half is ``a`` and whose high half is ``b``.
    """
    if operation not in _FUNCTIONS:
        names = ", ".join(op.name for op in ELEMENTWISE_OPS)
        raise ValueError(f"operation must be one of {names}, not {operation!r}")
    check_operand_format(fmt)
    return _FUNCTIONS[VectorOp(operation)](a, b, c, fmt).astype(np.uint32)
