"""The rounding model against NumPy's own conversions and against nearest-neighbour search in fractions."""

from fractions import Fraction

import numpy as np
import pytest

from golden.arith import floats
from golden.arith.floats import word_type
from golden.spec.formats import BF16, FP16, FP32

SEED = 5


def test_all_halves_decode_as_numpy_does():
    words = np.arange(1 << 16, dtype=np.uint16)
    value, expected = floats.to_float64(FP16, words), words.view(np.float16).astype(np.float64)
    assert np.array_equal(value, expected, equal_nan=True)
    assert np.array_equal(np.signbit(value[expected == 0]), np.signbit(expected[expected == 0]))
    assert floats.equal_or_nan(FP16, floats.from_float64(FP16, value), words).all()


def test_all_bfloats_are_the_upper_half_of_singles():
    words = np.arange(1 << 16, dtype=np.uint16)
    value = floats.to_float64(BF16, words)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        single = (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    assert np.array_equal(value, single, equal_nan=True)
    assert floats.equal_or_nan(BF16, floats.from_float64(BF16, value), words).all()


def doubles(kind, count=200_000):
    rng = np.random.default_rng(SEED)
    if kind == "any":
        return rng.integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64)
    if kind == "single_range":
        return rng.standard_normal(count) * 2.0 ** rng.integers(-160, 140, count)
    if kind == "half_range":
        return rng.standard_normal(count) * 2.0 ** rng.integers(-30, 20, count)
    return rng.integers(0, 1 << 11, count) * 2.0 ** rng.integers(-26, 6, count) + 2.0**-25


@pytest.mark.parametrize("kind", ["any", "single_range", "half_range", "ties"])
@pytest.mark.parametrize("fmt, numpy_type", [(FP16, np.float16), (FP32, np.float32)])
def test_rounding_is_numpys(fmt, numpy_type, kind):
    values = doubles(kind)
    with np.errstate(all="ignore"):
        expected = values.astype(numpy_type).view(word_type(fmt))
    assert floats.equal_or_nan(fmt, floats.from_float64(fmt, values), expected).all()


def test_wide_magnitudes_round_to_a_nearest_neighbour():
    rng = np.random.default_rng(SEED)
    magnitude = rng.integers(0, 1 << 64, 1500, dtype=np.uint64) >> rng.integers(0, 64, 1500).astype(np.uint64)
    exponent = rng.integers(-90, -20, 1500)
    results = floats.to_float64(FP16, floats.round_pack(FP16, 0, magnitude, exponent))
    finite = np.sort(floats.to_float64(FP16, np.arange(FP16.infinity)))
    checked = 0
    for part, weight, result in zip(magnitude.tolist(), exponent.tolist(), results, strict=False):
        exact = part * Fraction(2) ** weight
        if exact >= 65520:
            assert result == np.inf
            continue
        at = np.searchsorted(finite, float(exact))
        neighbours = [Fraction(float(value)) for value in finite[max(0, at - 2) : at + 2]]
        assert abs(Fraction(float(result)) - exact) == min(abs(value - exact) for value in neighbours)
        checked += 1
    assert checked > 500


def test_sticky():
    """A sticky bit breaks ties upwards, and is refused where it would not be below the last place."""
    fmt = FP16
    tie = (1 << 11) + 1
    assert floats.round_pack(fmt, 0, tie, -11) == fmt.bias << fmt.fraction_width
    assert floats.round_pack(fmt, 0, tie, -11, sticky=True) == (fmt.bias << fmt.fraction_width) + 1
    assert floats.round_pack(fmt, 1, 0, -30, sticky=True) == fmt.sign_bit
    with pytest.raises(ValueError, match="sticky is only defined"):
        floats.round_pack(fmt, 0, 3, 0, sticky=True)
