"""The softmax unit beyond the standard testbench: in which clock each beat is taken and given, and wrong parameters."""

import numpy as np
import pytest

from golden.softmax_unit import ONE, encode_scale, softmax
from hw.registry import make_block
from hw.units.softmax_unit import SoftmaxUnit
from verif.bench import Batch
from verif.benches.softmax_unit import pack_probabilities, pack_scores
from verif.stream_times import stream_times

pytestmark = pytest.mark.slow

POINTS = [(1, 16), (4, 1), (8, 4)]


def batch_of(block, lengths, seed=1):
    """Random rows of given lengths."""
    p, rng = block.parameters, np.random.default_rng(seed)
    scores = rng.integers(0x3000, 0x4800, (len(lengths), p.n_slots * p.n_banks)).astype(np.uint16)
    sent = np.arange(scores.shape[1]) < np.array(lengths)[:, None] * p.n_banks
    enable = sent & (rng.random(scores.shape) < 0.7)
    scale, theta = encode_scale(0.5), 0x2000
    found = softmax(scores, enable, scale, theta)
    return Batch(
        {"score": pack_scores(p, scores, enable, lengths, np.full(len(lengths), ONE), rng)},
        {"probability": pack_probabilities(p, found, enable, lengths)},
        statics={"scale": scale, "theta": theta},
        causes={},
    )


def delays(block, lengths, **options):
    times = stream_times(block, batch_of(block, lengths), **options)
    assert len(times["score"]) == len(times["probability"]) == sum(lengths)
    return np.array(times["score"]), np.array(times["probability"])


@pytest.mark.parametrize("n_banks, n_slots", POINTS)
def test_latency_is_as_stated(n_banks, n_slots):
    block = make_block("softmax_unit", None, {"n_banks": n_banks, "n_slots": n_slots})
    taken, given = delays(block, [1])
    assert (given - taken).tolist() == [block.latency]


@pytest.mark.parametrize("n_banks, n_slots", POINTS)
def test_rows_of_equal_length_flow_without_a_gap(n_banks, n_slots):
    block = make_block("softmax_unit", None, {"n_banks": n_banks, "n_slots": n_slots})
    for length in sorted({1, (n_slots + 1) // 2, n_slots}):
        taken, given = delays(block, [length] * (2 + 90 // length))
        assert (np.diff(taken) == 1).all()
        assert (given - taken == block.latency + 2 * (length - 1)).all()


@pytest.mark.parametrize("idle", ["none", "bursty"])
@pytest.mark.parametrize("n_banks, n_slots", [(1, 16), (8, 4)])
def test_rows_of_mixed_lengths(n_banks, n_slots, idle):
    """Scores never wait, and every beat comes within the stated time."""
    block = make_block("softmax_unit", None, {"n_banks": n_banks, "n_slots": n_slots})
    rng = np.random.default_rng(2)
    lengths = [n_slots, *[1] * 2 * n_slots, n_slots, *rng.integers(1, n_slots + 1, 20), *[n_slots] * 3, 1, n_slots]
    taken, given = delays(block, lengths, idle=idle)
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
    "parameters, message",
    [
        ({"n_banks": 3}, "n_banks must be a power of two from 1 to 64, not 3"),
        ({"n_banks": 128}, "n_banks must be a power of two from 1 to 64, not 128"),
        ({"n_slots": 0}, "n_slots must be an integer from 1 to 4096, not 0"),
        ({"n_banks": 8, "n_slots": 2049}, "n_slots must be at most 16384 divided by n_banks=8, not 2049"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        SoftmaxUnit(**parameters)
