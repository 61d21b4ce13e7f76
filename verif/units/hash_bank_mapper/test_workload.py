"""Real attention masks: what the golden functions find in them equals what was recorded with them.

The figures come with the data (see ``shared/spec/workload.md``): other data are used with ``WORKLOAD=file.npz``.
"""

import numpy as np
import pytest

from golden.arith.floats import to_float64
from golden.core import attention, hash_format
from golden.spec.formats import FP16, FP32
from golden.units.hash_bank_mapper import (
    BankMap,
    bank_counts,
    default_multiplier,
    row_deviation,
    sddmm_cycles,
    search_multiplier,
)
from verif.bench import datasets

BANKS = (16, 32, 64)
RUN_AHEADS = (0, 1, 2, 4, 8)
TUNED = {256: 13, 1024: 399}
THETA_OF_OUTPUT = 1
PAIRS_OF_OUTPUT = ((0, 1), (4, 5))
FP16_FLIPS = 15


@pytest.fixture(scope="module")
def workload():
    return datasets.workload()


def entry(workload, *names):
    """Arrays of the workload; a small part of it need not hold all of them."""
    missing = [name for name in names if name not in workload]
    if missing:
        pytest.skip(f"the workload file has no {', '.join(missing)}")
    arrays = [workload[name] for name in names]
    return arrays[0] if len(arrays) == 1 else arrays


def masks(workload, name):
    return np.unpackbits(entry(workload, name), axis=-1, bitorder="little").astype(bool)


def maps(n_columns, n_banks):
    yield BankMap(n_columns=n_columns, n_banks=n_banks, hash="modular")
    yield BankMap(n_columns=n_columns, n_banks=n_banks, hash="range")
    yield BankMap(n_columns=n_columns, n_banks=n_banks, multiplier=default_multiplier(n_columns))
    yield BankMap(n_columns=n_columns, n_banks=n_banks, multiplier=TUNED[n_columns])


@pytest.mark.parametrize("part", "AB")
def test_non_zeros_and_empty_rows(workload, part):
    mask = masks(workload, f"{part}_mask")
    assert np.array_equal(mask.sum(axis=(-2, -1)), entry(workload, f"{part}_nnz"))
    if part == "A":
        assert np.array_equal((~mask.any(axis=-1)).sum(axis=-1), entry(workload, "A_empty_rows"))


@pytest.mark.parametrize("part", "AB")
def test_sddmm_cycles(workload, part):
    mask, expected = masks(workload, f"{part}_mask"), entry(workload, f"{part}_cycles")
    for n, n_banks in enumerate(BANKS):
        for which, bank_map in enumerate(maps(mask.shape[-1], n_banks)):
            counts = bank_counts(mask, bank_map)
            for step, run_ahead in enumerate(RUN_AHEADS):
                assert np.array_equal(sddmm_cycles(counts, run_ahead), expected[..., n, which, step])


def test_multiplicative_hash_spreads_best(workload):
    """DiSC's figure 15 on these masks: the tuned multiplicative hash has the smallest deviation on average."""
    mask = masks(workload, "A_mask")
    for n_banks in BANKS:
        modular, by_range, _, tuned = (row_deviation(bank_counts(mask, each)).mean() for each in maps(256, n_banks))
        assert tuned < min(modular, by_range)


def test_search_finds_no_worse_than_the_recorded_multiplier(workload):
    mask, expected = masks(workload, "A_mask"), entry(workload, "A_cycles")
    for n, n_banks in enumerate(BANKS):
        ranked = search_multiplier(mask[:, THETA_OF_OUTPUT], n_banks, run_ahead=8)
        by_multiplier = {each.multiplier: each.cycles for each in ranked}
        assert len(ranked) == 128
        assert by_multiplier[TUNED[256]] == expected[:, THETA_OF_OUTPUT, n, 3, RUN_AHEADS.index(8)].sum()
        assert ranked[0].cycles <= by_multiplier[TUNED[256]] < by_multiplier[1]


def probabilities(workload, part):
    query, key = np.moveaxis(entry(workload, f"{part}_qkv"), 1, 0)[:2]
    return attention.softmax_reference(attention.scores_reference(query, key))


