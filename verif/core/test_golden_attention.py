"""SDDMM and SpMM against the units' own models and against float64; softmax and its mask against definitions."""

import math

import numpy as np
import pytest

from golden.arith.accumulator import Accumulator
from golden.arith.floats import from_float64, to_float64
from golden.core import attention, hash_format
from golden.spec.dot_product_unit import DEFAULT_ALIGN_WIDTHS
from golden.spec.formats import FORMATS
from golden.spec.hash_bank_mapper import HASHES
from golden.spec.vector_operations import Scope, VectorOp
from golden.units.dot_product_unit import dot_products
from golden.units.hash_bank_mapper import BankMap
from golden.units.vector_unit import Commands, VectorUnit


def random_words(rng, fmt, *shape):
    return from_float64(FORMATS[fmt], rng.normal(size=shape))


@pytest.mark.parametrize("fmt", ["fp16", "bf16"])
@pytest.mark.parametrize("n_lanes, length", [(1, 3), (4, 8), (5, 12), (64, 32)])
def test_sddmm_is_the_dot_product_at_the_mask(fmt, n_lanes, length, monkeypatch):
    monkeypatch.setattr(attention, "_CHUNK", 256)
    rng = np.random.default_rng(1)
    query, key = random_words(rng, fmt, 9, length), random_words(rng, fmt, 14, length)
    mask = rng.random((9, 14)) < 0.5
    scores = attention.sddmm(query, key, mask, n_lanes=n_lanes, format=fmt)
    n_beats = -(-length // n_lanes)
    for row, column in np.argwhere(mask):
        beats = np.zeros((2, n_beats * n_lanes), np.uint16)
        beats[:, :length] = query[row], key[column]
        one = dot_products(*beats.reshape(2, n_beats, n_lanes), format=fmt)
        assert (one.wide, one.narrow) == (scores.wide[row, column], scores.narrow[row, column])
    assert not scores.wide[~mask].any() and not scores.narrow[~mask].any()
    left, right = (to_float64(FORMATS[fmt], words) for words in (query, key))
    exact = np.where(mask, left @ right.T, 0)
    largest = np.abs(left[:, None] * right).max(axis=2)
    bound = length * 2.0 ** (3 - DEFAULT_ALIGN_WIDTHS[fmt]) * largest + 2.0**-24 * np.abs(exact)
    assert (np.abs(scores.wide.view(np.float32) - exact) <= bound).all()


def test_sddmm_of_integers_is_exact():
    rng = np.random.default_rng(2)
    query, key = (rng.integers(-128, 128, size=(n, 20)) for n in (6, 7))
    mask = rng.random((6, 7)) < 0.5
    words = [operand.astype(np.int8).view(np.uint8) for operand in (query, key)]
    scores = attention.sddmm(*words, mask, n_lanes=8, format="int8")
    assert scores.narrow is None
    assert np.array_equal(scores.wide.view(np.int32), np.where(mask, query @ key.T, 0))


def test_sddmm_with_an_empty_mask_and_a_wrong_one():
    words = np.ones((3, 4), np.uint16)
    scores = attention.sddmm(words, words, np.zeros((3, 3), bool), n_lanes=2)
    assert scores.wide.shape == (3, 3) and not scores.wide.any()
    with pytest.raises(ValueError, match=r"mask must be \[3, 3\]"):
        attention.sddmm(words, words, np.zeros((3, 2), bool), n_lanes=2)


@pytest.mark.parametrize("fmt", ["fp16", "bf16"])
@pytest.mark.parametrize("name", HASHES)
@pytest.mark.parametrize("n_columns, n_banks, density", [(32, 4, 0.4), (21, 8, 0.2), (5, 1, 1.0), (8, 8, 0.1)])
def test_spmm_of_a_hash_encoded_matrix(fmt, name, n_columns, n_banks, density):
    rng = np.random.default_rng(3)
    bank_map = BankMap(n_columns=n_columns, n_banks=n_banks, hash=name)
    mask = rng.random((13, n_columns)) < density
    mask[4] = False
    coefficient, value = random_words(rng, fmt, *mask.shape), random_words(rng, fmt, n_columns, 6)
    encoded = hash_format.encode(mask, coefficient, bank_map)
    single, rounded = attention.spmm(encoded, value, Accumulator(format=fmt))
    assert not single[4].any() and not rounded[4].any()

    # What the engines do, from the sub-bitmaps and the banks alone.
    unit = VectorUnit(n_engines=n_banks, n_lanes=6, bank_depth=bank_map.depth, format=fmt)
    laid_out = hash_format.lay_out_rows(value, bank_map)
    for row in range(len(mask)):
        commands = Commands.empty(bank_map.depth, n_banks, 6)
        commands.operation[:], commands.scope[:], commands.last[-1] = VectorOp.SPMM, Scope.LANES, True
        commands.address[:] = np.arange(bank_map.depth)[:, None]
        commands.enable[:] = encoded.bitmap[row].T
        bank, address, words = encoded.row(row)
        commands.a[address, bank, 0] = words
        results = unit.execute(commands, laid_out.copy())
        assert np.array_equal(results.single[0, :6], single[row])
        assert np.array_equal(results.rounded[0, :6], rounded[row])


def test_spmm_of_specials_and_wrong_shapes():
    bank_map = BankMap(n_columns=4, n_banks=2)
    value = np.array([[0x7C00], [0x3C00], [0xFC00], [0x7E00]], np.uint16)
    mask = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]], bool)
    encoded = hash_format.encode(mask, np.full(mask.shape, 0x3C00, np.uint16), bank_map)
    assert attention.spmm(encoded, value)[1].ravel().tolist() == [0x7C00, 0x7E00, 0x3C00, 0x7E00]
    with pytest.raises(ValueError, match=r"value must be \[4, d\], got \[3, 1\]"):
        attention.spmm(encoded, value[:3])


