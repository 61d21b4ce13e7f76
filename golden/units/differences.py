"""Differences of activations against what the machine has computed with so far (closed loop), bit-exact.

Part of ``mixed_precision_core``. A reference is the sum of all quantised values of an activation, a 16-bit integer in
units of ``2**-finest_exponent``: every scale of a tile is a multiple of it, so the reference is exact and the outputs
that were accumulated belong to it. Nothing drifts, however many steps follow.
"""

import numpy as np

from golden.arith.floats import bit_length, check_words, decode
from golden.spec.formats import FP16
from golden.spec.mixed_precision import FINEST_EXPONENTS, REFERENCE_GUARD, REFERENCE_WIDTH, reference_limit

__all__ = ["check_finest_exponent", "difference", "next_reference"]


def difference(words, reference, *, finest_exponent, n_levels):
    """``x - reference / 2**finest_exponent`` as FP16 words, rounded to odd, so that quantising rounds only once.

    ``words`` are FP16 [..., channels, G], ``reference`` integers of that shape. x is limited to
    ``reference_limit(n_levels)`` units, so that no reference ever overflows, and taken with two more bits, the last one
    of which stands for all below. Infinity stands for infinities and words that are no numbers.
    """
    check_finest_exponent(finest_exponent)
    check_words("words", words, FP16.width)
    words = np.asarray(words, np.uint16)
    reference = np.asarray(reference, np.int64)
    top = 1 << REFERENCE_WIDTH - 1
    if reference.size and not (-top <= reference.min() and reference.max() < top):
        raise ValueError(f"reference must be from {-top} to {top - 1}, not {reference.min()} to {reference.max()}")
    number = decode(FP16, words)
    units = np.minimum(
        _shift_to_odd(number.significand, number.exponent + finest_exponent + REFERENCE_GUARD),
        reference_limit(n_levels) << REFERENCE_GUARD,
    )
    exact = np.where(number.sign == 1, -units, units) - (reference << REFERENCE_GUARD)
    rounded = _pack_to_odd(exact, -finest_exponent - REFERENCE_GUARD)
    return np.where(number.is_nan | number.is_inf, FP16.infinity, rounded).astype(np.uint16)


def check_finest_exponent(value):
    """Refuse an exponent beyond what FP16 numbers need."""
    low, high = FINEST_EXPONENTS
    if not low <= value <= high:
        raise ValueError(f"finest_exponent must be from {low} to {high}, not {value!r}")


def next_reference(reference, quantised, *, finest_exponent):
    """The reference with the quantised differences added."""
    step = quantised.value << (finest_exponent - quantised.exponent)[..., None]
    return np.asarray(reference, np.int64) + step


def _shift_to_odd(value, left):
    """``value * 2**left``, bits below the point ORed into its last bit."""
    right = np.clip(-left, 0, 40)
    lost = value & ((1 << right) - 1)
    return value << np.clip(left, 0, 31) >> right | (lost != 0)


def _pack_to_odd(value, exponent):
    """The FP16 words of ``value * 2**exponent``; what does not fit is ORed into the last bit. Zero is +0."""
    magnitude = np.abs(value)
    # The exponent field of a number whose last significand bit has the weight 2**lowest is lowest + bias + 10.
    least = 1 - FP16.bias - FP16.fraction_width
    lowest = np.maximum(bit_length(magnitude) - FP16.precision + exponent, least)
    significand = _shift_to_odd(magnitude, exponent - lowest)
    # The hidden bit of a normal number adds 1 to the exponent field.
    word = (lowest - least << FP16.fraction_width) + significand
    word = np.where(value == 0, 0, np.minimum(word, FP16.infinity - 1))
    return np.where(value < 0, FP16.sign_bit, 0) | word
