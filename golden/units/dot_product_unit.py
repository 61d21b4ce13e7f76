"""Bit-exact model of the dot-product unit: aligned integer sums, accumulated and rounded once (NumPy, vectorised)."""

from typing import NamedTuple

import numpy as np

from golden.arith import floats
from golden.spec.dot_product_unit import ALIGNMENT_SLACK_BITS, DotProductUnitParameters
from golden.spec.formats import FP32, float_format

__all__ = ["Scores", "dot_products", "dot_product_stream"]

SLACK = (1 << ALIGNMENT_SLACK_BITS) - 1
"""Largest excess of the alignment exponent over the largest effective exponent: its low bits are set to ones."""


class Scores(NamedTuple):
    """One entry a dot product: `wide` is FP32 or INT32 bits, `narrow` FP16 or BF16 bits (None for INT8)."""

    wide: np.ndarray
    narrow: np.ndarray | None


class _Products(NamedTuple):
    """The products of all beats [beats, lanes], and the properties of each beat."""

    value: np.ndarray  # int64, the signed product of the significands
    exponent: np.ndarray  # int64, the sum of the exponent fields
    alignment_exponent: np.ndarray  # int64 [beats], see dot_products
    is_nan: np.ndarray  # [beats], and so on
    plus_inf: np.ndarray
    minus_inf: np.ndarray


def dot_products(query, key, *, format, align_width=None, max_terms=None):
    """Scores of `query` and `key`, integer arrays [..., beats, lanes] of words; results have the leading shape.

    For `fp16` and `bf16`, with significands of `p` bits and W = `align_width`:

    * Every product is exact. The alignment exponent is the largest effective exponent of the non-zero products of
      this beat and of those before it in the dot product (the exponent that the product of the normalised
      significands has), but at least the one at which every product fits the window exactly; its two low bits are set.
    * The magnitude of each product is shifted to that exponent in a window of W - 1 bits, plus 3 for the slack of the
      alignment exponent, and truncated; the signed magnitudes of a beat are summed exactly.
    * If a beat raises the alignment exponent, the running sum is shifted to it, truncated towards minus infinity; then
      the beat's sum is added.
    * The sum is rounded once to FP32 and, from the same value, once to the input format, to nearest, ties to even.

    `|wide - exact| <= n * 2**(3 - W) * max|a*b| + ulp/2` for n terms: each beat truncates all its products but the
    largest, and either that one or the running sum, by less than one unit of the window. The default W makes the first
    term n * 2**-24 * max|a*b| for FP16 and n * 2**-17 * max|a*b| for BF16: of Gaussian vectors with 64 terms, more
    than 99.8 % give the correctly rounded word of the format with either. FP32 scores of BF16 then have a mean relative
    error of 6e-6 (3e-8 with W = 27). More than `max_terms` terms may wrap. NaN, Inf times zero and infinities of both
    signs give the canonical NaN, else an infinity wins; a sum of zero is +0.

    For `int8` the terms are bytes in two's complement, as uint8 or int8, and the score is exact modulo 2**32.
    """
    query, key = np.broadcast_arrays(query, key)
    *shape, n_beats, n_lanes = query.shape
    count = int(np.prod(shape))
    starts = np.arange(count) * n_beats
    scores = _scores(
        query.reshape(-1, n_lanes),
        key.reshape(-1, n_lanes),
        starts,
        np.full(count, n_beats),
        format,
        align_width,
        max_terms,
    )
    return Scores._make(None if part is None else part.reshape(shape) for part in scores)


def dot_product_stream(query, key, first, last, *, format, align_width=None, max_terms=None):
    """Scores of a stream of beats: `query` and `key` [beats, lanes], `first` and `last` [beats].

    A dot product starts at the beginning, after a `last`, and on `first`, which discards an unfinished sum
    without a score. One score a `last`, in order; beats after the final `last` give none.
    """
    last = np.asarray(last, dtype=bool)
    begin = np.asarray(first, dtype=bool).copy()
    begin[0:1] = True
    begin[1:] |= last[:-1]
    starts_of = np.maximum.accumulate(np.where(begin, np.arange(len(begin)), 0)) if len(begin) else begin
    ends = np.flatnonzero(last)
    starts = starts_of[ends]
    return _scores(np.asarray(query), np.asarray(key), starts, ends - starts + 1, format, align_width, max_terms)


