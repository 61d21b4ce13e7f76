"""The array's model against plain integer products of the quantised values, and float64."""

import numpy as np
import pytest

from golden.spec.mixed_precision import sum_width
from golden.units.mixed_precision_array import accumulate, final_exponent, multiply, schedule, tile_sums
from golden.units.quantizer_unit import encode, quantise
from verif.units.quantizer_unit.test_golden import OPTIONS, tiles

RANGE = {"finest_exponent": OPTIONS["finest_exponent"], "n_levels": OPTIONS["n_levels"]}


def tile(seed, **options):
    rng = np.random.default_rng(seed)
    words = tiles(rng, **options)
    quantised = quantise(words, **OPTIONS)
    return quantised, encode(quantised, **RANGE), rng.integers(-128, 128, (len(words), 12)), rng


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_those_of_the_quantised_values(seed):
    quantised, entries, weights, _ = tile(seed, channels=37, length=9)
    exponent = final_exponent(entries, **RANGE)
    values = quantised.value << np.maximum(exponent - quantised.exponent, 0)[:, None]
    used = quantised.n_slices > 0
    assert (exponent >= quantised.exponent[used]).all()
    assert (tile_sums(quantised, entries, weights) == values[used].T @ weights[used]).all()


def test_the_largest_sums_fit():
    words = np.full((128, 2), 0x4BF0, np.uint16)  # 15.875 = 127 / 8
    words[:, 1] |= 0x8000
    words[0] = 0x2800  # one channel at the finest level
    quantised = quantise(words, threshold=0x2C00, finest_exponent=5, n_levels=3)
    entries = encode(quantised, finest_exponent=5, n_levels=3)
    sums = tile_sums(quantised, entries, np.full((128, 1), -128))
    assert entries.key[-1] - entries.key[0] == 8 and quantised.value[1, 0] == 127
    assert -(1 << (sum_width(128, 3) - 1)) <= sums.min() and sums.max() < 1 << (sum_width(128, 3) - 1)
    assert np.abs(sums).max() > 1 << (sum_width(128, 3) - 2)


def test_the_schedule_counts_groups_and_shifts():
    _, entries, _, _ = tile(3)
    plan = schedule(entries)
    keys, counts = np.unique(entries.key, return_counts=True)
    assert len(plan.groups) == sum(-(-count // 4) for count in counts)
    assert plan.shifts.sum() == keys[-1] - keys[0]
    assert plan.sizes.sum() == len(entries.key) and 0 < plan.utilisation <= 1


def test_an_empty_tile_changes_nothing():
    quantised = quantise(np.zeros((5, 4), np.uint16), **OPTIONS)
    outputs = np.float32([[1.5, -2.0]] * 4).view(np.uint32)
    found = multiply(quantised, encode(quantised, **RANGE), np.ones((5, 2), int), np.full(2, 0x3C00), outputs, **RANGE)
    assert (found == outputs).all()


def test_accumulation_is_within_two_roundings_of_float64():
    rng = np.random.default_rng(4)
    outputs = rng.standard_normal((30, 12)).astype(np.float32)
    sums = rng.integers(-(1 << 23), 1 << 23, (30, 12))
    scales = (rng.random(12) / 100).astype(np.float16)
    found = accumulate(outputs.view(np.uint32), sums, 7, scales.view(np.uint16)).view(np.float32)
    product = sums * scales.astype(np.float64) / 128
    exact = outputs + product
    assert (np.abs(found - exact) <= 2.0**-24 * (np.abs(product) + np.abs(exact)) * 1.001).all()
