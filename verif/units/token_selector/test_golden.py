"""The token selector's golden model against fractions, float64, and patches and beats made the long way."""

import time
from fractions import Fraction

import numpy as np
import pytest

from golden.units.token_selector import (
    any_of_patch,
    beat_positions,
    changed,
    index_list,
    is_legal_threshold,
    token_masks,
    words,
)

INFINITY, NAN = 0x7C00, 0x7E00
CORNER_FRACTIONS = (0x000, 0x001, 0x155, 0x200, 0x3FE, 0x3FF)


def value(bits):
    return np.asarray(bits).astype(np.uint16).view(np.float16).astype(np.float64)


def is_finite(bits):
    return np.asarray(bits) & INFINITY != INFINITY


def finite_corners():
    """Every exponent with a few fractions, both signs."""
    magnitudes = [exponent << 10 | fraction for exponent in range(31) for fraction in CORNER_FRACTIONS]
    return np.array(magnitudes + [0x8000 | magnitude for magnitude in magnitudes])


def exact(bits):
    return Fraction(float(value(bits)))


def test_float64_holds_differences_exactly():
    """What the other checks rest on."""
    rng = np.random.default_rng(1)
    left, right = rng.choice(finite_corners(), (2, 3000))
    for a, b in zip(left, right, strict=True):
        assert Fraction(float(value(a) - value(b))) == exact(a) - exact(b)


def test_all_exponents_against_float64():
    """All pairs of corners, with thresholds below, at and above the difference."""
    corners = finite_corners()
    left, right = corners[:, None], corners[None, :]
    difference = np.abs(value(left) - value(right))
    nearest = words(np.minimum(difference, 65504).astype(np.float16))
    n_ties = 0
    for step in (-1, 0, 1):
        tau = np.clip(nearest + step, 0, 0x7BFF)
        tie = value(tau) == difference
        n_ties += tie.sum()
        found = changed(left, right, tau)
        assert np.array_equal(found, difference > value(tau))
        assert not found[tie].any()
    assert n_ties > 1000


def test_random_against_float64():
    rng = np.random.default_rng(2)
    n_changed = n_checked = 0
    for _ in range(10):
        left, right = rng.integers(0, 1 << 16, (2, 1_000_000))
        tau = rng.integers(0, INFINITY, 1_000_000)
        both = is_finite(left) & is_finite(right)
        found = changed(left, right, tau)
        with np.errstate(invalid="ignore"):
            expected = ~both | (np.abs(value(left) - value(right)) > value(tau))
        assert np.array_equal(found, expected)
        n_changed += found.sum()
        n_checked += both.sum()
    assert n_checked > 9_000_000 and 0 < n_changed < 10_000_000


def test_a_million_values_take_seconds():
    rng = np.random.default_rng(3)
    latents = rng.standard_normal((4, 4, 256, 256)).astype(np.float16)
    begin = time.process_time()
    token_masks(latents, np.float16(0.1), 2, "last")
    assert time.process_time() - begin < 5


def test_specials():
    assert changed(NAN, NAN, 0x3C00) and changed(0, NAN, INFINITY)
    assert changed(INFINITY, INFINITY, 0x3C00) and changed(INFINITY, 0, 0x7BFF)
    assert not changed(0, 0x8000, 0) and not changed(0x8000, 0, 0x8000)
    assert changed(1, 0, 0) and not changed(1, 0, 1)
    assert not changed(0x7BFF, 0xFBFF, INFINITY)
    for illegal in (NAN, 0xFE00, 0x8001, 0xBC00, 0xFC00):
        assert not is_legal_threshold(illegal) and changed(0, 0, illegal)
    for legal in (0, 0x8000, 1, 0x3C00, INFINITY):
        assert is_legal_threshold(legal)


def test_words_refuses_what_does_not_fit():
    assert np.array_equal(words(np.float32([1.0, -2.0])), [0x3C00, 0xC000])
    with pytest.raises(ValueError, match="FP16"):
        words(np.float32([0.1]))


@pytest.mark.parametrize(
    "shape, patch", [((1, 1, 1), 1), ((3, 5, 7), 2), ((2, 4, 6), 3), ((1, 3, 3), 8), ((4, 8, 8), 2)]
)
def test_patches(shape, patch):
    rng = np.random.default_rng(4)
    bits = rng.random((5, *shape)) < 0.1
    _, height, width = shape
    expected = [
        [step[:, y : y + patch, x : x + patch].any() for y in range(0, height, patch) for x in range(0, width, patch)]
        for step in bits
    ]
    assert np.array_equal(any_of_patch(bits, patch), expected)


def test_slow_drift_is_seen_by_the_rule_last_only():
    steps = words(np.float16([0.0, 0.75, 1.5, 2.25, 3.0, 3.75]))
    latents = np.broadcast_to(steps[:, None, None, None], (6, 1, 2, 2))
    one = np.float16(1.0)
    assert not token_masks(latents, one, 2, "previous").any()
    assert np.array_equal(token_masks(latents, one, 2, "last")[:, 0], [0, 1, 0, 1, 0])
    again = token_masks(latents, one, 2, "last", restart=[1, 0, 0, 0, 0])
    assert np.array_equal(again[:, 0], [1, 0, 1, 0, 1])


def test_last_against_a_loop_over_tokens():
    rng = np.random.default_rng(5)
    latents = (rng.standard_normal((7, 2, 5, 7)).cumsum(axis=0) * 0.3).astype(np.float16)
    tau = np.float16(0.6)
    masks = token_masks(latents, tau, 3, "last")
    for token, (y, x) in enumerate((y, x) for y in range(0, 5, 3) for x in range(0, 7, 3)):
        patch = latents[:, :, y : y + 3, x : x + 3].astype(np.float64)
        kept = patch[0]
        for step in range(1, 7):
            is_new = (np.abs(patch[step] - kept) > tau).any()
            assert masks[step - 1, token] == is_new
            kept = patch[step] if is_new else kept
    assert masks.any() and not masks.all()
    with pytest.raises(ValueError, match="reference"):
        token_masks(latents, tau, 3, "first")


def test_index_list():
    assert index_list(np.array([0, 1, 1, 0, 1], dtype=bool)).tolist() == [1, 2, 4]


@pytest.mark.parametrize("order", ["inner", "outer"])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (7, 5, 2, 3), (8, 8, 3, 2), (4, 6, 1, 2), (3, 2, 2, 5)])
def test_every_value_is_in_one_lane_and_in_order(shape, order):
    width, height, channels, patch = shape
    n = width * height * channels
    for n_values in range(1, n + 3):
        beats = beat_positions(width, height, channels, patch, n_values, order)
        used = beats >= 0
        sent = beats[used]
        assert np.array_equal(np.sort(sent), np.arange(n))
        assert (used[:, :-1] >= used[:, 1:]).all() and used[:, 0].all()
        rows = sent // width % height
        assert (np.diff(rows) >= 0).all()
        within = [sent[rows == y] for y in range(height)]
        key = (lambda v: (v % width, v // (width * height))) if order == "inner" else (lambda v: v)
        assert all(sorted(row.tolist(), key=key) == row.tolist() for row in within)
        bands = [set((row[row >= 0] // width % height // patch).tolist()) for row in beats]
        assert all(len(band) == 1 for band in bands) or n_values >= min(patch, height) * width * channels
