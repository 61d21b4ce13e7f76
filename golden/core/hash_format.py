"""The hash-encoded format of a sparse matrix: values in a bank, and one sub-bitmap a row and bank."""

from dataclasses import dataclass

import numpy as np

from golden.units.hash_bank_mapper import BankMap


@dataclass(frozen=True)
class HashEncoded:
    """A sparse matrix spread over banks; the column of a value follows from its bank and its bit's position.

    ``bitmap[row, bank, address]`` is set where the element in column ``bank_map.column(bank, address)`` is selected.
    ``values[bank]`` holds the selected elements of one bank, row after row and by rising address, at
    ``values[bank, : bitmap[:, bank].sum()]``; the rest of the array is zero.  The layout follows DiSC, section IV-C.
    """

    bank_map: BankMap
    bitmap: np.ndarray
    values: np.ndarray

    def __post_init__(self):
        expected = (self.bank_map.n_banks, self.bank_map.depth)
        if self.bitmap.ndim != 3 or self.bitmap.shape[1:] != expected:
            raise ValueError(f"bitmap must be [rows, {expected[0]}, {expected[1]}], got {list(self.bitmap.shape)}")
        fullest = int(self.counts.sum(axis=0).max(initial=0))
        if self.values.ndim != 2 or self.values.shape[0] != expected[0] or self.values.shape[1] < fullest:
            raise ValueError(f"values must be [{expected[0]}, {fullest} or more], got {list(self.values.shape)}")

    @property
    def counts(self):
        """Selected elements of each row in each bank, ``[rows, n_banks]``."""
        return self.bitmap.sum(axis=2, dtype=np.int64)

    @property
    def row_start(self):
        """Position in each bank of the first value of each row, ``[rows + 1, n_banks]``; the last entry is the end."""
        return np.concatenate([np.zeros((1, self.bank_map.n_banks), np.int64), np.cumsum(self.counts, axis=0)])

    def packed(self):
        """Sub-bitmaps as bytes, address 0 in the least significant bit: ``[rows, n_banks, ceil(depth / 8)]``."""
        return np.packbits(self.bitmap, axis=2, bitorder="little")

    def row(self, row):
        """One row as ``(bank, address, value)`` arrays: bank after bank, by rising address."""
        bank, address = np.nonzero(self.bitmap[row])
        in_bank = np.concatenate([np.arange(count) for count in self.counts[row]])
        return bank, address, self.values[bank, self.row_start[row][bank] + in_bank.astype(np.int64)]


def mask_to_bitmap(mask, bank_map):
    """Column order to hash order: ``[rows, columns]`` to ``[rows, n_banks, depth]``; empty slots are clear."""
    mask = np.asarray(mask, dtype=bool)
    if mask.ndim != 2 or mask.shape[1] != bank_map.n_columns:
        raise ValueError(f"mask must be [rows, {bank_map.n_columns}], got {list(mask.shape)}")
    columns = bank_map.layout().T
    return mask[:, columns] & (columns >= 0)


def bitmap_to_mask(bitmap, bank_map):
    """Hash order to column order, the inverse of :func:`mask_to_bitmap`."""
    bank, address = bank_map.locate(np.arange(bank_map.n_columns))
    return np.asarray(bitmap, dtype=bool)[:, bank, address]


def encode(mask, values, bank_map):
    """Hash-encode the elements of ``values`` ``[rows, columns]``, of any type, selected by ``mask``."""
    values = np.asarray(values)
    bitmap = mask_to_bitmap(mask, bank_map)
    if values.shape != np.shape(mask):
        raise ValueError(f"values must have the mask's shape {list(np.shape(mask))}, got {list(values.shape)}")
    by_bank = values[:, bank_map.layout().T].transpose(1, 0, 2)
    bits = bitmap.transpose(1, 0, 2)
    fill = bits.sum(axis=(1, 2))
    stored = np.zeros((bank_map.n_banks, int(fill.max())), dtype=values.dtype)
    stored[np.arange(stored.shape[1]) < fill[:, None]] = by_bank[bits]
    return HashEncoded(bank_map, bitmap, stored)


def decode(encoded):
    """The mask and the dense matrix, zero outside the mask: ``(mask, values)``, both ``[rows, columns]``."""
    bank_map, bits = encoded.bank_map, encoded.bitmap.transpose(1, 0, 2)
    fill = bits.sum(axis=(1, 2))
    by_bank = np.zeros(bits.shape, dtype=encoded.values.dtype)
    by_bank[bits] = encoded.values[np.arange(encoded.values.shape[1]) < fill[:, None]]
    bank, address = bank_map.locate(np.arange(bank_map.n_columns))
    return bitmap_to_mask(encoded.bitmap, bank_map), by_bank[bank, :, address].T


def lay_out_rows(rows, bank_map, fill=0):
    """K or V rows ``[columns, ...]`` by bank and address, ``[n_banks, depth, ...]``; empty slots hold ``fill``."""
    rows = np.asarray(rows)
    columns = bank_map.layout().T
    laid_out = rows[columns]
    laid_out[columns < 0] = fill
    return laid_out
