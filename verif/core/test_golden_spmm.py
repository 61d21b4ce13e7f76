"""SpMM's golden model: against the vector unit's commands, against float64, and in reasonable time."""

import time

import numpy as np
import pytest

from golden.arith.accumulator import Accumulator
from golden.arith.floats import from_float64, to_float64
from golden.core.spmm import schedule, spmm, spmm_commands
from golden.spec.formats import FORMATS, FP32
from golden.units.hash_bank_mapper import BankMap
from golden.units.vector_unit import VectorUnit

FP16 = FORMATS["fp16"]


def problem(rng, n_rows, n_columns, width, density):
    mask = rng.random((n_rows, n_columns)) < density
    mask[0], mask[-1] = False, True
    coefficients = from_float64(FP16, rng.random((n_rows, n_columns)) ** 4)
    return coefficients, mask, from_float64(FP16, rng.standard_normal((n_columns, width)))


def test_schedule_walks_every_non_zero_once():
    rng = np.random.default_rng(5)
    mask = problem(rng, 12, 50, 1, 0.4)[1]
    engine, address = BankMap(n_columns=50, n_banks=8).locate(np.arange(50))
    plan = schedule(mask, engine, address, 8)
    seen = np.zeros(mask.shape, int)
    for column, row in zip(plan.column, plan.row, strict=False):
        taken = column[column >= 0]
        assert np.array_equal(engine[taken], np.flatnonzero(column >= 0))
        seen[row, taken] += 1
    assert np.array_equal(seen, mask)
    for row in range(12):
        for lane in range(8):
            walked = plan.column[plan.row == row, lane]
            walked = walked[walked >= 0]
            assert np.all(np.diff(address[walked]) > 0)
    assert np.array_equal(np.flatnonzero(plan.first)[1:], np.flatnonzero(plan.last)[:-1] + 1)


@pytest.mark.parametrize("n_engines", [1, 4])
def test_equals_the_commands(n_engines):
    rng = np.random.default_rng(6)
    unit = VectorUnit(n_engines=n_engines, n_lanes=5, bank_depth=32)
    engine, address = BankMap(n_columns=32, n_banks=n_engines).locate(np.arange(32))
    coefficients, mask, values = problem(rng, 20, 32, 5, 0.3)
    results = unit.execute(spmm_commands(coefficients, mask, values, engine, address, unit))
    single, rounded = spmm(coefficients, mask, values, engine, address, n_engines)
    assert single.shape == (20, 5)
    assert np.array_equal(results.single[:, :5], single)
    assert np.array_equal(results.rounded[:, :5], rounded)


@pytest.mark.parametrize("align_width", [24, 28])
def test_a_million_terms_within_the_bound(align_width):
    """256 x 256 non-zeros a quarter full times 256 x 64 values, within n * 2**(3-W) * max|term| + 1/2 ulp."""
    rng = np.random.default_rng(7)
    coefficients, mask, values = problem(rng, 256, 256, 64, 0.25)
    engine, address = BankMap(n_columns=256, n_banks=16, multiplier=13).locate(np.arange(256))
    begin = time.process_time()
    single, rounded = spmm(coefficients, mask, values, engine, address, 16, Accumulator(align_width=align_width))
    assert time.process_time() - begin < 20
    left, right = to_float64(FP16, coefficients) * mask, to_float64(FP16, values)
    # Products of FP16 words and sums of a few hundred of them, in float64: exact to 2**-40 of the largest.
    largest = (np.abs(left)[:, :, None] * np.abs(right)).max(axis=1)
    bound = mask.sum(axis=1)[:, None] * 2.0 ** (3 - align_width) * largest + 2.0**-40 * largest
    for fmt, words in ((FP32, single), (FP16, rounded)):
        value = to_float64(fmt, words)
        _, exponent = np.frexp(value)
        half_ulp = 2.0 ** (np.maximum(exponent - 1, 1 - fmt.bias) - fmt.fraction_width - 1)
        assert np.all(np.abs(value - left @ right) <= bound + half_ulp)
    assert not single[0].any() and not rounded[0].any()
