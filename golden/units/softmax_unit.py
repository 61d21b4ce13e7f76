"""Bit-exact model of the softmax unit: masked rows of FP16 scores to probabilities, threshold mask, retained mass."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from golden.arith.floats import bit_length, check_words, decode, decode_positive, encode_positive, round_pack, word_type
from golden.arith.lines import evaluate
from golden.spec import softmax_unit as spec
from golden.spec.formats import FP16

__all__ = ["Softmax", "encode_scale", "decode_scale", "softmax", "retained_mass", "at_least_theta"]

FACTOR_MASK = (1 << spec.FACTOR_WIDTH) - 1
"""The significant bits of a factor: those of numbers below 2."""


class Softmax(NamedTuple):
    values: np.ndarray  # FP16 words, 0 where not enabled
    keep: np.ndarray  # bool: enabled, and the value is theta or more
    retained_mass: np.ndarray  # FP16 words, one a row: the sum of the values >= theta, rounded once


def encode_scale(scale):
    """The unit's scale word for ``softmax(scale * x)``: ``scale * log2(e)`` rounded to 16 significant bits.

    From the top, the word has 4 bits of exponent and 15 of fraction: ``(1 + fraction / 2**15) * 2**(exponent - 12)``.
    Legal scales are 0.00017 to 11.
    """
    word = encode_positive(spec.SCALE, scale * math.log2(math.e))
    if word is None:
        raise ValueError(f"scale must be from 0.00017 to 11, not {scale}")
    return word


def decode_scale(word):
    """The exact multiplier that a scale word encodes: ``scale * log2(e)``."""
    return decode_positive(spec.SCALE, word)


def softmax(scores, enable, scale, theta=0, factor: ArrayLike = FP16.one):
    """``P = factor * 2**(c*x) / sum(2**(c*x))`` over the enabled elements of each row, ``c = decode_scale(scale)``.

    ``scores`` [rows, n] are FP16 words, ``enable`` [rows, n] says which are elements of the row, ``theta`` is one
    FP16 word, ``factor`` one or one a row: a multiplier of the row, such as the mass retained by an earlier step.
    It is below 2: its sign and the top bit of its exponent are ignored. Results do not depend on the order.

    Finite scores give at most :func:`golden.arith.softmax_tables.error_bound` ulps of error, below 3. -Inf gives 0,
    like a score that is far below the maximum, also where all scores are -Inf; in a row with +Inf the +Inf
    elements share the row equally and all others are 0. A NaN makes all values of its row NaN and clears its mask. Rows
    without enabled elements have the retained mass 0.

    1. Maximum: exact.
    2. ``t = c * (maximum - x)``, from ``c * 2**-exponent(c)`` and scores in fixed point that were multiplied with the
       power of two and rounded down (one last place too low if negative). ``e = 2**-t`` by one line for each 1/32 of
       an octave, rounded down to a 14-bit significand; 0 where t is 31 or more.
    3. The exact sum of all e, each rounded down to 26 fraction bits.
    4. Row multiplier: the reciprocal, by lines, times the factor, rounded down to a 14-bit significand.
    5. Product, rounded once to FP16.
    """
    scores, enable = np.asarray(scores), np.asarray(enable, dtype=bool)
    check_row_length(scores.shape[-1], spec.MAX_ELEMENTS)
    for name, value, width in (
        ("scores", scores, FP16.width),
        ("scale", scale, spec.SCALE.width),
        ("theta", theta, FP16.width),
        ("factor", factor, FP16.width),
    ):
        check_words(name, value, width)
    number = decode(FP16, scores)
    has_nan = (enable & number.is_nan).any(axis=-1, keepdims=True)
    significand, whole = _exponentials(scores, number, enable, scale)
    total = ((significand << spec.SUM_FRACTION - spec.FRACTION - 1) >> whole).sum(axis=-1, keepdims=True)
    row_significand, row_exponent = _row_multiplier(total, np.asarray(factor).reshape(-1, 1))

    product = truncated_product(significand, row_significand, spec.PRODUCT_DROPPED, spec.PRODUCT_CENTRE)
    values = round_pack(FP16, 0, product, -spec.PRODUCT_FRACTION - whole - row_exponent)
    values = np.where(has_nan & enable, FP16.nan, values).astype(word_type(FP16))
    keep = enable & at_least_theta(values, theta)
    return Softmax(values, keep, retained_mass(values, keep))


def check_row_length(n_elements, limit):
    """Refuse rows that are longer than the unit's widths allow."""
    if not 1 <= n_elements <= limit:
        raise ValueError(f"a row must have from 1 to {limit} elements, not {n_elements}")


