"""Real attention heads through the softmax unit: the mask, the error, and rows of them through the Verilog.

A head is taken from FP16 queries and keys by the dot-product units, whose FP16 scores the unit gets in hash order; see
``shared/spec/workload.md``. Other data are used with ``WORKLOAD=file.npz``.
"""

import numpy as np
import pytest

from golden.arith import softmax_tables
from golden.arith.floats import from_float64, to_float64
from golden.core.attention import scores_reference, sddmm, softmax_reference
from golden.spec.formats import FP16
from golden.units.hash_bank_mapper import BankMap
from golden.units.softmax_unit import decode_scale, encode_scale, softmax
from hw.registry import make_block
from verif.bench import datasets
from verif.bench.batch import Batch
from verif.bench.recorded import replay
from verif.units.softmax_unit.bench import pack_probabilities, pack_scores

pytestmark = pytest.mark.slow

HEADS = (0, 1)
MOST_FLIPS = 15
N_BANKS = 8


@pytest.fixture(scope="module")
def heads():
    """``(index, scores, scale)`` of each head."""
    arrays = datasets.workload()
    found = []
    for index in HEADS:
        query, key, _ = arrays["A_qkv"][index]
        mask = np.ones((len(query), len(key)), bool)
        scores = sddmm(query.view(np.uint16), key.view(np.uint16), mask, n_lanes=16).narrow
        found.append((index, scores, encode_scale(query.shape[1] ** -0.5)))
    return arrays, found


def exact_head(query, key):
    """P in float64, and by how much of itself it may be off where scores are rounded to FP16.

    A score that is off by half an ulp moves its own P and, through the sum, those of its row; 3 ulp are the unit's.
    """
    scores = scores_reference(query, key)
    return softmax_reference(scores), 2.0**-11 * (2 * np.abs(scores).max(axis=1, keepdims=True) + 6)


def test_masks_of_real_heads(heads):
    """No more bits than a design in FP16 may have differ from the mask of float64, all of them next to theta.

    The figures recorded for each mask are what one such design happened to have: scores rounded to FP16 alone, with a
    softmax that is exact, give more in one case of five. The limit is therefore the same for all.
    """
    arrays, found = heads
    flips = []
    for index, scores, scale in found:
        exact, near = exact_head(*arrays["A_qkv"][index][:2])
        for theta, packed, recorded in zip(
            arrays["A_theta"], arrays["A_mask"][index], arrays["A_fp16_flips"][index], strict=False
        ):
            mask = np.unpackbits(packed, axis=-1, bitorder="little").astype(bool)
            keep = softmax(scores, np.ones(scores.shape, bool), scale, from_float64(FP16, theta)).keep
            differs = keep != mask
            flips.append(int(differs.sum()))
            print(f"head {index}, theta {theta}: {flips[-1]} of {mask.size} bits differ, recorded are {recorded}")
            assert (np.abs(exact / theta - 1) < near)[differs].all()
    assert flips and max(flips) <= MOST_FLIPS


def test_probabilities_of_real_heads(heads):
    arrays, found = heads
    for index, scores, scale in found:
        enable = np.ones(scores.shape, bool)
        values = softmax(scores, enable, scale).values
        exact = softmax_reference(to_float64(FP16, scores) * decode_scale(scale) * np.log(2))
        unit = np.exp2(np.maximum(np.floor(np.log2(exact)), 1 - FP16.bias) - FP16.fraction_width)
        errors = np.abs(to_float64(FP16, values) - exact) / unit
        print(f"head {index}: error {errors.max():.3f} ulp at most, {errors.mean():.3f} on average")
        assert errors.max() <= softmax_tables.error_bound(scores.shape[1])
        # From the queries and keys on, rounding the scores counts too.
        exact, near = exact_head(*arrays["A_qkv"][index][:2])
        assert (np.abs(to_float64(FP16, values) - exact) <= near * exact + 2.0**-23).all()


def test_factor_restores_the_mass(heads):
    """The step after: elements of the mask, with its retained mass; the sum of each row is that mass."""
    _, found = heads
    _, scores, scale = found[0]
    dense = softmax(scores, np.ones(scores.shape, bool), scale, from_float64(FP16, 2.0**-9))
    sparse = softmax(found[1][1], dense.keep, scale, 0, dense.retained_mass)
    sums = to_float64(FP16, sparse.values).sum(axis=1)
    mass = to_float64(FP16, dense.retained_mass)
    assert (mass > 0.3).any() and (mass < 1).any()
    assert np.abs(sums - mass).max() < 2.0**-10
    assert not sparse.values[~dense.keep].any()


def test_rows_in_verilog(heads):
    """Rows in hash order, dense with a threshold, then sparse with the retained mass."""
    _, found = heads
    rows = slice(None, None, 50)
    n_columns = found[0][1].shape[1]
    layout = BankMap(n_columns=n_columns, n_banks=N_BANKS, multiplier=13).layout()
    block = make_block("softmax_unit", None, {"n_banks": N_BANKS, "n_slots": len(layout)})
    scale, theta = found[0][2], int(from_float64(FP16, 2.0**-9))
    # The words of a beat are those of the same address in all banks.
    scores = [head[rows][:, layout.ravel()] for _, head, _ in found]
    everything = np.ones(scores[0].shape, bool)
    dense = softmax(scores[0], everything, scale, theta)
    packed, enable = pack_banks(scores[1], dense.keep)
    sparse = softmax(packed, enable, scale, theta, dense.retained_mass)
    ones = np.full(len(packed), FP16.one)
    n_beats = np.maximum(enable.reshape(len(enable), -1, N_BANKS).any(axis=2).sum(axis=1), 1)
    checked = 0
    for words, elements, lengths, factor, result in (
        (scores[0], everything, np.full(len(packed), len(layout)), ones, dense),
        (packed, enable, n_beats, dense.retained_mass, sparse),
    ):
        batch = Batch(
            {"score": pack_scores(block.parameters, words, elements, lengths, factor, np.random.default_rng(1))},
            {"probability": pack_probabilities(block.parameters, result, elements, lengths)},
            statics={"scale": scale, "theta": theta},
            causes={},
        )
        result = replay(block, batch)
        assert not result.messages, result.messages
        checked += result.checked
    assert checked == len(layout) * len(packed) + n_beats.sum()


def pack_banks(scores, keep):
    """Hash-encoded rows: each bank's retained scores moved to its first beats."""
    words, enable = np.zeros_like(scores), np.zeros_like(keep)
    for row in range(len(scores)):
        for bank in range(N_BANKS):
            kept = scores[row, bank::N_BANKS][keep[row, bank::N_BANKS]]
            words[row, bank::N_BANKS][: len(kept)] = kept
            enable[row, bank::N_BANKS][: len(kept)] = True
    return words, enable