def test_threshold_masks(workload):
    exact, theta = probabilities(workload, "A"), entry(workload, "A_theta")
    mask, near = masks(workload, "A_mask"), entry(workload, "A_near")
    for t, threshold in enumerate(theta):
        assert np.array_equal(attention.threshold_mask(exact, threshold), mask[:, t])
        assert np.array_equal((np.abs(exact / threshold - 1) < 2.0**-9).sum(axis=(-2, -1)), near[:, t])


def test_threshold_masks_of_many_tokens(workload):
    exact, theta = probabilities(workload, "B"), entry(workload, "B_theta")
    mask, info = masks(workload, "B_mask"), entry(workload, "B_mask_info")
    # Queries and keys are stored of the first heads only.
    checked = 0
    for each, (head, threshold) in zip(mask, info, strict=True):
        if head < len(exact):
            assert np.array_equal(attention.threshold_mask(exact[head], theta[threshold]), each)
            checked += 1
    assert checked


def test_threshold_masks_of_rounded_probabilities(workload):
    """The recorded flips are those of scores, exponentials and probabilities each rounded to FP16."""
    (query, key), theta = np.moveaxis(entry(workload, "A_qkv"), 1, 0)[:2], entry(workload, "A_theta")
    mask, flips = masks(workload, "A_mask"), entry(workload, "A_fp16_flips")
    scores = attention.scores_reference(query, key).astype(np.float16).astype(np.float64)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True)).astype(np.float16).astype(np.float64)
    rounded = (exponentials / exponentials.sum(axis=-1, keepdims=True)).astype(np.float16)
    found = np.stack([attention.threshold_mask(rounded.view(np.uint16), each) for each in theta], axis=1)
    # A score half-way between two FP16 numbers in float64 may round either way.
    assert (np.abs((found != mask).sum(axis=(-2, -1)) - flips) <= 2).all()
    assert flips.max() <= FP16_FLIPS


def output_cases(workload):
    """Query, key, value of a step, the mask of the step before, and the attention output under it."""
    qkv, outputs = entry(workload, "A_qkv", "A_O_ref")
    mask = masks(workload, "A_mask")[:, THETA_OF_OUTPUT]
    for (earlier, later), expected in zip(PAIRS_OF_OUTPUT, outputs, strict=False):
        yield *qkv[later], mask[earlier], expected


def test_attention_under_a_reused_mask(workload):
    checked = 0
    for query, key, value, mask, expected in output_cases(workload):
        out = attention.attention_reference(query, key, value, mask)
        assert np.allclose(out, expected, rtol=2.0**-23, atol=2.0**-24)
        checked += 1
    assert checked == len(entry(workload, "A_O_ref"))


@pytest.mark.parametrize("n_banks", [16, 64])
def test_sparse_attention_in_the_units_arithmetic(workload, n_banks):
    """SDDMM, softmax in float64 rounded to FP16, SpMM: within what the roundings allow of the float64 output."""
    bank_map = BankMap(n_columns=256, n_banks=n_banks, multiplier=TUNED[256])
    for query, key, value, mask, expected in output_cases(workload):
        words = [operand.view(np.uint16) for operand in (query, key, value)]
        scores = attention.sddmm(*words[:2], mask, n_lanes=16)
        wide = to_float64(FP32, scores.wide)
        exact = np.where(mask, query.astype(np.float64) @ key.astype(np.float64).T, 0)
        assert np.abs(wide - exact).max() <= 2.0**-20 * np.abs(exact).max()

        kept = attention.softmax_reference(wide / np.sqrt(query.shape[1]), mask).astype(np.float16)
        encoded = hash_format.encode(mask, kept.view(np.uint16), bank_map)
        single, rounded = attention.spmm(encoded, words[2])
        product = kept.astype(np.float64) @ value.astype(np.float64)
        assert np.abs(to_float64(FP32, single) - product).max() <= 2.0**-20
        largest = np.abs(value.astype(np.float64)).max()
        assert np.abs(to_float64(FP16, rounded) - expected).max() <= 2.0**-10 * largest
