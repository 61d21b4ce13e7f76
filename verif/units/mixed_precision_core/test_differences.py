"""Differences to references, against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from golden.arith.floats import to_float64
from golden.spec.formats import FP16
from golden.spec.mixed_precision import REFERENCE_WIDTH, reference_limit
from golden.units.differences import difference, next_reference
from golden.units.quantizer_unit import quantise

TOP = 1 << REFERENCE_WIDTH - 1


def words_and_references(seed, finest, n=400):
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 1 << 16, n).astype(np.uint16)
    near = np.clip(rng.standard_normal(n) * 2.0 ** (rng.integers(-2, 12, n) - finest), -65504, 65504)
    near = near.astype(np.float16).view(np.uint16)
    words = np.where(rng.random(n) < 0.7, near, words)
    words = np.where(words & 0x7C00 == 0x7C00, 0x3C00, words).astype(np.uint16)
    reference = np.clip(np.rint(to_float64(FP16, words) * 2.0**finest) + rng.integers(-300, 300, n), -TOP, TOP - 1)
    return words[None], reference.astype(np.int64)[None]


@pytest.mark.parametrize("finest", [-15, -3, 0, 5, 13, 22, 23, 24])
@pytest.mark.parametrize("n_levels", [1, 3, 8])
def test_quantising_a_difference_rounds_once(finest, n_levels):
    words, reference = words_and_references(finest + 100, finest)
    delta = difference(words, reference, finest_exponent=finest, n_levels=n_levels)
    limit = reference_limit(n_levels)
    for column in range(words.shape[1]):
        word = words[:, column : column + 1]
        found = quantise(delta[:, column : column + 1], threshold=0x3C00, finest_exponent=finest, n_levels=n_levels)
        unit = Fraction(2) ** finest
        x = max(-limit, min(limit, Fraction(float(to_float64(FP16, word)[0, 0])) * unit))
        exact = (x - int(reference[0, column])) * Fraction(2) ** int(found.exponent[0] - finest)
        largest = Fraction(65504) * Fraction(2) ** int(found.exponent[0])
        assert found.value[0, 0] == max(-127, min(127, round(max(-largest, min(largest, exact)))))


def test_a_zero_difference_is_positive_zero():
    words = np.array([[0x3C00, 0x8000, 0x0000]], np.uint16)
    assert not difference(words, [[32, 0, 0]], finest_exponent=5, n_levels=3).any()


def test_what_is_no_number_becomes_infinite():
    words = np.array([[0x7C00, 0xFC00, 0x7E01, 0xFFFF]], np.uint16)
    assert (difference(words, np.zeros((1, 4), int), finest_exponent=5, n_levels=3) == FP16.infinity).all()


@pytest.mark.parametrize("n_levels", [1, 3, 8])
def test_references_never_overflow_and_end_at_the_activation(n_levels):
    rng = np.random.default_rng(n_levels)
    finest, reference = 12, np.zeros((6, 50), np.int64)
    for _ in range(400):
        words = (rng.standard_normal((6, 50)) * 9).astype(np.float16).view(np.uint16)
        delta = difference(words, reference, finest_exponent=finest, n_levels=n_levels)
        found = quantise(delta, threshold=0x0C00, finest_exponent=finest, n_levels=n_levels)
        reference = next_reference(reference, found, finest_exponent=finest)
        assert -TOP <= reference.min() and reference.max() < TOP
    for _ in range(600):
        delta = difference(words, reference, finest_exponent=finest, n_levels=n_levels)
        found = quantise(delta, threshold=0x0C00, finest_exponent=finest, n_levels=n_levels)
        reference = next_reference(reference, found, finest_exponent=finest)
    x = np.clip(to_float64(FP16, words) * 2.0**finest, -reference_limit(n_levels), reference_limit(n_levels))
    assert np.abs(reference - x).max() <= 0.5


@pytest.mark.parametrize(
    "values, message",
    [
        ({"finest_exponent": 25}, "finest_exponent must be from -15 to 24, not 25"),
        ({"reference": [[32768]]}, "reference must be from -32768 to 32767, not 32768 to 32768"),
        ({"words": [[0x10000]]}, "words must be words of 16 bits, from 0 to 65535, not 65536"),
        ({"words": [[0.5]]}, "words must be integers, the words of the numbers, not float64"),
    ],
)
def test_refusals(values, message):
    legal = {"words": [[0x3C00]], "reference": [[0]], "finest_exponent": 5, "n_levels": 3}
    with pytest.raises((TypeError, ValueError), match=message):
        difference(**legal | values)
