"""Bit-exact models of the function units: exponential, reciprocal, reciprocal square root, GELU and SiLU."""

import numpy as np

from golden.arith.floats import bit_length, decode, word_type
from golden.arith.lines import evaluate, scale_down
from golden.spec.formats import FP16
from golden.spec.functions import (
    GELU_FRACTION,
    GELU_TAIL_INDEX_WIDTH,
    exponential_tables,
    gelu_tables,
    reciprocal_root_table,
    reciprocal_table,
    silu_tables,
)

__all__ = ["exponential", "reciprocal", "reciprocal_root", "gelu", "silu"]


def exponential(x, fmt=FP16):
    """``e**x``, at most 1 ulp from the exact value and monotone; words of ``fmt`` in and out, any shape.

    ``t = |x| * log2(e)`` in fixed point, truncated; its integer part, complemented for negative x, is the exponent,
    its fraction f gives ``2**f`` by a linear segment, truncated to one bit more than the significand, shifted right
    for subnormal results, and rounded half up. |x| below about half an ulp of 1 gives 1.
    """
    number, tables = decode(fmt, x), exponential_tables(fmt)
    width = tables.power.argument_width

    product = np.int64(tables.product_bias)
    for sign, shift in tables.addends(fmt.fraction_width):
        product = product + sign * (number.significand << shift if shift >= 0 else number.significand >> -shift)
    product >>= tables.guard
    distance = fmt.bias + tables.top_exponent - number.field
    near = (distance >= 0) & (distance < 16)
    aligned = product << (tables.top_exponent + width - tables.product_fraction)
    fixed = np.where(near, aligned >> np.where(near, distance, 0), 0)

    fixed = np.where(number.sign == 1, ~fixed, fixed)
    field = (fixed >> width) + fmt.bias
    power = evaluate(tables.power, fixed & ((1 << width) - 1)) >> (tables.power.value_fraction - fmt.fraction_width - 1)
    word = _pack(power, field, fmt)

    far = (distance < 0) | number.is_inf
    word = np.where(far, 0, word)
    word = np.where((number.sign == 0) & (far | (field >= 2 * fmt.bias + 1)), fmt.infinity, word)
    return np.where(number.is_nan, fmt.nan, word).astype(word_type(fmt))


def _pack(significand, field, fmt):
    """Round significands in [1, 2] with one extra bit half up, subnormal results at their own quantum."""
    right = np.clip(1 - field, 0, 62)
    rounded = ((significand >> right) + 1) >> 1
    # The hidden one of a normal number, or the carry, adds 1 to the exponent field.
    return ((np.maximum(field, 1) - 1) << fmt.fraction_width) + rounded


def reciprocal(x, fmt=FP16):
    """``1 / x``, at most 1 ulp from the exact value; words of ``fmt`` in and out, any shape.

    The normalised significand ``1 + f`` gives ``2 / (1 + f)`` in (1, 2] by a linear segment, truncated to one bit
    more than the significand, shifted right for subnormal results, and rounded half up. Powers of two are exact.
    """
    number, table = decode(fmt, x), reciprocal_table(fmt)
    fraction, exponent = _normalise(number, fmt)
    value = evaluate(table, fraction) >> (table.value_fraction - fmt.fraction_width - 1)
    word = np.minimum(_pack(value, 2 * fmt.bias - 1 - exponent, fmt), fmt.infinity)
    word = np.where(number.is_inf, 0, np.where(number.is_zero, fmt.infinity, word)) | number.sign << (fmt.width - 1)
    return np.where(number.is_nan, fmt.nan, word).astype(word_type(fmt))