def _scores(query, key, starts, lengths, format, align_width, max_terms):
    parameters = DotProductUnitParameters(
        n_lanes=query.shape[-1], format=format, align_width=align_width, max_terms=max_terms
    )
    if format == "int8":
        query, key = (words.view(np.uint8) if words.dtype == np.int8 else words for words in (query, key))
    for name, words in (("query", query), ("key", key)):
        floats.check_words(name, words, 8 if format == "int8" else 16)
    if format == "int8":
        return _int8_scores(query, key, starts, lengths)
    fmt = float_format(format)
    window = parameters.window_width - 1 + SLACK
    accumulator_width = window + parameters.term_limit.bit_length()

    products = _multiply(fmt, window, query, key)
    total = np.zeros(len(starts), dtype=np.int64)
    alignment_exponent = products.alignment_exponent[starts]
    flags = np.zeros((3, len(starts)), dtype=bool)
    for beat in range(lengths.max(initial=0)):
        active = np.flatnonzero(lengths > beat)
        at = starts[active] + beat
        highest = np.maximum(alignment_exponent[active], products.alignment_exponent[at])
        shifted = total[active] >> np.minimum(highest - alignment_exponent[active], 63)
        addend = _align(fmt, window, products.value[at], highest[:, None] - products.exponent[at]).sum(axis=-1)
        total[active] = _wrap(shifted + addend, accumulator_width)
        alignment_exponent[active] = highest
        flags[:, active] |= np.stack([products.is_nan[at], products.plus_inf[at], products.minus_inf[at]])

    is_nan, plus_inf, minus_inf = flags
    special = {"nan": is_nan | plus_inf & minus_inf, "inf": plus_inf | minus_inf}
    sign = np.where(special["inf"], minus_inf, total < 0)
    magnitude = np.abs(total).view(np.uint64)
    exponent = alignment_exponent - _unit_offset(fmt, window)
    return Scores(
        floats.round_pack(FP32, sign, magnitude, exponent, **special),
        floats.round_pack(fmt, sign, magnitude, exponent, **special),
    )


def _unit_offset(fmt, window):
    """A window aligned to exponent R has the unit 2**(R - this)."""
    return 2 * fmt.bias + window - 2


def _multiply(fmt, window, query, key):
    """Multiply the words of all beats [beats, lanes]."""
    left, right = floats.decode(fmt, query), floats.decode(fmt, key)
    product = left.significand * right.significand
    exponent = left.field + right.field

    hidden = 1 << fmt.fraction_width
    left_small, right_small = left.significand < hidden, right.significand < hidden
    small = np.where(left_small, left.significand, right.significand)
    zeros = fmt.fraction_width + 1 - floats.bit_length(small)
    effective = exponent - np.where(left_small ^ right_small, zeros, 0)
    lowest = (3 + _spare(fmt, window) & ~SLACK) - 1
    alignment_exponent = np.where(product == 0, lowest, np.maximum(effective, lowest)).max(axis=-1) | SLACK

    sign = left.sign ^ right.sign
    infinite = left.is_inf | right.is_inf
    invalid = left.is_nan | right.is_nan | left.is_inf & right.is_zero | left.is_zero & right.is_inf
    return _Products(
        value=np.where(sign == 1, -product, product),
        exponent=exponent,
        alignment_exponent=alignment_exponent,
        is_nan=np.asarray(invalid.any(axis=-1)),
        plus_inf=np.asarray((infinite & (sign == 0)).any(axis=-1)),
        minus_inf=np.asarray((infinite & (sign == 1)).any(axis=-1)),
    )


def _spare(fmt, window):
    """Bits of the window below a product that is aligned to its own exponent (spare bits)."""
    return window - 2 * (fmt.fraction_width + 1)


def _align(fmt, window, value, shift):
    """Signed products aligned in the window: shifted right by `shift` (left if negative) and truncated."""
    placed = np.abs(value) << _spare(fmt, window)
    # Only products with leading zeros, and zeros, are shifted left.
    left = np.clip(-shift, 0, fmt.fraction_width)
    magnitude = np.where(shift > 0, placed >> np.clip(shift, 0, 63), placed << left)
    return np.where(value < 0, -magnitude, magnitude)


def _int8_scores(query, key, starts, lengths):
    signed = [np.asarray(words).astype(np.uint8).view(np.int8).astype(np.int64) for words in (query, key)]
    sums = np.concatenate([[0], np.cumsum((signed[0] * signed[1]).sum(axis=-1))])
    return Scores((sums[starts + lengths] - sums[starts]).astype(np.uint32), None)


def _wrap(value, width):
    """Two's complement of `width` bits."""
    return value << (64 - width) >> (64 - width)
