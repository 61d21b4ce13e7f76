"""The quantiser's model against exact rational arithmetic, and what it promises of slices and entries."""

from fractions import Fraction

import numpy as np
import pytest

from golden.spec.mixed_precision import CEILINGS, KEY_OFFSET, MAX_SLICES, n_keys
from golden.units.quantizer_unit import dynamic_exponent, encode, quantise, reconstruct, slices

OPTIONS = {"threshold": 0x2E00, "finest_exponent": 4, "n_levels": 3}


def tiles(rng, channels=40, length=16, spread=2.0):
    """FP16 words [channels, length] whose channels differ in size, some of them zero."""
    values = rng.standard_normal((channels, length)) * np.exp(spread * rng.standard_normal((channels, 1)))
    values[rng.random(channels) < 0.1] = 0
    return values.astype(np.float16).view(np.uint16)


def rounded(x, exponent):
    """``round(x * 2**exponent)``, ties to even, in exact arithmetic."""
    return round(Fraction(float(x)) * Fraction(2) ** int(exponent))


@pytest.mark.parametrize("seed", range(4))
def test_values_are_those_of_exact_arithmetic(seed):
    words = tiles(np.random.default_rng(seed))
    found = quantise(words, **OPTIONS)
    for channel, numbers in enumerate(words.view(np.float16)):
        exponent = found.exponent[channel]
        expected = [max(-127, min(127, rounded(x, exponent))) for x in numbers]
        assert list(found.value[channel]) == expected


@pytest.mark.parametrize("seed", range(4))
def test_the_exponent_is_the_largest_without_clipping(seed):
    words = tiles(np.random.default_rng(seed))
    found = quantise(words, **OPTIONS)
    low, high = 2, 4
    threshold = np.array(OPTIONS["threshold"], np.uint16).view(np.float16)
    for channel, numbers in enumerate(words.view(np.float16)):
        largest = float(np.abs(numbers).max())
        assert low <= found.exponent[channel] <= high
        ceiling = CEILINGS[sum(largest > float(threshold) * 4**n for n in range(3))]
        if found.exponent[channel] > low:
            assert rounded(largest, found.exponent[channel]) <= ceiling
        if found.exponent[channel] < high:
            assert rounded(largest, found.exponent[channel] + 1) > ceiling


def test_all_magnitudes_at_every_precision():
    words = np.arange(1, 0x7C00, dtype=np.uint16)[:, None]
    found = quantise(words, threshold=0x4C00, finest_exponent=24, n_levels=40, full_precision=True)
    assert (found.value <= 127).all() and (found.value[found.exponent < 24] >= 64).all()
    exact = [rounded(x, e) for x, e in zip(words[:, 0].view(np.float16), found.exponent, strict=True)]
    assert list(found.value[:, 0]) == exact


def test_slices_make_the_value():
    found = quantise(tiles(np.random.default_rng(5)), **OPTIONS)
    codes = slices(found)
    for channel, count in enumerate(found.n_slices):
        total = np.zeros(codes.shape[-1], np.int64)
        for place in range(count):
            digits = codes[channel, place]
            digits = np.where((place == count - 1) & (digits >= 2), digits - 4, digits)
            total += digits * 4**place
        assert (total == found.value[channel]).all()
        assert np.abs(found.value[channel]).max() <= (0, *CEILINGS)[count]


def test_entries_rise_and_hold_every_slice_once():
    found = quantise(tiles(np.random.default_rng(6)), **OPTIONS)
    entries = encode(found, finest_exponent=4, n_levels=3)
    assert (np.diff(entries.key) >= 0).all() and entries.shift.sum() == entries.key[-1] - entries.key[0]
    assert 0 <= entries.key.min() and entries.key.max() < n_keys(3)
    pairs = set(zip(entries.vector, entries.slice_index, strict=True))
    assert len(pairs) == len(entries.key) == found.n_slices.sum()
    assert sorted(entries.address) == list(range(len(entries.key)))
    level = found.exponent[entries.vector] - 2
    assert (entries.key == level - 2 * entries.slice_index + KEY_OFFSET).all()


def test_nan_and_infinity_flag_their_vector_only():
    words = tiles(np.random.default_rng(7))
    clean = quantise(words, **OPTIONS)
    words[3, 5], words[9, 0] = 0x7E01, 0xFC00
    found = quantise(words, **OPTIONS)
    assert list(np.flatnonzero(found.error)) == [3, 9]
    assert not found.value[[3, 9]].any() and not found.n_slices[[3, 9]].any()
    others = ~found.error
    assert (found.value[others] == clean.value[others]).all()


def test_reconstruction_is_exact_inside_the_range_of_fp16():
    found = quantise(tiles(np.random.default_rng(8)), **OPTIONS)
    numbers = reconstruct(found).view(np.float16).astype(np.float64)
    assert (numbers == found.value / 2.0 ** found.exponent[:, None]).all()


def test_the_dynamic_exponent_gives_the_smallest_channel_two_bits():
    words = tiles(np.random.default_rng(9))
    exponent = int(dynamic_exponent(words))
    found = quantise(words, threshold=0x0400, finest_exponent=exponent, n_levels=60)
    sizes = np.abs(words.view(np.float16).astype(np.float64)).max(axis=1)
    smallest = np.flatnonzero(sizes == sizes[sizes > 0].min())[0]
    assert np.abs(found.value[smallest]).max() == 1


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"threshold": 0x03FF}, "threshold must be a positive normal FP16 word, not 1023"),
        ({"threshold": 0x7C00}, "threshold must be"),
        ({"finest_exponent": 25}, "finest_exponent must be from -15 to 24, not 25"),
        ({"n_levels": 0}, "n_levels must be at least 1, not 0"),
    ],
)
def test_wrong_parameters_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        quantise(np.zeros((1, 4), np.uint16), **{**OPTIONS, **wrong})


def test_full_precision_uses_all_slices():
    found = quantise(tiles(np.random.default_rng(10)), **OPTIONS, full_precision=True)
    assert set(found.n_slices) <= {0, MAX_SLICES}
