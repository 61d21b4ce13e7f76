"""The units that take rows a beat a clock: in which clock each beat is taken and given."""

import numpy as np
import pytest

from golden.spec.formats import FP16
from golden.units.layer_norm_unit import encode_epsilon, layer_norm
from golden.units.softmax_unit import encode_scale, softmax
from hw.registry import make_block
from verif.bench.batch import Batch
from verif.bench.recorded import replay
from verif.units.layer_norm_unit import bench as layer_norm_unit
from verif.units.softmax_unit import bench as softmax_unit

pytestmark = pytest.mark.slow


def softmax_batch(p, lengths, rng):
    """Random rows of given lengths, theirs and the unit's streams for them."""
    scores = rng.integers(0x3000, 0x4800, (len(lengths), p.n_slots * p.n_banks)).astype(np.uint16)
    enable = sent(lengths, p.n_banks, scores.shape[1]) & (rng.random(scores.shape) < 0.7)
    scale, theta = encode_scale(0.5), 0x2000
    found = softmax(scores, enable, scale, theta)
    return Batch(
        {"score": softmax_unit.pack_scores(p, scores, enable, lengths, np.full(len(lengths), FP16.one), rng)},
        {"probability": softmax_unit.pack_probabilities(p, found, enable, lengths)},
        statics={"scale": scale, "theta": theta},
        causes={},
    )


def layer_norm_batch(p, lengths, rng):
    elements = rng.integers(0x3000, 0x4800, (len(lengths), p.n_slots * p.n_lanes)).astype(np.uint16)
    enable = sent(lengths, p.n_lanes, elements.shape[1]) & (rng.random(elements.shape) < 0.7)
    gamma, beta = rng.integers(0, 0x4000, (2, elements.shape[1])).astype(np.uint16)
    epsilon = encode_epsilon(1e-5)
    found = layer_norm(elements, enable, gamma, beta, epsilon)
    return Batch(
        {
            "coefficient": layer_norm_unit.pack_coefficients(p, gamma, beta, rng),
            "element": layer_norm_unit.pack_rows(p, elements, enable, lengths),
        },
        {"normalised": layer_norm_unit.pack_rows(p, found, enable, lengths)},
        statics={"epsilon": epsilon},
        causes={},
        after={"element": ("coefficient",)},
    )


def sent(lengths, word, n):
    return np.arange(n) < np.array(lengths)[:, None] * word


UNITS = {
    "softmax_unit": ("n_banks", softmax_batch, "score", "probability"),
    "layer_norm_unit": ("n_lanes", layer_norm_batch, "element", "normalised"),
}
POINTS = [(unit, *size) for unit in UNITS for size in ((1, 16), (4, 1), (4, 4))]
SIZES = pytest.mark.parametrize("unit, width, n_slots", POINTS)


def make(unit, width, n_slots):
    return make_block(unit, None, {UNITS[unit][0]: width, "n_slots": n_slots})


def delays(block, *rows, seed=1, **options):
    """For each list of rows' lengths: when each beat was taken, and when its result came."""
    _, make_batch, source, sink = UNITS[block.base_name]
    rng = np.random.default_rng(seed)
    result = replay(block, *(make_batch(block.parameters, lengths, rng) for lengths in rows), **options)
    assert result.passed, result.messages
    for lengths, times in zip(rows, result.times, strict=True):
        assert len(times[source]) == len(times[sink]) == sum(lengths)
        yield np.array(times[source]), np.array(times[sink])


@SIZES
def test_latency_and_rows_of_equal_length(unit, width, n_slots):
    """A single beat takes the stated latency, and rows of equal length flow without a gap."""
    block = make(unit, width, n_slots)
    lengths = sorted({1, (n_slots + 1) // 2, n_slots})
    single, *others = delays(block, [1], *([length] * (2 + 90 // length) for length in lengths))
    assert (single[1] - single[0]).tolist() == [block.latency]
    for length, (taken, given) in zip(lengths, others, strict=True):
        assert (np.diff(taken) == 1).all()
        assert (given - taken == block.latency + 2 * (length - 1)).all()


@pytest.mark.parametrize("idle", ["none", "bursty"])
@pytest.mark.parametrize("unit, width, n_slots", [point for point in POINTS if point[2] > 1])
def test_rows_of_mixed_lengths(unit, width, n_slots, idle):
    """Elements never wait, and every beat comes within the stated time."""
    block = make(unit, width, n_slots)
    rng = np.random.default_rng(2)
    lengths = [n_slots, *[1] * 2 * n_slots, n_slots, *rng.integers(1, n_slots + 1, 20), *[n_slots] * 3, 1, n_slots]
    ((taken, given),) = delays(block, lengths, idle=idle)
    bound = block.latency + 2 * (n_slots - 1)
    # A beat may have to wait for the rest of its row to be sent.
    ends = np.cumsum(lengths) - 1
    row_taken = taken[np.repeat(ends, lengths)]
    if idle == "none":
        assert (np.diff(taken) == 1).all()
        assert (given - taken).max() == bound
        assert given[-1] - taken[0] <= sum(lengths) - 1 + bound
    assert (given - row_taken <= bound).all()


@pytest.mark.parametrize(
    "unit, parameters, message",
    [
        ("softmax_unit", {"n_banks": 3}, "n_banks must be a power of two from 1 to 64, not 3"),
        ("softmax_unit", {"n_banks": 128}, "n_banks must be a power of two from 1 to 64, not 128"),
        ("softmax_unit", {"n_slots": 0}, "n_slots must be an integer from 1 to 4096, not 0"),
        (
            "softmax_unit",
            {"n_banks": 8, "n_slots": 2049},
            "n_slots must be at most 16384 divided by n_banks=8, not 2049",
        ),
        ("layer_norm_unit", {"n_lanes": 0}, "n_lanes must be an integer from 1 to 128, not 0"),
        ("layer_norm_unit", {"n_lanes": 129}, "n_lanes must be an integer from 1 to 128, not 129"),
        ("layer_norm_unit", {"n_slots": 0}, "n_slots must be an integer from 1 to 4096, not 0"),
        (
            "layer_norm_unit",
            {"n_lanes": 3, "n_slots": 1366},
            "n_slots must be at most 4096 divided by n_lanes=3, not 1366",
        ),
    ],
)
def test_bad_parameters_are_refused(unit, parameters, message):
    with pytest.raises(ValueError, match=message):
        make_block(unit, None, parameters)
