"""The emitted Verilog of the vector lane and of the fused multiply-add against golden model and TestFloat."""

import os

import numpy as np
import pytest

from golden.arith import elementwise as golden
from golden.arith.floats import from_float64
from golden.spec.formats import BF16, FP16, FP32
from golden.spec.vector_operations import VectorOp
from hw.arith.elementwise import ElementwiseLane
from hw.arith.fma import FusedMultiplyAdd
from verif.bench.lockstep import run_lockstep
from verif.bench.testfloat import SOURCES, vectors

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("SEED", "1"))
FORMATS = pytest.mark.parametrize("fmt", [FP16, BF16], ids=lambda fmt: fmt.name)


def words(fmt, rng, count):
    """Words with corner fractions and exponents, close to each other half of the time."""
    largest = (1 << fmt.exponent_width) - 1
    near = fmt.bias + rng.integers(-fmt.fraction_width - 2, fmt.fraction_width + 3, count)
    exponent = np.choose(
        rng.integers(0, 6, count),
        [
            rng.integers(0, largest + 1, count),
            near,
            near,
            near,
            rng.integers(0, 4, count),
            largest - rng.integers(0, 3, count),
        ],
    )
    full, one_bit = (1 << fmt.fraction_width) - 1, 1 << rng.integers(0, fmt.fraction_width, count)
    fraction = np.choose(
        rng.integers(0, 6, count),
        [np.zeros(count, int), np.full(count, full), one_bit, full ^ one_bit, *rng.integers(0, full + 1, (2, count))],
    )
    return rng.integers(0, 2, count) << fmt.width - 1 | exponent.clip(0, largest) << fmt.fraction_width | fraction


def triples(fmt, rng, count):
    """Operands of a * b + c; a third of the addends nearly cancel the product, and some are halfway cases."""
    a, b, c = (words(fmt, rng, count) for _ in range(3))
    product = golden.multiply(a, b, fmt).astype(int)
    close = np.clip((product & fmt.sign_bit - 1) + rng.integers(-2, 3, count), 0, fmt.infinity)
    return a, b, np.where(rng.random(count) < 0.3, close | ~product & fmt.sign_bit, c)


def singles(fmt, rng, count):
    """FP32 words: any, near the format's range, and halfway between two of its words."""
    word = words(FP32, rng, count)
    scale = np.exp2(rng.uniform(-fmt.bias - fmt.fraction_width - 2, fmt.bias + 2, count))
    inside = from_float64(FP32, np.clip(scale, 0, 2.0**127) * rng.choice([-1, 1], count)).astype(np.int64)
    below = FP32.fraction_width - fmt.fraction_width
    tie = inside & -1 << below | 1 << below - 1
    return np.choose(rng.integers(0, 4, count), [word, inside, tie, tie + rng.integers(-1, 2, count)])


def operands(operation, fmt, rng, count):
    if operation == VectorOp.TO_FP16:
        word = singles(fmt, rng, count)
        return word & 0xFFFF, word >> 16, words(fmt, rng, count)
    a, b, c = triples(fmt, rng, count)
    if operation not in (VectorOp.MUL, VectorOp.FMA):
        # The same magnitude, or its neighbour, with both signs.
        close = a ^ rng.integers(0, 2, count) << fmt.width - 1 ^ rng.integers(0, 2, count)
        b = np.where(rng.random(count) < 0.4, close, b)
    return a, b, c


@FORMATS
def test_lane_against_golden(fmt):
    rng = np.random.default_rng(SEED)
    count = 500
    parts = [(op, *operands(op, fmt, rng, count)) for op in golden.ELEMENTWISE_OPS]
    operation = np.repeat([int(op) for op in golden.ELEMENTWISE_OPS], count)
    a, b, c = (np.concatenate([part[index] for part in parts]) for index in (1, 2, 3))
    expected = np.concatenate([golden.elementwise(*part, fmt) for part in parts])
    order = rng.permutation(len(expected))  # operations follow each other in any order
    operation, a, b, c, expected = (array[order] for array in (operation, a, b, c, expected))
    inputs = {"operation": operation, "a": a, "b": b, "c": c}
    got = run_lockstep(ElementwiseLane(format=fmt.name), inputs, ["result"], seed=SEED)["result"]
    assert len(got) == len(expected)
    wrong = [row for row, result in enumerate(got) if result != expected[row]]
    shown = [(VectorOp(operation[row]).name, *(hex(x[row]) for x in (a, b, c, expected))) for row in wrong[:5]]
    assert not wrong, shown


def test_lane_against_testfloat():
    cases = [vectors(name).first(800) for name in SOURCES]
    inputs = {"operation": np.concatenate([np.full(len(case.a), int(case.operation)) for case in cases])}
    inputs |= {port: np.concatenate([getattr(case, port) for case in cases]) for port in "abc"}
    got = run_lockstep(ElementwiseLane(format="fp16"), inputs, ["result"], seed=SEED)["result"]
    assert len(got) == len(inputs["a"])
    for case in cases:
        results, got = got[: len(case.a)], got[len(case.a) :]
        assert None not in results, f"{case.name} gave X"
        wrong = case.wrong(results)
        assert not len(wrong), f"{case.name}: {len(wrong)} of {len(case.a)}, first row {wrong[0]}"


@FORMATS
def test_fused_multiply_add_against_golden(fmt):
    a, b, c = triples(fmt, np.random.default_rng(SEED + 1), 4000)
    got = run_lockstep(FusedMultiplyAdd(format=fmt.name), {"a": a, "b": b, "c": c}, ["result"], seed=SEED)["result"]
    expected = golden.fused_multiply_add(a, b, c, fmt).tolist()
    wrong = [row for row, result in enumerate(got) if result != expected[row]]
    assert len(got) == len(expected)
    assert not wrong, [tuple(hex(x[row]) for x in (a, b, c)) for row in wrong[:5]]