def _exponentials(scores, number, enable, scale):
    """Significands, with FRACTION fraction bits, and negated exponents, less 1; ABSENT in the latter gives 0."""
    key = np.where(number.sign == 1, ~scores.astype(np.int64) & 0xFFFF, scores.astype(np.int64) | 0x8000)
    key = np.where(enable & ~number.is_nan, key, 0)
    framed = _frame(number, scale >> spec.SCALE.fraction_width)
    largest = key.argmax(axis=-1, keepdims=True)
    difference = np.take_along_axis(framed, largest, axis=-1) - framed
    largest = np.take_along_axis(key, largest, axis=-1)
    is_far = difference >> spec.FRAME_FRACTION >= 1 << spec.WHOLE_WIDTH
    beside_infinity = (largest == (FP16.infinity | 0x8000)) & (key != largest)
    absent = ~enable | (scores == (FP16.infinity | 0x8000)) | is_far | beside_infinity

    scale_significand = 1 << spec.SCALE.fraction_width | scale & ((1 << spec.SCALE.fraction_width) - 1)
    exponent = (
        truncated_product(
            np.where(absent, 0, np.maximum(difference, 0)),
            np.int64(scale_significand),
            spec.EXPONENT_DROPPED,
            spec.EXPONENT_CENTRE,
        )
        >> spec.EXPONENT_GUARD
    )
    whole = np.where(absent, spec.ABSENT, np.minimum(exponent >> spec.EXPONENT_FRACTION, spec.ABSENT))
    table = spec.power_table()
    power = evaluate(table, ~exponent & ((1 << spec.EXPONENT_FRACTION) - 1)) >> table.value_fraction - spec.FRACTION
    return power, whole


def _frame(number, scale_exponent):
    """Scores times 2**(scale_exponent - SCALE.bias), with FRAME_FRACTION fraction bits, as one's complements."""
    left = number.field + scale_exponent - (FP16.bias + FP16.fraction_width + spec.SCALE.bias - spec.FRAME_FRACTION)
    magnitude = number.significand << np.maximum(left, 0) >> np.maximum(-left, 0)
    return np.where(number.sign == 1, ~magnitude, magnitude)


def _row_multiplier(total, factor):
    """Significand and negated exponent of ``factor / total``; don't-care if the sum or the factor is 0."""
    left = spec.SUM_FRACTION - 1 + spec.RECIPROCAL_ARGUMENT  # the shift of a sum without an integer bit
    exponent = bit_length(total) - 1 - spec.SUM_FRACTION
    argument = (total << left - spec.SUM_FRACTION + 1) >> np.maximum(exponent + spec.SUM_FRACTION, 0)
    table = spec.reciprocal_table()
    reciprocal = (
        evaluate(table, argument & ((1 << spec.RECIPROCAL_ARGUMENT) - 1)) >> table.value_fraction - spec.FRACTION
    )

    number = decode(FP16, factor & FACTOR_MASK)
    left = FP16.fraction_width + 1 - bit_length(number.significand)
    product = reciprocal * (number.significand << left)
    carries = product >> spec.FRACTION + FP16.fraction_width + 1
    negated = exponent + 2 + FP16.bias - number.field + left - carries
    absent = (number.significand == 0) | (total == 0)
    negated = np.where(absent, spec.ABSENT, np.minimum(negated, spec.ABSENT))
    return product >> FP16.fraction_width + carries, negated


def truncated_product(multiplicand, multiplier, dropped, centre):
    """About ``multiplicand * multiplier >> dropped``: the multiplier array without its ``dropped`` low columns.

    Each row of the array loses the bits in these columns; ``centre`` compensates for them on average.
    """
    total = np.int64(centre)
    for bit in range(dropped):
        total = total + (multiplicand >> dropped - bit) * (multiplier >> bit & 1)
    return total + multiplicand * (multiplier >> dropped)


def at_least_theta(values, theta):
    """``value >= theta`` for values that are NaN or not negative; false if either is NaN."""
    bound = decode(FP16, theta)
    least = np.where(bound.is_nan, FP16.nan, np.where(bound.sign == 1, 0, theta))
    return (values >= least) & (values != FP16.nan)


def retained_mass(values, keep):
    """The sum of the values with ``keep`` in each row: exact, then rounded once to FP16."""
    number = decode(FP16, values)
    units = np.where(keep, number.significand << number.field - 1, 0).sum(axis=-1)
    return round_pack(FP16, 0, units, 1 - FP16.bias - FP16.fraction_width)
