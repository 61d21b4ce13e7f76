"""The pipelined adder against NumPy's additions, whose results are those of IEEE 754."""

import numpy as np
import pytest

from golden.spec.formats import FP16, FP32
from hw.arith.float_adder import FloatAdder
from verif.bench.lockstep import run_lockstep

TYPES = {"fp16": (FP16, np.uint16, np.float16), "fp32": (FP32, np.uint32, np.float32)}


def operands(fmt, rng, count):
    """Pairs of words: any, near each other in exponent, near opposites, and all pairs of special ones."""
    top = 1 << fmt.width
    any_pair = rng.integers(0, top, (count, 2))
    near = any_pair.copy()
    near[:, 1] = near[:, 0] + rng.integers(-3, 4, count) * (1 << fmt.fraction_width) + rng.integers(-9, 9, count)
    opposite = near ^ [0, 1 << (fmt.width - 1)]
    small = rng.integers(0, 4 << fmt.fraction_width, (count, 2)) ^ (rng.integers(0, 2, (count, 2)) << (fmt.width - 1))
    corner = [0, 1, (1 << fmt.fraction_width) - 1, 1 << fmt.fraction_width, fmt.infinity - 1, fmt.infinity, fmt.nan]
    corner = np.array([word | sign for word in corner for sign in (0, 1 << (fmt.width - 1))])
    pairs = np.stack(np.meshgrid(corner, corner), -1).reshape(-1, 2)
    return np.concatenate([any_pair, near % top, opposite % top, small, pairs])


@pytest.mark.parametrize("name", TYPES)
def test_sums(name):
    fmt, word, number = TYPES[name]
    pairs = operands(fmt, np.random.default_rng(1), 1500).astype(word)
    with np.errstate(all="ignore"):
        exact = pairs[:, 0].view(number) + pairs[:, 1].view(number)
    expected = np.where(np.isnan(exact), fmt.nan, exact.view(word))
    found = run_lockstep(FloatAdder(format=name), {"left": pairs[:, 0], "right": pairs[:, 1]}, ["sum"])["sum"]
    wrong = np.flatnonzero(np.array(found) != expected)
    assert not len(wrong), [(hex(pairs[i, 0]), hex(pairs[i, 1]), hex(found[i]), hex(expected[i])) for i in wrong[:5]]
