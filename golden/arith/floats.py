"""Floating-point words as exact integers: decode, round once, encode (NumPy, vectorised)."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from golden.spec.formats import FP64

__all__ = [
    "word_type",
    "check_words",
    "encode_positive",
    "decode_positive",
    "Decoded",
    "decode",
    "round_pack",
    "bit_length",
    "to_float64",
    "from_float64",
    "is_nan",
    "equal_or_nan",
]


def word_type(fmt):
    """The unsigned NumPy type that holds a word of the format."""
    return np.dtype(f"uint{fmt.width}")


def check_words(name, words, width):
    """Refuse anything but arrays of unsigned words of that many bits."""
    words = np.asarray(words)
    if words.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, the words of the numbers, not {words.dtype}")
    fits = words.dtype.kind == "u" and 8 * words.dtype.itemsize <= width
    if not fits and words.size and not (0 <= words.min() and words.max() >> width == 0):
        wrong = words.min() if words.min() < 0 else words.max()
        raise ValueError(f"{name} must be words of {width} bits, from 0 to {(1 << width) - 1}, not {wrong}")


class Decoded(NamedTuple):
    """A finite word is `(-1)**sign * significand * 2**exponent`, exactly; significand 0 for NaN and Inf."""

    sign: np.ndarray  # int64, 0 or 1
    significand: np.ndarray  # int64, hidden one included
    exponent: np.ndarray  # int64, weight of the significand's least significant bit
    is_nan: np.ndarray
    is_inf: np.ndarray
    is_zero: np.ndarray
    field: np.ndarray  # int64, the exponent field, at least 1 (subnormals share the exponent of 1)


def decode(fmt, bits):
    """Split words of `fmt` (any integer array) into exact integers and flags."""
    bits = np.asarray(bits)
    if bits.dtype.kind not in "iu":
        raise TypeError(f"words must be integers, not {bits.dtype}")
    word = bits.astype(np.uint64)
    fraction = (word & np.uint64((1 << fmt.fraction_width) - 1)).astype(np.int64)
    field = (word >> np.uint64(fmt.fraction_width) & np.uint64((1 << fmt.exponent_width) - 1)).astype(np.int64)
    sign = (word >> np.uint64(fmt.width - 1) & np.uint64(1)).astype(np.int64)
    special = field == (1 << fmt.exponent_width) - 1
    significand = np.where(field > 0, fraction | 1 << fmt.fraction_width, fraction)
    field = np.maximum(field, 1)
    return Decoded(
        sign=sign,
        significand=np.where(special, 0, significand),
        exponent=field - fmt.bias - fmt.fraction_width,
        is_nan=special & (fraction != 0),
        is_inf=special & (fraction == 0),
        is_zero=significand == 0,
        field=field,
    )


def bit_length(value):
    """Bits needed for each non-negative integer (0 for 0), exact up to 64 bits."""
    rest = np.array(value, dtype=np.uint64)
    length = np.zeros(rest.shape, dtype=np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        upper = rest >> np.uint64(step)
        tall = upper != 0
        length += np.where(tall, step, 0)
        rest = np.where(tall, upper, rest)
    return length + (rest != 0)


def round_pack(
    fmt,
    sign: ArrayLike,
    magnitude: ArrayLike,
    exponent: ArrayLike,
    sticky: ArrayLike = False,
    *,
    nan: ArrayLike = False,
    inf: ArrayLike = False,
):
    """Words of `fmt` nearest to `(-1)**sign * magnitude * 2**exponent`, ties to even.

    `magnitude` is below 2**64; `sticky` means that the true value is strictly between `magnitude` and
    `magnitude + 1`, and is only meaningful where at least one bit is rounded away. Subnormal results are
    rounded at their own quantum; overflow gives infinity; zero keeps `sign`. `nan` and `inf` override the
    number with the canonical NaN and with the infinity of that sign; `nan` wins.
    """
    arrays: tuple[np.ndarray, ...] = np.broadcast_arrays(sign, magnitude, exponent, sticky, nan, inf)
    sign, magnitude, exponent, lost, nan, inf = arrays
    magnitude = magnitude.astype(np.uint64)
    lost = lost.astype(bool)
    lowest = 1 - fmt.bias
    leading = np.maximum(exponent.astype(np.int64) + bit_length(magnitude) - 1, lowest)
    drop = leading - fmt.fraction_width - exponent.astype(np.int64)
    drop = np.where((magnitude == 0) & ~lost, 0, drop)
    if np.any(lost & (drop < 1)):
        raise ValueError("sticky is only defined where at least one bit is rounded away")

    # Shifts by 64 and more are undefined: bits that far below go into the sticky bit.
    one = np.uint64(1)
    lost = lost | (magnitude != 0) & (drop > 64) | (magnitude & one != 0) & (drop == 64)
    magnitude = np.where(drop > 64, 0, np.where(drop == 64, magnitude >> one, magnitude)).astype(np.uint64)
    right = np.clip(drop, 0, 63).astype(np.uint64)
    below_half = np.maximum(right, one) - one
    truncated = (magnitude >> right) << np.clip(-drop, 0, 63).astype(np.uint64)
    half = (magnitude >> below_half & one != 0) & (drop > 0)
    rest = (magnitude & ((one << below_half) - one) != 0) | lost
    up = half & (rest | (truncated & one != 0))

    # The hidden one adds 1 to the exponent field, and so does a carry out of the rounding.
    word = ((leading + fmt.bias - 1) << fmt.fraction_width) + truncated.astype(np.int64) + up
    word = np.where((magnitude == 0) & ~lost, 0, np.minimum(word, fmt.infinity))
    word = np.where(inf, fmt.infinity, word).astype(np.uint64)
    word |= sign.astype(np.uint64) << np.uint64(fmt.width - 1)
    return np.where(nan, np.uint64(fmt.nan), word).astype(word_type(fmt))


def is_nan(fmt, bits):
    """Which words are NaNs."""
    return decode(fmt, bits).is_nan


def equal_or_nan(fmt, left, right):
    """Which words are the same bits, any NaN matching any NaN."""
    return (np.asarray(left) == np.asarray(right)) | (is_nan(fmt, left) & is_nan(fmt, right))


def to_float64(fmt, bits):
    """The exact values of words of FP16, BF16 or FP32."""
    number = decode(fmt, bits)
    value = np.ldexp(number.significand.astype(np.float64), number.exponent.astype(np.int32))
    value = np.where(number.is_inf, np.inf, value)
    value = np.where(number.is_nan, np.nan, value)
    return np.copysign(value, np.where(number.sign == 1, -1.0, 1.0))


def from_float64(fmt, value):
    """The words of `fmt` nearest to float64 values, one rounding."""
    number = decode(FP64, np.asarray(value, dtype=np.float64).view(np.uint64))
    return round_pack(fmt, number.sign, number.significand, number.exponent, nan=number.is_nan, inf=number.is_inf)


def encode_positive(fmt, value):
    """The word of a :class:`golden.spec.formats.PositiveFormat` nearest to a number; None if it is beyond all words."""
    if not decode_positive(fmt, 0) <= value <= decode_positive(fmt, (1 << fmt.width) - 1):
        return None
    fraction, exponent = math.frexp(value)
    significand = round(math.ldexp(fraction, fmt.fraction_width + 1))
    # The significand's leading one, or the carry of its rounding, adds 1 to the exponent.
    return (exponent - 2 + fmt.bias << fmt.fraction_width) + significand


def decode_positive(fmt, word):
    """The number of such a word, exactly."""
    exponent, fraction = divmod(word, 1 << fmt.fraction_width)
    return math.ldexp((1 << fmt.fraction_width) + fraction, exponent - fmt.bias - fmt.fraction_width)
