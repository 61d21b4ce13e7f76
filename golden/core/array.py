"""What the core's dot-product array computes: MATMUL, PROJECT, SDDMM and WEIGHTED_SUM."""

from typing import Any

import numpy as np

from golden.arith.elementwise import add_fp32, from_fp32
from golden.core.memories import SampledElements, Words, encoded_matrix
from golden.spec.commands import Product, Projection
from golden.spec.formats import FP16
from golden.spec.sizes import words_for
from golden.units.dot_product_unit import dot_products
from golden.units.hash_bank_mapper import BankMap

__all__ = ["matmul", "project", "run_time_map", "sddmm", "weighted_sum"]

_CHUNK = 1 << 16
"""Products computed at a time: few enough for the arrays to stay in a processor's cache."""


def run_time_map(sizes, n_columns, multiplier):
    """The hash of a command: the multiplier's bit 0 is taken as 1, and n_columns is rounded up to full banks.

    The hardware has one multiplier of ``hash_width`` bits; for a smaller w it shifts the index left and the
    address right by the difference s: ``(j << s) * k mod 2**(w + s)`` is ``(j * k mod 2**w) << s``.
    """
    n_columns = sizes.n_banks * sizes.slots_of(n_columns)
    return BankMap(n_columns=n_columns, n_banks=sizes.n_banks, multiplier=multiplier | 1)


def _queries(memories, command, rows, n_lanes):
    """Rows as beats [rows, beats, lanes], filled up with zeros; the beat of a bias multiplies its lane 0 with 1."""
    n_beats = words_for(command.n_in, n_lanes)
    words = memories.rows(command.source, command.source_stride, rows, command.n_in).padded(n_beats * n_lanes)
    if command.has("bias"):
        words = words.padded((n_beats + 1) * n_lanes)
        words.data[:, n_beats * n_lanes] = FP16.one
        n_beats += 1
    return words.reshape(len(rows), n_beats, n_lanes)


