"""The core's memories; every element carries a flag for whether it was written with a defined value."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

__all__ = ["SampledElements", "Memories", "Words", "encoded_matrix"]


@dataclass
class Words:
    """Words and, in the same shape, flags for which of them are defined; the others are don't-cares."""

    data: np.ndarray
    defined: np.ndarray

    @classmethod
    def undefined(cls, *shape, dtype: DTypeLike = np.uint16):
        return cls(np.zeros(shape, dtype), np.zeros(shape, bool))

    @classmethod
    def of(cls, data, dtype: DTypeLike = np.uint16):
        data = np.asarray(data).astype(dtype)
        return cls(data, np.ones(data.shape, bool))

    def __getitem__(self, index):
        return Words(self.data[index], self.defined[index])

    def __setitem__(self, index, words):
        self.data[index] = words.data
        self.defined[index] = words.defined

    def copy(self):
        return Words(self.data.copy(), self.defined.copy())

    def reshape(self, *shape):
        return Words(self.data.reshape(*shape), self.defined.reshape(*shape))

    def transpose(self, *axes):
        return Words(self.data.transpose(*axes), self.defined.transpose(*axes))

    def padded(self, length):
        """Zero-padded to a length along the last axis."""
        fill = [(0, 0)] * (self.data.ndim - 1) + [(0, length - self.data.shape[-1])]
        return Words(np.pad(self.data, fill), np.pad(self.defined, fill, constant_values=True))


class SampledElements(NamedTuple):
    """The selected elements of a hash-encoded matrix, ordered by bank, then row, then slot."""

    row: np.ndarray  # index of the row among those processed
    bank: np.ndarray
    slot: np.ndarray
    position: np.ndarray  # in its bank, counted from 0

    @classmethod
    def of(cls, bits):
        """The set bits of ``bits`` [rows, banks, slots]."""
        bank, row, slot = np.nonzero(bits.transpose(1, 0, 2))
        count = bits.sum(axis=(0, 2))
        return cls(row, bank, slot, np.arange(len(bank)) - np.repeat(np.cumsum(count) - count, count))


def encoded_matrix(memory, first, bits):
    """A hash-encoded matrix in a memory [banks, words] as [rows, banks, slots]; unsampled elements are 0."""
    sampled = SampledElements.of(bits)
    dense = Words.of(np.zeros(bits.shape))
    dense[sampled.row, sampled.bank, sampled.slot] = memory[sampled.bank, first + sampled.position]
    return dense


class Memories:
    """All memories, undefined at first.

    ``imem`` [words, W], ``wmem`` [banks, words, L], ``vmem`` [banks, words, S], ``scores`` and ``probabilities``
    [banks, words], ``partial`` [banks, words] in FP32, ``mask`` [rows, banks * slots] of bits, ``mass`` [tokens].
    """

    def __init__(self, sizes):
        self.sizes = sizes
        banks = sizes.n_banks
        self.imem = Words.undefined(sizes.imem_depth, sizes.row_word)
        self.wmem = Words.undefined(banks, sizes.wmem_depth, sizes.n_lanes)
        self.vmem = Words.undefined(banks, sizes.vmem_depth, sizes.simd_lanes)
        self.scores = Words.undefined(banks, sizes.omem_depth)
        self.probabilities = Words.undefined(banks, sizes.omem_depth)
        self.partial = Words.undefined(banks, sizes.pmem_depth, dtype=np.uint32)
        self.mask = Words.undefined(sizes.mask_rows, banks * sizes.key_slots, dtype=bool)
        self.mass = Words.undefined(sizes.max_tokens)

    def _elements(self, first, stride, rows, n):
        row_word = self.sizes.row_word
        return ((first + np.asarray(rows, np.int64) * stride) * row_word)[:, None] + np.arange(n)

    def rows(self, first, stride, rows, n):
        """The first n elements of rows of a matrix in IMEM, [rows, n]."""
        return self.imem.reshape(-1)[self._elements(first, stride, rows, n)]

    def write_rows(self, first, stride, rows, words, column=0):
        """Replace elements of rows of a matrix in IMEM, from ``column`` on, by ``words`` [rows, n]."""
        self.imem.reshape(-1)[column + self._elements(first, stride, rows, words.data.shape[1])] = words

    def mask_row_numbers(self, mask, rows):
        """Where rows of a mask are in the mask memory: mask 0 has one row for all."""
        rows = np.asarray(rows, np.int64)
        return rows * 0 if mask == 0 else self.sizes.mask_base(mask) + rows

    def mask_bits(self, mask, rows, slots):
        """Bits of rows of a mask, [rows, banks, slots]; bits of higher slots are left out."""
        bits = self.mask[self.mask_row_numbers(mask, rows)]
        return bits.reshape(len(rows), self.sizes.n_banks, self.sizes.key_slots)[:, :, :slots]

    def bank_words(self, memory, first, n_words, slots):
        """A matrix in banks whose word i of slot a is at ``first + i * slots + a``: [banks, slots, n_words, ...]."""
        where = first + np.arange(n_words) * slots + np.arange(slots)[:, None]
        return memory[:, where]