def reciprocal_root(x, fmt=FP16):
    """``1 / sqrt(x)``, at most 1 ulp from the exact value; words of ``fmt`` in and out, any shape.

    The significand m, in [1, 2) or, where the exponent is odd, in [2, 4), gives ``2 / sqrt(m)`` in (1, 2] by a
    linear segment, rounded half up. Powers of four are exact. Negative numbers give NaN, ±0 gives ±Inf.
    """
    number, table = decode(fmt, x), reciprocal_root_table(fmt)
    fraction, exponent = _normalise(number, fmt)
    octave = (exponent - fmt.bias) & 1
    value = evaluate(table, octave << fmt.fraction_width | fraction) >> (table.value_fraction - fmt.fraction_width - 1)
    word = _pack(value, fmt.bias - 1 - (exponent - fmt.bias - octave) // 2, fmt)
    word = np.where(number.is_inf, 0, np.where(number.is_zero, fmt.infinity | number.sign << (fmt.width - 1), word))
    return np.where(number.is_nan | ((number.sign == 1) & ~number.is_zero), fmt.nan, word).astype(word_type(fmt))


def gelu(x, fmt=FP16):
    """``x * Phi(x)``, Phi the normal distribution: at most 2 ulp or, if that is more, 2**-15 from the exact value.

    Words of ``fmt`` in and out, any shape. All values are scaled by the power of two of x. With m the significand, the
    result is ``m / 2 + line`` or, for negative x, ``m / 2 - line`` up to 2, and ``m - line`` or ``line`` from there on;
    lines are rounded down to GELU_FRACTION fraction bits. It is normalised and rounded half up. From 4 on a constant
    replaces the line, and below 2**-11 GELU is x / 2. GELU(-Inf) is -0.
    """
    number, tables = decode(fmt, x), gelu_tables(fmt)
    fraction = number.significand & ((1 << fmt.fraction_width) - 1)
    significand = (
        np.where(number.is_inf, 1 << fmt.fraction_width, number.significand) << GELU_FRACTION - fmt.fraction_width
    )
    exponent = number.field - fmt.bias

    line = np.zeros(fraction.shape, dtype=np.int64)
    for octave, table in enumerate((*tables.even, tables.rest), start=1 - len(tables.even)):
        chosen = exponent == octave
        line[chosen] = evaluate(table, fraction[chosen]) >> table.slope_shift
    steps = np.zeros(1 << GELU_TAIL_INDEX_WIDTH, dtype=np.int64)
    steps[: len(tables.tail)] = tables.tail
    line = np.where(exponent == 2, steps[fraction >> fmt.fraction_width - GELU_TAIL_INDEX_WIDTH], line)

    return _gated(number, significand, line, fmt)


def silu(x, fmt=FP16):
    """``x / (1 + exp(-x))``: at most 2 ulp or, if that is more, 2**-15 from the exact value.

    Words of ``fmt`` in and out, any shape. It is made as GELU is, with lines up to 16, and x or 0 from there on. The
    lines from 2 on are in units of 2: for positive x from 4 on their intercepts and slopes are shifted right to the
    scale of x. SiLU(-Inf) is -0.
    """
    number, tables = decode(fmt, x), silu_tables(fmt)
    fraction = number.significand & ((1 << fmt.fraction_width) - 1)
    significand = (
        np.where(number.is_inf, 1 << fmt.fraction_width, number.significand) << GELU_FRACTION - fmt.fraction_width
    )
    exponent = number.field - fmt.bias
    line = np.zeros(fraction.shape, dtype=np.int64)
    for octave, table in enumerate((*tables.even, *tables.rest), start=1 - len(tables.even)):
        for negative in (0, 1):
            chosen = (exponent == octave) & (number.sign == negative)
            scaled = scale_down(table, 0 if negative else max(0, octave - 1))
            line[chosen] = evaluate(scaled, fraction[chosen]) >> table.slope_shift
    return _gated(number, significand, line, fmt)


def _gated(number, significand, line, fmt):
    """The sum of half of the scaled argument and a line, or one of them alone from 2 on, normalised and rounded."""
    exponent, negative = number.field - fmt.bias, number.sign == 1
    half = significand >> 1
    from_two = np.where(negative, line, significand - line)
    total = np.where(exponent >= 1, from_two, np.where(negative, half - line, half + line))
    # The result of a negative argument from 2 on is in units of 2.
    field = np.where(negative & (exponent >= 1), fmt.bias + 1, number.field)
    left = np.minimum(GELU_FRACTION + 1 - bit_length(total), field - 1)
    rounded = (((total << left) >> GELU_FRACTION - fmt.fraction_width - 1) + 1) >> 1
    word = np.where(total == 0, 0, (field - left - 1 << fmt.fraction_width) + rounded)
    return np.where(number.is_nan, fmt.nan, word | number.sign << fmt.width - 1).astype(word_type(fmt))


def _normalise(number, fmt):
    """The fraction and the exponent field, below 1 for subnormals, of numbers with normalised significands."""
    left = fmt.fraction_width + 1 - bit_length(number.significand)
    return (number.significand << left) & ((1 << fmt.fraction_width) - 1), number.field - left
