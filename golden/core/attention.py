"""Sparse attention on the accelerator: SDDMM and SpMM bit-exact, the softmax mask, and float64 references."""

import numpy as np

from golden.arith.accumulator import Accumulator
from golden.core.hash_format import decode
from golden.core.spmm import spmm as spmm_by_mask
from golden.units.dot_product_unit import Scores, dot_products

_CHUNK = 1 << 16
"""Products computed at a time: few enough for the arrays to stay in a processor's cache."""


def sddmm(query, key, mask, *, n_lanes, format="fp16", align_width=None, max_terms=None):
    """Scores ``query[i] . key[j]`` where ``mask[i, j]`` is set, as the dot-product units compute them.

    ``query`` [rows, d] and ``key`` [columns, d] are words of the format. A score takes ceil(d / n_lanes) beats, the
    last one zero-padded, and is rounded once, see :func:`golden.units.dot_product_unit.dot_products`. Which
    unit computes it, and when, does not matter. Returns ``Scores(wide, narrow)``, both [rows, columns], +0 outside the
    mask; :func:`golden.core.hash_format.encode` puts either into the banks. Source: DiSC, section IV-C.
    """
    mask = np.asarray(mask, dtype=bool)
    query, key = (_beats(words, n_lanes) for words in (query, key))
    if mask.shape != (len(query), len(key)) or query.shape[1:] != key.shape[1:]:
        raise ValueError(
            f"mask must be [{len(query)}, {len(key)}] and query and key of equal length, got mask {list(mask.shape)}"
        )
    row, column = np.nonzero(mask)
    step = max(1, _CHUNK // query[0].size)
    parts = [
        dot_products(
            query[row[low : low + step]],
            key[column[low : low + step]],
            format=format,
            align_width=align_width,
            max_terms=max_terms,
        )
        for low in range(0, max(1, len(row)), step)
    ]
    return Scores._make(
        None if words[0] is None else _scatter(mask, np.concatenate(words)) for words in zip(*parts, strict=True)
    )


def _beats(words, n_lanes):
    """[n, d] words as [n, beats, n_lanes], zero-padded."""
    words = np.asarray(words)
    words = np.pad(words, ((0, 0), (0, -words.shape[1] % n_lanes)))
    return words.reshape(len(words), -1, n_lanes)


def _scatter(mask, words):
    dense = np.zeros(mask.shape, words.dtype)
    dense[mask] = words
    return dense


_DEFAULT = Accumulator()


def spmm(encoded, value, accumulator=_DEFAULT):
    """``out[i] = sum over j of c[i, j] * value[j]`` as the vector unit's engines compute it: ``(single, rounded)``.

    ``encoded`` is a :class:`golden.core.hash_format.HashEncoded` matrix of words, ``value`` [columns, d] words; engine
    v has bank v. :func:`golden.core.spmm.spmm` says in which order and how exactly the terms are added. The results are
    FP32 words and words of the accumulator's format, [rows, d]. Source: DiSC, section IV-C and figure 14.
    """
    bank_map, value = encoded.bank_map, np.asarray(value)
    if value.ndim != 2 or len(value) != bank_map.n_columns:
        raise ValueError(f"value must be [{bank_map.n_columns}, d], got {list(value.shape)}")
    mask, coefficients = decode(encoded)
    engine, address = bank_map.locate(np.arange(bank_map.n_columns))
    return spmm_by_mask(coefficients, mask, value, engine, address, bank_map.n_banks, accumulator)


def threshold_mask(probabilities, theta):
    """The mask of softmax thresholding, ``P >= theta``, compared exactly; a NaN is below any theta.

    ``probabilities`` are floating-point numbers, or FP16 words (``uint16``). Source: DiSC, section III.
    """
    probabilities = np.asarray(probabilities)
    if probabilities.dtype == np.uint16:
        probabilities = probabilities.view(np.float16)
    return probabilities.astype(np.float64) >= float(theta)


def scores_reference(query, key):
    """``query . key / sqrt(d)`` in float64, [..., rows, columns]."""
    query, key = (np.asarray(operand, dtype=np.float64) for operand in (query, key))
    return query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])


def softmax_reference(scores, mask=None):
    """Softmax over the masked-in elements of each row in float64; zeros elsewhere and in rows without any."""
    scores = np.asarray(scores, dtype=np.float64)
    selected = np.ones(scores.shape, bool) if mask is None else np.asarray(mask, dtype=bool)
    largest = np.max(scores, axis=-1, keepdims=True, where=selected, initial=-np.inf)
    exponentials = np.where(
        selected, np.exp(np.where(selected, scores - np.where(np.isinf(largest), 0, largest), 0)), 0
    )
    total = exponentials.sum(axis=-1, keepdims=True)
    return exponentials / np.where(total > 0, total, 1)


def attention_reference(query, key, value, mask=None):
    """``softmax(query . key / sqrt(d)) . value`` over the mask's elements, in float64."""
    return softmax_reference(scores_reference(query, key), mask) @ np.asarray(value, dtype=np.float64)
