"""The model of the SpMM array: the same bits as the core's sparse product, the error bound, the schedule's limits."""

import numpy as np
import pytest

from golden.arith.floats import to_float64
from golden.core.hash_format import mask_to_bitmap
from golden.core.spmm import spmm
from golden.spec.formats import FP32, float_format
from golden.spec.spmm_array import SpmmArrayParameters
from golden.units.hash_bank_mapper import BankMap
from golden.units.spmm_array import accumulator_of, schedule, sparse_product, values_in_banks
from verif.bench import datasets
from verif.units.spmm_array.bench import draw_words


def product(rng, p, kind, n_rows=20, n_passes=2):
    bitmap = rng.random((n_rows, p.n_engines, p.n_slots)) < rng.random((n_rows, 1, 1))
    bitmap[3] = False
    coefficients = draw_words(rng, p.format, bitmap.shape, kind)
    values = draw_words(rng, p.format, (p.n_engines, p.n_slots, n_passes, p.n_lanes), kind)
    return bitmap, coefficients, values, sparse_product(bitmap, coefficients, values, accumulator_of(p))


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("format", ["fp16", "bf16"])
def test_bits_are_those_of_the_cores_product(format, kind):
    """The core's columns lie in engines and slots; its accumulators are wider, which no bit tells."""
    rng = np.random.default_rng(kind)
    p = SpmmArrayParameters(n_engines=4, n_slots=7, n_lanes=3, format=format)
    bitmap, coefficients, values, (single, rounded) = product(rng, p, kind)
    engine, slot = np.divmod(np.arange(p.n_engines * p.n_slots), p.n_slots)
    order = rng.permutation(len(engine))
    flat = (each.reshape(len(bitmap), -1)[:, order] for each in (coefficients, bitmap))
    width = values.shape[2] * p.n_lanes
    expected = spmm(
        *flat, values.reshape(len(order), width)[order], engine[order], slot[order], p.n_engines, accumulator_of(p)
    )
    for found, words in zip((single, rounded), expected, strict=True):
        assert np.array_equal(found.reshape(len(bitmap), width), words)
    assert not rounded[3].any()


@pytest.mark.parametrize("format", ["fp16", "bf16"])
def test_error(format):
    """|result - exact| <= n * 2**(3 - align_width) * max|term| + 1/2 ulp, of both words."""
    rng = np.random.default_rng(9)
    p = SpmmArrayParameters(n_engines=4, n_slots=16, n_lanes=4, format=format, align_width=24)
    fmt = float_format(format)
    bitmap = rng.random((60, p.n_engines, p.n_slots)) < rng.random((60, 1, 1))
    shapes = (bitmap.shape, (p.n_engines, p.n_slots, 2, p.n_lanes))
    words = [rng.integers(fmt.bias - 6, fmt.bias + 2, size=shape) << fmt.fraction_width for shape in shapes]
    words = [each | rng.integers(1 << fmt.fraction_width, size=each.shape) for each in words]
    words = [each | rng.integers(2, size=each.shape) << (fmt.width - 1) for each in words]
    left, right = (to_float64(fmt, each) for each in words)
    terms = np.where(bitmap[..., None, None], left[..., None, None] * right, 0)
    exact = terms.sum(axis=(1, 2))
    count, largest = bitmap.sum(axis=(1, 2))[:, None, None], np.abs(terms).max(axis=(1, 2))
    single, rounded = sparse_product(bitmap, *words, accumulator_of(p))
    for target, found in ((FP32, single), (fmt, rounded)):
        half_ulp = np.maximum(np.abs(exact), 2.0 ** (1 - target.bias)) * 2.0**-target.precision
        error = np.abs(to_float64(target, found) - exact)
        assert (error <= (count * largest * 2.0 ** (3 - p.align_width) + half_ulp) * (1 + 2**-20)).all()
    assert (np.abs(to_float64(FP32, single) - exact) > 0).any()


def test_values_lie_where_base_and_stride_say():
    banks = np.arange(2 * 20 * 3).reshape(2, 20, 3)
    values = values_in_banks(banks, 4, 5, 3, 2)
    assert values.shape == (2, 3, 2, 3)
    assert np.array_equal(values[1, 2, 1], banks[1, 4 + 5 + 2])


def test_schedule_of_nothing():
    assert schedule(np.zeros((0, 4), int), 2, SpmmArrayParameters()).cycles == 0


@pytest.mark.parametrize("clocks", [1, 2, 4])
def test_schedule_is_between_lockstep_and_the_fullest_engine(clocks):
    rng = np.random.default_rng(3)
    for run_ahead in (0, 2, 8):
        p = SpmmArrayParameters(n_engines=8, n_slots=16, run_ahead=run_ahead, reduction_clocks=clocks)
        for density in (0.1, 0.4, 0.9):
            counts = rng.binomial(16, density * rng.random((1, 8)), (60, 8))
            plan = schedule(counts, 2, p)
            terms = np.maximum(counts, 1)
            lockstep = 2 * np.maximum(terms.max(axis=1), clocks).sum()
            overhead = int(plan.result[0] - 2 * terms[0].max())
            assert 2 * terms.sum(axis=0).max() <= plan.cycles
            assert clocks > 1 or plan.cycles <= lockstep + p.to_result + 10 + overhead
            assert (np.diff(plan.issue, axis=0) >= np.repeat(terms, 2, axis=0)[1:]).all()
            assert (np.diff(plan.result) >= clocks).all()


def test_real_masks():
    """36 % kept: a few passes of run-ahead bring the product near the work of the fullest engine."""
    masks = np.unpackbits(datasets.workload()["A_mask"], axis=-1, bitorder="little").astype(bool)
    flat = masks.reshape(-1, *masks.shape[-2:])
    mask = flat[np.abs(flat.mean(axis=(1, 2)) - 0.361).argmin()]
    counts = mask_to_bitmap(mask, BankMap(n_columns=256, n_banks=16, multiplier=13)).sum(axis=-1)
    lockstep, fullest = 2 * counts.max(axis=1).sum(), 2 * counts.sum(axis=0).max()
    cycles = {}
    for clocks in (1, 2, 4):
        for run_ahead in (0, 1, 2, 4, 8):
            p = SpmmArrayParameters(n_engines=16, run_ahead=run_ahead, reduction_clocks=clocks)
            cycles[clocks, run_ahead] = schedule(counts, 2, p).cycles
    print(f"lockstep {lockstep}, fullest engine {fullest}, {cycles}")
    assert fullest < cycles[1, 8] < cycles[1, 4] < cycles[1, 2] < cycles[1, 0] < 0.85 * lockstep
    assert cycles[1, 2] < 1.05 * fullest and cycles[4, 2] < 1.08 * fullest
