"""DSTAR's array of 2-bit by 8-bit products, bit-exact: sums of a tile, cycles, outputs.

Defines ``mixed_precision_array``. The array takes up to four slices of the same key a clock, with the weight rows of
their channels; where the key rises the sums are shifted left first, one bit a clock.
"""

from typing import NamedTuple

import numpy as np

from golden.arith.elementwise import add_fp32
from golden.arith.floats import check_words, decode, round_pack
from golden.spec.formats import FP16, FP32
from golden.spec.mixed_precision import GROUP, KEY_OFFSET, MAX_SLICES
from golden.spec.mixed_precision_array import ArrayParameters
from golden.units.quantizer_unit import slices

__all__ = ["Schedule", "accumulate", "final_exponent", "multiply", "schedule", "tile_sums"]


class Schedule(NamedTuple):
    """Cycles of a tile: groups of slices, and the shifts before each."""

    groups: np.ndarray  # int64 [groups], first entry of each group
    sizes: np.ndarray  # int64 [groups], entries in it, 1 to 4
    shifts: np.ndarray  # int64 [groups], clocks of shifting before it

    @property
    def clocks(self):
        return len(self.groups) + int(self.shifts.sum())

    @property
    def utilisation(self):
        """Share of the array's 2-bit products that were used."""
        return int(self.sizes.sum()) / (GROUP * self.clocks) if self.clocks else 0.0


def schedule(entries):
    """The groups of a tile's :class:`golden.units.quantizer_unit.Entries`."""
    starts = np.flatnonzero(np.diff(entries.key, prepend=-1)) if len(entries.key) else np.zeros(0, np.int64)
    ends = np.append(starts[1:], len(entries.key))[: len(starts)]
    groups = np.concatenate(
        [np.zeros(0, np.int64), *(np.arange(*pair, GROUP) for pair in zip(starts, ends, strict=True))]
    )
    sizes = np.diff(groups, append=len(entries.key))
    return Schedule(groups.astype(np.int64), sizes, entries.shift[groups.astype(np.int64)])


def _check_tile(quantised, entries, weights):
    """Refuse tiles and weights that no array takes."""
    weights = np.asarray(weights)
    n_channels, n_rows = np.shape(quantised.value)
    if weights.dtype.kind not in "iu":
        raise TypeError(f"weights must be integers, not {weights.dtype}")
    if weights.ndim != 2 or len(weights) != n_channels:
        raise ValueError(f"weights must have {n_channels} rows, one a channel, not shape {weights.shape}")
    if weights.size and not (-128 <= weights.min() and weights.max() <= 127):
        wrong = weights.min() if weights.min() < -128 else weights.max()
        raise ValueError(f"weights must be from -128 to 127, not {wrong}")
    levels = 1 + (int(entries.key.max()) - KEY_OFFSET if len(entries.key) else 0)
    ArrayParameters(n_rows=n_rows, n_columns=1, n_channels=n_channels, n_levels=max(1, levels))
    if np.any(np.diff(entries.key) < 0):
        raise ValueError("entries must be in the order of rising keys")
    if np.any(quantised.n_slices > MAX_SLICES):
        raise ValueError(f"n_slices must be at most {MAX_SLICES}, not {quantised.n_slices.max()}")


def tile_sums(quantised, entries, weights):
    """Sums [G, columns] of a tile under ``weights`` [channels, columns] (INT8), in units of the last key; int64."""
    _check_tile(quantised, entries, weights)
    codes = slices(quantised)
    sums = np.zeros((codes.shape[-1], np.shape(weights)[1]), np.int64)
    weights = np.asarray(weights, np.float64)  # sums of at most 32 bits: exact, and much faster than integers
    starts = np.flatnonzero(np.diff(entries.key, prepend=-1))
    for first, last in zip(starts, np.append(starts[1:], len(entries.key))[: len(starts)], strict=True):
        chosen = slice(first, last)  # all groups of one key
        digits = codes[entries.vector[chosen], entries.slice_index[chosen]]
        digits = np.where(entries.is_top[chosen, None] & (digits >= 2), digits - 4, digits)
        products = digits.T.astype(np.float64) @ weights[entries.vector[chosen]]
        sums = (sums << entries.shift[first]) + products.astype(np.int64)
    return sums


def final_exponent(entries, *, finest_exponent, n_levels):
    """A tile's sums represent ``sums / 2**exponent``; 0 for a tile without slices, whose sums are zero."""
    if not len(entries.key):
        return 0
    return int(entries.key[-1]) - KEY_OFFSET + finest_exponent - n_levels + 1


def accumulate(outputs, sums, exponent, weight_scales):
    """Inverse quantisation onto FP32 words ``outputs`` [G, columns]: the new words.

    ``outputs + sums * weight_scales / 2**exponent``, where ``weight_scales`` are FP16 words, one a column; the product
    is rounded once to FP32, then the sum once, ties to even.
    """
    check_words("weight_scales", weight_scales, FP16.width)
    check_words("outputs", outputs, FP32.width)
    scale = decode(FP16, weight_scales)
    product = round_pack(
        FP32,
        (sums < 0) ^ (scale.sign == 1),
        np.abs(sums) * scale.significand,
        scale.exponent - exponent,
        nan=scale.is_nan | scale.is_inf & (sums == 0),
        inf=scale.is_inf,
    )
    return add_fp32(outputs, product)


def multiply(quantised, entries, weights, weight_scales, outputs, *, finest_exponent, n_levels):
    """One tile through the array: the new ``outputs`` [G, columns], FP32 words."""
    sums = tile_sums(quantised, entries, weights)
    exponent = final_exponent(entries, finest_exponent=finest_exponent, n_levels=n_levels)
    return accumulate(outputs, sums, exponent, weight_scales)
