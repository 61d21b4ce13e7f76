"""The accumulator's golden model against a serial definition in Python integers, and its error bound."""

from fractions import Fraction

import numpy as np
import pytest

from golden.arith.accumulator import Accumulator
from golden.arith.floats import from_float64, is_nan, to_float64, word_type
from golden.spec.formats import FORMATS, FP32
from golden.spec.vector_unit import GUARD_BITS


def exact(fmt, word):
    """The value of a finite word as a fraction."""
    return Fraction(float(to_float64(fmt, word)))


def serial(accumulator, left, right):
    """The recurrence of the docstring, term after term: (total, exponent)."""
    fmt, p = accumulator.float_format, accumulator.precision
    total = exponent = 0
    for x, y in zip(left, right, strict=False):
        product = exact(fmt, x) * exact(fmt, y)
        addend, code = 0, 0
        if product:
            parts = []
            for factor in (exact(fmt, x), exact(fmt, y)):
                lowest = 0
                while abs(factor) * Fraction(2) ** -lowest >= 2**p:
                    lowest += 1
                while abs(factor) * Fraction(2) ** -lowest < 2 ** (p - 1):
                    lowest -= 1
                parts.append(lowest)
            code = sum(parts) + accumulator.zero_exponent
            addend = int(abs(product) * Fraction(2) ** -sum(parts)) << (accumulator.align_width - 2 * p)
        largest = max(exponent, code)
        addend >>= largest - code
        total = (total >> (largest - exponent)) + (-addend if product < 0 else addend)
        exponent = largest
    return total, exponent


def words(rng, fmt, shape, spread):
    """Random words with exponents over `spread` binades, some zeros and subnormals among them."""
    value = rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, 1, shape)
    word = from_float64(fmt, value)
    kind = rng.integers(0, 20, shape)
    subnormal = rng.integers(0, 1 << fmt.fraction_width, shape).astype(word_type(fmt))
    return np.where(kind == 0, word_type(fmt).type(0), np.where(kind == 1, subnormal, word))


@pytest.mark.parametrize("format", ["fp16", "bf16"])
@pytest.mark.parametrize("align_width", [24, 28, 40])
def test_equals_the_serial_definition(format, align_width):
    rng = np.random.default_rng(1)
    accumulator = Accumulator(format=format, align_width=align_width)
    fmt = FORMATS[format]
    checked = 0
    for spread in (0, 8, 20, 60 if format == "bf16" else 24):
        left, right = (words(rng, fmt, (60, 3), spread) for _ in range(2))
        starts = np.array([0, 1, 2, 30])
        sums = accumulator.accumulate(accumulator.products(left, right), starts)
        for run, (low, high) in enumerate(zip(starts, [*starts[1:], 60], strict=False)):
            for lane in range(3):
                expected = serial(accumulator, left[low:high, lane], right[low:high, lane])
                assert (sums.total[run, lane], sums.exponent[run, lane]) == expected
                checked += 1
    assert checked == 48


