"""Random contents for the core's memories: numbers of moderate size with a few special ones, masks, token lists."""

import numpy as np

from golden.program.placement import fp16_words

__all__ = ["random_bits", "random_mask", "random_tokens", "random_words"]

_SPECIAL = np.array(
    [0x0000, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7BFF, 0xFBFF, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00],
    np.uint16,
)
"""Zeros, infinities, NaNs, the largest and smallest numbers, ones."""


def random_words(rng, shape, special_share=0.0):
    """FP16 words: normal numbers whose size differs from array to array, some of them replaced by special ones."""
    words = fp16_words(rng.normal(size=shape) * 2.0 ** rng.integers(-3, 2))
    return np.where(rng.random(shape) < special_share, rng.choice(_SPECIAL, size=shape), words)


def random_mask(rng, n_rows, n_columns):
    """A mask: all zeros, all ones, sparse, or with popular columns; with some empty and some full rows."""
    kind = rng.random()
    if kind < 0.08:
        return np.zeros((n_rows, n_columns), bool)
    if kind < 0.25:
        return np.ones((n_rows, n_columns), bool)
    popular = rng.random(n_columns) if kind < 0.6 else np.full(n_columns, rng.random())
    mask = rng.random((n_rows, n_columns)) < popular
    row = rng.random(n_rows)
    mask[row < 0.1] = False
    mask[row > 0.95] = True
    return mask


def random_bits(rng, n_rows, n_bits):
    """Rows of the mask memory without regard to keys: also bits of slots that have none."""
    return rng.random((n_rows, n_bits)) < rng.random()


def random_tokens(rng, n_rows):
    """A token list for n_rows rows: none, all, some in order, or any, also twice."""
    kind = rng.random()
    if kind < 0.15:
        return np.zeros(0, np.int64)
    if kind < 0.3:
        return np.arange(n_rows)
    if kind < 0.8:
        return np.flatnonzero(rng.random(n_rows) < rng.random())
    return rng.integers(0, n_rows, size=rng.integers(0, n_rows, endpoint=True))