def _dots(query, key, query_index, key_index, form="narrow"):
    """Dot products of pairs of rows of ``query`` and ``key`` [n, beats, lanes], in FP16 or, ``wide``, in FP32."""
    step = max(1, _CHUNK // query.data[0].size) if len(query.data) else 1
    values: list[Any] = [np.zeros(0, np.uint16 if form == "narrow" else np.uint32)]
    for low in range(0, len(query_index), step):
        part = slice(low, low + step)
        scores = dot_products(query.data[query_index[part]], key.data[key_index[part]], format="fp16")
        values.append(getattr(scores, form))
    whole = [words.defined.all(axis=(1, 2)) for words in (query, key)]
    return Words(np.concatenate(values), whole[0][query_index] & whole[1][key_index])


def _columns(memories, command, query, n_columns, form="narrow"):
    """Queries [rows, beats, lanes] times n_columns columns in the weight banks, [rows, n_columns]."""
    sizes = memories.sizes
    slots = words_for(n_columns, sizes.n_banks)
    weights = memories.bank_words(memories.wmem, command.bank_address, query.data.shape[1], slots)
    column = np.arange(n_columns)
    weights = weights[column % sizes.n_banks, column // sizes.n_banks]
    n_rows = len(query.data)
    pairs = np.divmod(np.arange(n_rows * n_columns), n_columns)
    return _dots(query, weights, *pairs, form).reshape(n_rows, n_columns)


def _write_columns(memories, command, rows, product, n_beats):
    """A product into IMEM, in whole groups of n_banks elements as far as the row's words go: the rest is zeros."""
    sizes, n_columns = memories.sizes, product.data.shape[1]
    groups = words_for(n_columns, sizes.n_banks) * sizes.n_banks
    row_end = words_for(command.column + n_columns, sizes.row_word) * sizes.row_word
    product = product.padded(min(groups, row_end - command.column))
    memories.write_rows(command.destination, command.destination_stride, rows, product, command.column)
    return {"array_beats": len(rows) * n_columns * n_beats}


def _product(memories, command, rows, query, n_columns):
    """Queries times columns, whole or as a piece of a sum, to where it belongs; counts."""
    n_beats = query.data.shape[1]
    if command.function == Product.WHOLE:
        product = _columns(memories, command, query, n_columns)
        return _write_columns(memories, command, rows, product, n_beats)
    sums = _columns(memories, command, query, n_columns, "wide")
    column = np.arange(n_columns)
    slots = words_for(n_columns, memories.sizes.n_banks)
    where = (
        column % memories.sizes.n_banks,
        command.source_2 + np.arange(len(rows))[:, None] * slots + column // memories.sizes.n_banks,
    )
    if command.function != Product.FIRST:
        before = memories.partial[where]
        sums = Words(add_fp32(before.data, sums.data), before.defined & sums.defined)
    if command.function == Product.LAST:
        product = Words(from_fp32(sums.data).astype(np.uint16), sums.defined)
        return _write_columns(memories, command, rows, product, n_beats)
    memories.partial[where] = sums
    return {"array_beats": len(rows) * n_columns * n_beats}


def matmul(memories, command, rows):
    """Rows times weights into IMEM, or a piece of that product."""
    query = _queries(memories, command, rows, memories.sizes.n_lanes)
    return _product(memories, command, rows, query, command.n_out)


def weighted_sum(memories, command, rows, bits):
    """Probabilities under ``bits`` [rows, banks, slots] times columns of values: a slot is one or more beats.

    Lane l of part p of a slot is the element of bank ``p * n_lanes + l``; a probability that the mask has not selected
    is 0, and so is the query in lanes without a bank.
    """
    sizes = memories.sizes
    lanes, n_beats = sizes.column_beats * sizes.n_lanes, bits.shape[2] * sizes.column_beats
    words = encoded_matrix(memories.probabilities, command.source, bits)
    query = words.reshape(bits.shape).transpose(0, 2, 1).padded(lanes).reshape(len(rows), n_beats, sizes.n_lanes)
    return _product(memories, command, rows, query, command.n_in)


def project(memories, command, rows):
    """All rows times weights into the banks of keys or values; slots without a row and the padding get zeros."""
    sizes, slots = memories.sizes, memories.sizes.slots_of(command.n_rows)
    query = _queries(memories, command, rows, sizes.n_lanes)
    product = _columns(memories, command, query, command.n_out)
    columns, exists = run_time_map(sizes, command.n_rows, command.multiplier).column(
        np.arange(sizes.n_banks)[:, None], np.arange(slots)
    )
    exists &= columns < command.n_rows
    placed = product[np.where(exists, columns, 0)]  # [banks, slots, n_out]
    placed.data[~exists], placed.defined[~exists] = 0, True
    if command.function == Projection.COLUMNS:
        _place_columns(memories, command.destination, placed)
    else:
        memory, lanes = {
            Projection.KEYS: (memories.wmem, sizes.n_lanes),
            Projection.VALUES: (memories.vmem, sizes.simd_lanes),
        }[command.function]
        chunks = words_for(command.n_out, lanes)
        where = command.destination + np.arange(chunks) * slots + np.arange(slots)[:, None]
        memory[:, where] = placed.padded(chunks * lanes).reshape(sizes.n_banks, slots, chunks, lanes)
    return {"array_beats": len(rows) * command.n_out * query.data.shape[1]}


def _place_columns(memories, first, placed):
    """Values [banks, slots, n] as columns: column c is slot c // n_banks of unit c % n_banks."""
    sizes = memories.sizes
    n_banks, slots, n = placed.data.shape
    groups = words_for(n, n_banks)
    words = placed.padded(groups * n_banks).reshape(n_banks, slots, groups, n_banks)
    lanes = sizes.column_beats * sizes.n_lanes
    words = words.transpose(3, 1, 2, 0).padded(lanes)  # [units, slots, groups, lanes]
    words = words.reshape(n_banks, slots, groups, sizes.column_beats, sizes.n_lanes)
    beat = np.arange(slots)[:, None, None] * sizes.column_beats + np.arange(sizes.column_beats)
    memories.wmem[:, first + beat * groups + np.arange(groups)[:, None]] = words


def sddmm(memories, command, rows, bits):
    """Scores of rows with the keys selected by ``bits`` [rows, banks, slots]."""
    sizes = memories.sizes
    sampled, slots = SampledElements.of(bits), bits.shape[2]
    query = _queries(memories, command, rows, sizes.n_lanes)
    n_beats = query.data.shape[1]
    keys = memories.bank_words(memories.wmem, command.bank_address, n_beats, slots)
    keys = keys.reshape(-1, n_beats, sizes.n_lanes)
    scores = _dots(query, keys, sampled.row, sampled.bank * slots + sampled.slot)
    memories.scores[sampled.bank, command.destination + sampled.position] = scores
    n_scores = len(sampled.row)
    return {
        "array_beats": n_scores * n_beats,
        "scores": n_scores,
        "skipped_scores": len(rows) * command.n_out - n_scores,
    }
