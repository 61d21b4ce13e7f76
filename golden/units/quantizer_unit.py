"""The quantiser of DSTAR's mixed-precision differences (FMDQ), bit-exact: scale, precision, slices, sorted entries.

Defines ``quantizer_unit``. A tile is a sequence of vectors, one a channel, of G FP16 differences each.
"""

from typing import NamedTuple

import numpy as np

from golden.arith.floats import bit_length, check_words, decode, round_pack
from golden.spec.formats import FP16
from golden.spec.mixed_precision import CEILINGS, FINEST_EXPONENTS, KEY_OFFSET, MAX_SLICES

__all__ = ["Entries", "Quantised", "dynamic_exponent", "encode", "quantise", "reconstruct", "slices"]


class Quantised(NamedTuple):
    """Vectors with a scale each: ``value / 2**exponent`` is the number that a value represents."""

    value: np.ndarray  # int64 [..., channels, G], from -127 to 127
    exponent: np.ndarray  # int64 [..., channels]
    n_slices: np.ndarray  # int64 [..., channels], 0 where all values are zero
    error: np.ndarray  # bool [..., channels], the vector has a NaN or an infinity: its values are zero


class Entries(NamedTuple):
    """The slices of one tile in array order: by rising key, then by arrival."""

    vector: np.ndarray  # position of the vector in the tile
    slice_index: np.ndarray  # index of the slice in its vector, 0 the lowest
    address: np.ndarray  # of the slice, counted over the tile in the order of arrival, lowest slice first
    key: np.ndarray
    shift: np.ndarray  # by how much the running sum is shifted left before this slice
    is_top: np.ndarray  # the slice is signed


def quantise(words, *, threshold, finest_exponent, n_levels, full_precision=False):
    """Quantise FP16 words [..., channels, G], each channel by itself: :class:`Quantised`.

    With M the largest magnitude of a channel, its precision is 2 bits up to ``threshold`` (an FP16 word, positive and
    normal), 4 up to 4 times, 6 up to 16 times that, and 8 bits above, or always 8 with ``full_precision``. The exponent
    is the largest one for which M is not clipped, ``round(M * 2**exponent) <= CEILINGS[precision]``, yet at most
    ``finest_exponent`` and at least ``finest_exponent - n_levels + 1``. Values are ``round(x * 2**exponent)``, ties to
    even, clipped to 127 in magnitude; then as many slices are used as the largest of them needs.
    """
    _check(threshold, finest_exponent, n_levels)
    check_words("words", words, FP16.width)
    words = np.asarray(words, np.uint16)
    number = decode(FP16, words)
    error = np.asarray((number.is_nan | number.is_inf).any(axis=-1))
    largest = np.where(error, 0, (words & 0x7FFF).max(axis=-1)).astype(np.int64)
    bounds = [min(threshold + (2 * n << FP16.fraction_width), FP16.infinity) for n in range(MAX_SLICES - 1)]
    precision = sum((largest > bound).astype(np.int64) for bound in bounds)
    if full_precision:
        precision = np.full_like(precision, MAX_SLICES - 1)
    exponent = np.clip(_without_clipping(largest, precision), finest_exponent - n_levels + 1, finest_exponent)
    value = _scaled(number, exponent[..., None])
    value = np.where(error[..., None], 0, value)
    peak = np.abs(value).max(axis=-1)
    n_slices = (peak[..., None] > np.array((0, *CEILINGS[:-1]))).sum(axis=-1)
    if full_precision:
        n_slices = np.where(peak > 0, MAX_SLICES, 0)
    return Quantised(value, exponent, n_slices, error)


def _check(threshold, finest_exponent, n_levels):
    if not 1 << FP16.fraction_width <= threshold < FP16.infinity:
        raise ValueError(f"threshold must be a positive normal FP16 word, not {threshold!r}")
    low, high = FINEST_EXPONENTS
    if not low <= finest_exponent <= high:
        raise ValueError(f"finest_exponent must be from {low} to {high}, not {finest_exponent!r}")
    if n_levels < 1:
        raise ValueError(f"n_levels must be at least 1, not {n_levels!r}")


def _without_clipping(magnitude, precision):
    """The largest exponent with ``round(M * 2**exponent) <= ceiling``, exact.

    The ceiling is odd, so a tie above it would be rounded up: M must stay below the ceiling and a half, which is
    ``1.11...1 * 2**(2 * precision)`` in binary with ``2 * precision + 1`` fraction bits.
    """
    number = decode(FP16, magnitude)
    top = bit_length(number.significand) - 1  # position of the leading one; -1 for zero
    leading = np.where(number.is_zero, -(1 << 20), number.exponent + top)
    fraction_bits = 2 * precision + 1
    normalised = number.significand << (FP16.fraction_width - np.maximum(top, 0))
    middle = (2 << FP16.fraction_width) - (1 << (FP16.fraction_width - fraction_bits))
    return 2 * precision - leading - (normalised >= middle)


def _scaled(number, exponent):
    """``round(x * 2**exponent)`` of decoded words, ties to even, clipped to the largest ceiling."""
    shift = number.exponent + exponent
    left = np.clip(shift, 0, MAX_SLICES * 2 + FP16.fraction_width)
    right = np.clip(-shift, 0, 40)
    whole = number.significand << left >> right
    rest = number.significand & ((1 << right) - 1)
    half = np.where(right > 0, 1 << np.maximum(right - 1, 0), 0)
    up = (right > 0) & ((rest > half) | ((rest == half) & (whole & 1 == 1)))
    magnitude = np.minimum(whole + up, CEILINGS[-1])
    return np.where(number.sign == 1, -magnitude, magnitude)


def dynamic_exponent(words):
    """The dynamic base of each tile [..., channels, G]: the exponent at which its smallest channel has 2 bits."""
    number = decode(FP16, np.asarray(words, np.uint16) & 0x7FFF)
    finite = ~(number.is_nan | number.is_inf).any(axis=-1)
    largest = (np.asarray(words, np.int64) & 0x7FFF).max(axis=-1)
    exponents = np.where(finite & (largest > 0), _without_clipping(largest, 0), FINEST_EXPONENTS[0])
    return np.clip(exponents.max(axis=-1), *FINEST_EXPONENTS)


def slices(quantised):
    """Slices [..., channels, MAX_SLICES, G] as unsigned 2-bit codes; those above ``n_slices`` are the sign's copies."""
    shifts = 2 * np.arange(MAX_SLICES)[:, None]
    return quantised.value[..., None, :] >> shifts & 3


def reconstruct(quantised):
    """The represented numbers as FP16 words, rounded once to nearest even if FP16 cannot hold them."""
    value, exponent = quantised.value, quantised.exponent[..., None]
    return round_pack(FP16, value < 0, np.abs(value), -exponent)


def encode(quantised, *, finest_exponent, n_levels):
    """The entries of one tile, ``quantised`` [channels, G], in the order for the array: :class:`Entries`."""
    level = quantised.exponent - (finest_exponent - n_levels + 1)
    first = np.cumsum(quantised.n_slices) - quantised.n_slices
    vector = np.repeat(np.arange(len(level)), quantised.n_slices)
    address = np.arange(len(vector))
    slice_index = address - first[vector]
    key = level[vector] - 2 * slice_index + KEY_OFFSET
    order = np.argsort(key, kind="stable")
    key = key[order]
    return Entries(
        vector[order],
        slice_index[order],
        address[order],
        key,
        np.diff(key, prepend=key[:1]),
        slice_index[order] == quantised.n_slices[vector[order]] - 1,
    )
