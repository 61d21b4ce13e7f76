"""The golden model of a vector lane against Berkeley TestFloat, NumPy's own FP16 and exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from golden.arith import elementwise as lane
from golden.arith.floats import decode, equal_or_nan, from_float64, is_nan, to_float64
from golden.spec.formats import BF16, FP16, FP32
from golden.spec.vector_operations import VectorOp
from verif.bench.testfloat import SOURCES, vectors

ALL_WORDS = np.arange(1 << 16, dtype=np.uint32)
FORMATS = pytest.mark.parametrize("fmt", [FP16, BF16], ids=lambda fmt: fmt.name)


@pytest.mark.parametrize("name", SOURCES)
def test_testfloat(name):
    case = vectors(name)
    wrong = case.wrong(lane.elementwise(case.operation, case.a, case.b, case.c))
    assert not len(wrong), f"{len(wrong)} of {len(case.a)}, first row {wrong[0]}"


def test_conversions_of_all_words():
    word = ALL_WORDS.astype(np.uint16)
    single = word.view(np.float16).astype(np.float32).view(np.uint32)
    assert equal_or_nan(FP32, lane.to_fp32(word), single).all()
    assert equal_or_nan(FP16, lane.from_fp32(single), word).all()
    assert (lane.to_fp32(ALL_WORDS, BF16) == np.where(is_nan(BF16, ALL_WORDS), FP32.nan, ALL_WORDS << 16)).all()


def test_narrowing_against_numpy():
    word = np.random.default_rng(1).integers(0, 1 << 32, 300_000, dtype=np.uint32)
    # Most exponents of FP32 are out of FP16's range: move half of the words into it.
    word[::2] = word[::2] & 0x807FFFFF | np.random.default_rng(2).integers(100, 145, 150_000, dtype=np.uint32) << 23
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        expected = word.view(np.float32).astype(np.float16).view(np.uint16)
    assert equal_or_nan(FP16, lane.from_fp32(word), expected).all()
    assert equal_or_nan(BF16, lane.from_fp32(word, BF16), from_float64(BF16, to_float64(FP32, word))).all()


@FORMATS
def test_add_and_multiply_against_float64(fmt):
    # float64 holds every product exactly and every FP16 sum too; BF16 sums are compared where it does.
    a, b = np.random.default_rng(3).integers(0, 1 << 16, (2, 200_000), dtype=np.uint32)
    x, y = to_float64(fmt, a), to_float64(fmt, b)
    with np.errstate(invalid="ignore"):
        product, total = x * y, x + y
    assert equal_or_nan(fmt, lane.multiply(a, b, fmt), from_float64(fmt, product)).all()
    near = np.abs(decode(fmt, a).field - decode(fmt, b).field) < 40
    assert near.sum() > 10_000
    assert equal_or_nan(fmt, lane.add(a, b, fmt), from_float64(fmt, total))[near].all()
    assert equal_or_nan(fmt, lane.subtract(a, b ^ fmt.sign_bit, fmt), lane.add(a, b, fmt)).all()
    assert equal_or_nan(fmt, lane.absolute_difference(a, b, fmt), lane.subtract(a, b, fmt) & (fmt.sign_bit - 1)).all()


def _nearest(fmt, exact):
    """The rounded magnitude of a rational number, found among the format's words by bisection."""
    low, high = 0, fmt.infinity
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _value(fmt, middle) <= exact else (low, middle)
    below, above = exact - _value(fmt, low), _value(fmt, high) - exact
    return low if below < above or (below == above and low % 2 == 0) else high


def _value(fmt, word):
    """The number of a finite word; Inf counts as the power of two that follows the largest number."""
    field, fraction = word >> fmt.fraction_width, word & ((1 << fmt.fraction_width) - 1)
    significand = fraction | (field > 0) << fmt.fraction_width
    return significand * Fraction(2) ** (max(field, 1) - fmt.bias - fmt.fraction_width)


def _signed_value(fmt, word):
    return _value(fmt, word & (fmt.sign_bit - 1)) * (-1 if word & fmt.sign_bit else 1)


@FORMATS
def test_fused_multiply_add_against_fractions(fmt):
    rng = np.random.default_rng(4)
    a, b, c = rng.integers(0, 1 << 16, (3, 3000))
    # A third of the addends nearly cancel the product.
    close = np.clip(lane.multiply(a, b, fmt).astype(int) + rng.integers(-2, 3, 3000), 0, 65535) ^ fmt.sign_bit
    c = np.where(rng.random(3000) < 0.33, close, c)
    finite = np.flatnonzero(np.all([~decode(fmt, x).is_nan & ~decode(fmt, x).is_inf for x in (a, b, c)], axis=0))
    results, checked = lane.fused_multiply_add(a, b, c, fmt), 0
    for row in finite.tolist():
        x, y, z = (_signed_value(fmt, int(word[row])) for word in (a, b, c))
        exact = x * y + z
        if exact:
            expected = _nearest(fmt, abs(exact)) | (fmt.sign_bit if exact < 0 else 0)
            assert results[row] == expected, [hex(w[row]) for w in (a, b, c)]
            checked += 1
    assert checked > 2000


@FORMATS
def test_signs_of_zero_and_specials(fmt):
    plus, minus, one, inf, nan = 0, fmt.sign_bit, fmt.bias << fmt.fraction_width, fmt.infinity, fmt.nan
    negative_inf, negative_one = inf | minus, one | minus
    fma = {
        (plus, one, minus): plus,
        (minus, one, minus): minus,
        (minus, minus, plus): plus,
        (one, negative_one, one): plus,
        (1, 1, plus): plus,
        (1, 1 | minus, plus): minus,
        (inf, plus, one): nan,
        (inf, one, negative_inf): nan,
        (inf, negative_one, nan | 1): nan,
        (one, one, negative_inf): negative_inf,
        (inf, negative_one, one): negative_inf,
    }
    for (a, b, c), expected in fma.items():
        assert int(lane.fused_multiply_add(a, b, c, fmt)) == expected, (a, b, c)
    pairs = [(plus, minus), (minus, plus), (nan | 1, inf), (negative_inf, nan), (nan | 1, nan | minus)]
    assert [int(lane.maximum(x, y, fmt)) for x, y in pairs] == [plus, plus, inf, negative_inf, nan]
    assert [int(lane.minimum(x, y, fmt)) for x, y in pairs] == [minus, minus, inf, negative_inf, nan]
    assert int(lane.multiply(minus, one, fmt)) == minus
    assert int(lane.absolute_difference(nan | minus, one, fmt)) == nan


@FORMATS
def test_maximum_is_an_order(fmt):
    a, b = np.random.default_rng(5).integers(0, 1 << 16, (2, 100_000))
    high, low = lane.maximum(a, b, fmt).astype(int), lane.minimum(a, b, fmt).astype(int)
    numbers = ~is_nan(fmt, a) & ~is_nan(fmt, b)
    assert numbers.sum() > 50_000
    assert (high + low == a + b)[numbers].all()
    assert lane.less_equal(low, high, fmt)[numbers].all()
    assert (to_float64(fmt, high) == np.fmax(to_float64(fmt, a), to_float64(fmt, b)))[~is_nan(fmt, high)].all()


def test_unknown_operation():
    with pytest.raises(ValueError, match="operation must be one of ADD, .*, not 17"):
        lane.elementwise(17, 0, 0, 0)


def test_million_elements():
    a, b, c = np.random.default_rng(6).integers(0, 1 << 16, (3, 1_000_000), dtype=np.uint16)
    assert lane.elementwise(VectorOp.FMA, a, b, c).shape == (1_000_000,)