def test_softmax_reference():
    rng = np.random.default_rng(4)
    scores, mask = rng.normal(scale=20, size=(2, 7, 11)), rng.random((2, 7, 11)) < 0.4
    mask[0, 3] = False
    result = attention.softmax_reference(scores, mask)
    for index in np.ndindex(2, 7):
        kept = scores[index][mask[index]]
        exact = np.zeros(11)
        if len(kept):
            exact[mask[index]] = [math.exp(s - kept.max()) / math.fsum(np.exp(kept - kept.max())) for s in kept]
        assert np.allclose(result[index], exact, rtol=1e-14, atol=0)
    assert np.allclose(attention.softmax_reference(scores).sum(axis=-1), 1)
    infinite = attention.softmax_reference([[-np.inf, 0.0], [-np.inf, -np.inf]], [[True, True], [True, True]])
    assert infinite.tolist() == [[0, 1], [0, 0]]


def test_threshold_mask_is_exact_and_inclusive():
    theta = 2.0**-9
    words = np.array([0x1800, 0x17FF, 0x1801, 0x7E00, 0x0000, 0x3C00], np.uint16)
    assert words.view(np.float16)[0] == theta
    expected = [True, False, True, False, False, True]
    assert attention.threshold_mask(words, theta).tolist() == expected
    assert attention.threshold_mask(words.view(np.float16), theta).tolist() == expected
    # A threshold between two FP16 numbers is not rounded to one of them.
    assert attention.threshold_mask(words, theta * (1 + 2.0**-20)).tolist() == [False, False, True, False, False, True]


def test_attention_reference_under_a_mask():
    rng = np.random.default_rng(5)
    query, key, value = rng.normal(size=(3, 6, 4))
    mask = rng.random((6, 6)) < 0.5
    mask[2] = False
    out = attention.attention_reference(query, key, value, mask)
    for row in range(6):
        weights = np.exp(query[row] @ key.T / 2) * mask[row]
        assert np.allclose(out[row], weights @ value / weights.sum() if mask[row].any() else 0)
