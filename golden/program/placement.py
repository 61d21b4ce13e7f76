"""Layout of matrices in the core's memories: matrices to load beats, and store beats to matrices."""

import numpy as np

from golden.core.array import run_time_map
from golden.core.hash_format import HashEncoded, bitmap_to_mask, decode, encode, lay_out_rows, mask_to_bitmap
from golden.core.streams import pack, pack_bits, unpack_bits
from golden.spec.sizes import words_for
from golden.units.hash_bank_mapper import BankMap

__all__ = [
    "bank_beats",
    "banked_words",
    "column_map",
    "column_words",
    "decode_sampled",
    "encode_sampled",
    "fp16_words",
    "mask_beats",
    "mask_bits",
    "mask_of_beats",
    "row_beats",
    "weight_words",
]


def fp16_words(array):
    """FP16 words of numbers (floating-point types, rounded), or integers as they are."""
    array = np.asarray(array)
    return array.astype(np.float16).view(np.uint16) if array.dtype.kind == "f" else array.astype(np.uint16)


def _padded(array, length, axis=-1):
    fill = [(0, 0)] * array.ndim
    fill[axis] = (0, length - array.shape[axis])
    return np.pad(array, fill)


def column_map(sizes, n_columns, multiplier):
    """The map of n_columns keys to banks; slots without a key are out of range."""
    full = run_time_map(sizes, n_columns, multiplier)
    return BankMap(n_columns=n_columns, n_banks=sizes.n_banks, multiplier=full.multiplier)


def row_beats(rows, sizes):
    """Rows [rows, n] for IMEM: [rows * words, row_word], zeros after a row's end."""
    rows = fp16_words(rows)
    return _padded(rows, words_for(rows.shape[1], sizes.row_word) * sizes.row_word).reshape(-1, sizes.row_word)


def weight_words(weights, sizes, bias=None):
    """Weights [n_in, n_out] of MATMUL and PROJECT, and their bias [n_out]: words of the banks [words, banks, lanes].

    Column c is slot c // n_banks of bank c % n_banks; the words follow each other beat by beat, in a beat slot by slot.
    """
    weights = fp16_words(weights)
    n_in, n_out = weights.shape
    n_beats = words_for(n_in, sizes.n_lanes)
    weights = _padded(weights, n_beats * sizes.n_lanes, axis=0)
    if bias is not None:
        weights = np.concatenate([weights, fp16_words(bias)[None]])
        n_beats += 1
        weights = _padded(weights, n_beats * sizes.n_lanes, axis=0)
    slots = words_for(n_out, sizes.n_banks)
    words = _padded(weights, slots * sizes.n_banks).reshape(n_beats, sizes.n_lanes, slots, sizes.n_banks)
    return words.transpose(0, 2, 3, 1).reshape(-1, sizes.n_banks, sizes.n_lanes)


def bank_beats(words, sizes):
    """Words of the banks [words, banks, lanes] as beats [n, row_word]."""
    return pack(words.reshape(-1, words.shape[2]), sizes.row_word)


def banked_words(rows, sizes, lanes, multiplier):
    """Keys or values [n, d] in hash order, cut into words of ``lanes``: [chunks * slots, banks, lanes]."""
    rows = fp16_words(rows)
    chunks = words_for(rows.shape[1], lanes)
    rows = _padded(rows, chunks * lanes).reshape(len(rows), chunks, lanes)
    words = lay_out_rows(rows, column_map(sizes, len(rows), multiplier)).transpose(2, 1, 0, 3)
    return words.reshape(-1, sizes.n_banks, lanes)


def column_words(rows, sizes, multiplier):
    """Values [n, d] in hash order, as columns: words of the weight banks [slots * parts * groups, banks, lanes]."""
    rows = fp16_words(rows)
    n_banks, parts = sizes.n_banks, sizes.column_beats
    groups = words_for(rows.shape[1], n_banks)
    rows = _padded(rows, groups * n_banks).reshape(len(rows), groups, n_banks)
    # [banks, slots, groups, columns of a group]: the banks become lanes, and the columns banks.
    words = lay_out_rows(rows, column_map(sizes, len(rows), multiplier)).transpose(1, 2, 3, 0)
    words = _padded(words, parts * sizes.n_lanes).reshape(*words.shape[:3], parts, sizes.n_lanes)
    return words.transpose(0, 3, 1, 2, 4).reshape(-1, n_banks, sizes.n_lanes)


def mask_bits(mask, sizes, multiplier):
    """A mask [rows, columns] in hash order, [rows, banks, key_slots]."""
    mask = np.asarray(mask, bool)
    return _padded(mask_to_bitmap(mask, column_map(sizes, mask.shape[1], multiplier)), sizes.key_slots)


def mask_beats(mask, sizes, multiplier):
    """Rows of a mask for the mask memory: [n, row_word]."""
    return pack_bits(mask_bits(mask, sizes, multiplier).reshape(len(mask), -1), sizes.row_word)


def mask_of_beats(beats, sizes, n_columns, multiplier):
    """The mask [rows, n_columns] whose rows a STORE sent, each in beats of its own."""
    rows = np.asarray(beats, np.uint16).reshape(-1, sizes.mask_pieces, sizes.row_word)
    n = sizes.n_banks * sizes.key_slots
    bits = np.concatenate([unpack_bits(row, 1, n) for row in rows])
    return bitmap_to_mask(bits.reshape(-1, sizes.n_banks, sizes.key_slots), column_map(sizes, n_columns, multiplier))


def encode_sampled(matrix, mask, sizes, multiplier):
    """The selected elements of a matrix [rows, columns] as words of SCORES or PROBABILITIES: [words, banks]."""
    mask = np.asarray(mask, bool)
    return encode(mask, fp16_words(matrix), column_map(sizes, mask.shape[1], multiplier)).values.T


def decode_sampled(words, mask, sizes, multiplier):
    """The matrix [rows, columns] of words of SCORES or PROBABILITIES [words, banks or more]; zeros outside the mask."""
    mask = np.asarray(mask, bool)
    bank_map = column_map(sizes, mask.shape[1], multiplier)
    bitmap = mask_to_bitmap(mask, bank_map)
    return decode(HashEncoded(bank_map, bitmap, np.asarray(words)[:, : sizes.n_banks].T))[1]
