"""DSTAR's mixed precision (section 3.1): precisions, slices, levels of scale, and the keys by which slices are sorted.

A quantised vector has 2, 4, 6 or 8 bits, two's complement, cut into slices of two bits: ``q = sum(slice[m] * 4**m)``,
the top slice signed (-2 to 1), the others from 0 to 3. Its scale is ``2**exponent``; ``level`` numbers the exponents
of a tile from the smallest one, ``exponent = finest_exponent - (n_levels - 1) + level``. Slice m has the same
weight as the lowest slice of a vector ``2 * m`` levels below: its ``key`` is ``level - 2 * m + KEY_OFFSET``, the sort
key; a sum over slices with rising keys is shifted left by the difference of keys.
"""

__all__ = [
    "CEILINGS",
    "FINEST_EXPONENTS",
    "GROUP",
    "KEY_OFFSET",
    "MAX_SLICES",
    "REFERENCE_GUARD",
    "REFERENCE_WIDTH",
    "SLICE_WIDTH",
    "n_keys",
    "reference_limit",
    "sum_width",
]

SLICE_WIDTH = 2
GROUP = 4
"""Slices that enter the array in one clock."""
MAX_SLICES = 4
CEILINGS = (1, 7, 31, 127)
"""The largest magnitude of 1, 2, 3 and 4 slices: symmetric, so that negation does not overflow."""

FINEST_EXPONENTS = (-15, 24)
"""The least and the largest finest exponent: beyond 24 all FP16 numbers are whole, beyond -15 none reaches one half."""

KEY_OFFSET = 2 * (MAX_SLICES - 1)
"""Makes the key of the top slice of an 8-bit vector at level 0 zero."""


REFERENCE_WIDTH = 16
"""Bits of a reference: the sum of an activation's quantised differences, in units of the finest scale."""

REFERENCE_GUARD = 2
"""Bits of a difference below the finest scale: one half, and one for all that is below."""


def reference_limit(n_levels):
    """Activations are limited to so many units of the finest scale.

    A difference is rounded to at most half a unit of the coarsest scale beyond, so that references stay in 16 bits.
    """
    return (1 << REFERENCE_WIDTH - 1) - (1 << n_levels)


def n_keys(n_levels):
    """How many different keys slices can have."""
    return n_levels + KEY_OFFSET


def sum_width(n_channels, n_levels, weight_width=8):
    """Bits of a sum over a tile of ``n_channels`` vectors that no data can overflow.

    Each vector adds at most ``127 * 2**(weight_width - 1)`` in units of its own scale, and at most ``n_levels - 1``
    shifts follow its lowest slice. Before that slice it is cut off to at most ``128 / 4**m`` of a unit ``4**m`` times
    larger.
    """
    largest = n_channels * CEILINGS[-1] * (1 << (weight_width - 1)) << (n_levels - 1)
    return largest.bit_length() + 1