@pytest.mark.parametrize("format", ["fp16", "bf16"])
@pytest.mark.parametrize("axes", [(1,), (2,), (2, 1)])
def test_error_bound(format, axes):
    """Random and adversarial terms stay within n * 2**(3-W) * max|term| + 1/2 ulp of the exact sum."""
    rng = np.random.default_rng(2)
    fmt = FORMATS[format]
    worst = 0.0
    for width in (24, 28):
        accumulator = Accumulator(format=format, align_width=width)
        for spread in (0, 4, 12, 22):
            left, right = (words(rng, fmt, (24, 4, 3), spread) for _ in range(2))
            # Large terms that cancel leave the small ones, which is where a window loses most.
            left[12], right[12] = left[3], right[3] ^ word_type(fmt).type(fmt.sign_bit)
            sums = accumulator.accumulate(accumulator.products(left, right), np.array([0]))
            guard_bits = GUARD_BITS
            for axis in axes:
                sums = accumulator.align(sums, axis, guard_bits=guard_bits)
                sums = type(sums)(*(np.expand_dims(field, axis) for field in sums))
                guard_bits = 0
            single, rounded = accumulator.round(sums)
            for engine in range(single.shape[1]):
                for lane in range(single.shape[2]):
                    x = left if 1 in axes else left[:, engine : engine + 1]
                    y = right if 1 in axes else right[:, engine : engine + 1]
                    x = (x if 2 in axes else x[:, :, lane]).ravel()
                    y = (y if 2 in axes else y[:, :, lane]).ravel()
                    terms = [exact(fmt, a) * exact(fmt, b) for a, b in zip(x, y, strict=False)]
                    bound = len(terms) * Fraction(2) ** (3 - width) * max(map(abs, terms))
                    for out, word in ((FP32, single), (fmt, rounded)):
                        result = to_float64(out, word[0, engine, lane])
                        if np.isinf(result):
                            continue
                        ulp = Fraction(2) ** max(
                            int(np.floor(np.log2(abs(result)))) - out.fraction_width if result else -(10**6),
                            1 - out.bias - out.fraction_width,
                        )
                        error = abs(Fraction(float(result)) - sum(terms))
                        assert error <= bound + ulp / 2
                        worst = max(worst, float(max(error - ulp / 2, 0) / bound))
    assert 0 < worst < 1


def test_specials():
    accumulator = Accumulator()
    zero, one, infinity, minus_infinity, nan = 0x0000, 0x3C00, 0x7C00, 0xFC00, 0x7E00
    cases = [
        ([(one, infinity)], "inf"),
        ([(one, minus_infinity), (one, one)], "-inf"),
        ([(zero, infinity)], "nan"),
        ([(one, infinity), (one, minus_infinity)], "nan"),
        ([(nan, zero)], "nan"),
        ([(0x8000, one)], 0.0),
        ([(one, one), (one, 0xBC00)], 0.0),
        ([(minus_infinity, minus_infinity), (infinity, one)], "inf"),
        ([(0x7BFF, 0x7BFF)] * 3, 3 * 65504.0**2),
        ([(1, 1), (one, one)], 1.0),
        ([(1, 1)], 2.0**-48),
    ]
    for pairs, expected in cases:
        left, right = (np.array(side, np.uint16)[:, None, None] for side in zip(*pairs, strict=False))
        sums = accumulator.accumulate(accumulator.products(left, right), np.array([0]))
        sums = accumulator.align(sums, 1)
        single, rounded = accumulator.round(sums)
        value = float(to_float64(FP32, single)[0, 0])
        if expected == "nan":
            assert np.isnan(value) and is_nan(FORMATS["fp16"], rounded)[0, 0]
        else:
            assert value == float(expected)
            assert single[0, 0] >> 31 == (float(expected) < 0)  # a zero is +0
    assert rounded[0, 0] == 0  # 2**-48 underflows in FP16


def test_overflow_is_refused():
    accumulator = Accumulator(max_terms=4)
    largest = np.full((16, 1, 1), 0x7BFF, np.uint16)
    with pytest.raises(ValueError, match="max_terms=4"):
        accumulator.accumulate(accumulator.products(largest, largest), np.array([0]))


def test_a_million_terms():
    rng = np.random.default_rng(3)
    accumulator = Accumulator(max_terms=1 << 20)
    left, right = (from_float64(FORMATS["fp16"], rng.standard_normal((1 << 20, 1, 1))) for _ in range(2))
    sums = accumulator.align(accumulator.accumulate(accumulator.products(left, right), np.array([0])), 1)
    single, _ = accumulator.round(sums)
    left, right = (to_float64(FORMATS["fp16"], side) for side in (left, right))
    assert abs(to_float64(FP32, single).item() - (left * right).sum()) < 2.0**-25 * 2**20 * 2
