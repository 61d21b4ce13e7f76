"""The dot-product model against exact fractions: its error bound, its specials, and the stream's first and last."""

from fractions import Fraction

import numpy as np
import pytest

from golden.arith import floats
from golden.arith.floats import word_type
from golden.spec.dot_product_unit import DEFAULT_ALIGN_WIDTHS
from golden.spec.formats import FORMATS, FP16, FP32
from golden.units.dot_product_unit import dot_product_stream, dot_products
from hw.units.dot_product_unit import DotProductUnit

SEED = 20240607


def words_gaussian(fmt, rng, shape):
    return floats.from_float64(fmt, rng.standard_normal(shape))


def words_uniform_bits(fmt, rng, shape):
    """Any finite word."""
    words = rng.integers(0, 1 << fmt.width, shape).astype(word_type(fmt))
    return np.where(words & fmt.infinity == fmt.infinity, words ^ (1 << fmt.fraction_width), words).astype(
        word_type(fmt)
    )


def words_subnormal_heavy(fmt, rng, shape):
    """Mostly subnormals of every magnitude and zeros, some numbers of any exponent."""
    fraction = rng.integers(0, 1 << fmt.fraction_width, shape) >> rng.integers(0, fmt.fraction_width + 1, shape)
    small = fraction | rng.integers(0, 2, shape) * fmt.sign_bit
    return np.where(rng.random(shape) < 0.6, small, words_uniform_bits(fmt, rng, shape)).astype(word_type(fmt))


def words_close_exponents(fmt, rng, shape):
    """A few neighbouring exponents, anywhere in the range, another place for each vector."""
    base = rng.integers(0, (1 << fmt.exponent_width) - 4, (shape[0],) + (1,) * (len(shape) - 1))
    field = base + rng.integers(0, 3, shape)
    fraction = rng.integers(0, 1 << fmt.fraction_width, shape)
    return (field << fmt.fraction_width | fraction | rng.integers(0, 2, shape) * fmt.sign_bit).astype(word_type(fmt))


def cancelling(fmt, rng, shape, words=words_close_exponents):
    """Pairs of products that nearly or entirely cancel; the last lane breaks the tie."""
    query, key = words(fmt, rng, shape), words(fmt, rng, shape)
    half = shape[-1] // 2
    if half:
        query[..., half : 2 * half] = query[..., :half]
        key[..., half : 2 * half] = key[..., :half] ^ fmt.sign_bit ^ (rng.random(key[..., :half].shape) < 0.2)
        # The last bit may have made an infinity of the largest number.
        special = key & fmt.infinity == fmt.infinity
        key = np.where(special, 0, key).astype(word_type(fmt))
    return query, key


def pairs(kind, fmt, rng, shape):
    if kind == "cancelling":
        return cancelling(fmt, rng, shape)
    if kind == "cancelling_subnormal":
        return cancelling(fmt, rng, shape, words_subnormal_heavy)
    words = {
        "gaussian": words_gaussian,
        "any": words_uniform_bits,
        "subnormal": words_subnormal_heavy,
        "close": words_close_exponents,
    }[kind]
    return words(fmt, rng, shape), words(fmt, rng, shape)


def exact_terms(fmt, query, key):
    """The products of one dot product, as fractions."""
    left, right = floats.decode(fmt, query.ravel()), floats.decode(fmt, key.ravel())
    return [
        (-1) ** (sign_a ^ sign_b) * Fraction(a * b) * Fraction(2) ** (ea + eb)
        for sign_a, a, ea, sign_b, b, eb in zip(
            *(
                part.tolist()
                for part in (left.sign, left.significand, left.exponent, right.sign, right.significand, right.exponent)
            ),
            strict=False,
        )
    ]


def half_ulp(fmt, word):
    """Half the distance from a finite word to its neighbour."""
    number = floats.decode(fmt, word)
    return Fraction(2) ** (int(number.exponent) - 1)


@pytest.mark.parametrize("kind", ["gaussian", "any", "subnormal", "close", "cancelling", "cancelling_subnormal"])
@pytest.mark.parametrize(
    "format, align_width", [("fp16", None), ("fp16", 23), ("fp16", 40), ("bf16", None), ("bf16", 17), ("bf16", 27)]
)
@pytest.mark.parametrize("n_beats, n_lanes", [(1, 1), (9, 1), (1, 5), (3, 16)])
def test_error_bound(kind, format, align_width, n_beats, n_lanes):
    fmt = FORMATS[format]
    rng = np.random.default_rng([SEED, n_beats, n_lanes])
    query, key = pairs(kind, fmt, rng, (60, n_beats, n_lanes))
    scores = dot_products(query, key, format=format, align_width=align_width)
    checked = 0
    for one_query, one_key, wide, narrow in zip(query, key, scores.wide, scores.narrow, strict=False):
        terms = exact_terms(fmt, one_query, one_key)
        largest = max(map(abs, terms))
        alignment = len(terms) * Fraction(2) ** (3 - (align_width or DEFAULT_ALIGN_WIDTHS[format])) * largest
        for result_format, word in ((FP32, wide), (fmt, narrow)):
            assert not floats.is_nan(result_format, word)
            if word & result_format.infinity == result_format.infinity:
                assert abs(sum(terms)) + alignment >= exact_limit(result_format)
            else:
                result = Fraction(float(floats.to_float64(result_format, word)))
                assert abs(result - sum(terms)) <= alignment + half_ulp(result_format, word)
            checked += 1
    assert checked == 120


def exact_limit(fmt):
    """The smallest magnitude that rounds to infinity."""
    largest = np.array(fmt.infinity - 1, dtype=word_type(fmt))
    return Fraction(float(floats.to_float64(fmt, largest))) + half_ulp(fmt, largest)


@pytest.mark.parametrize("align_width, expected", [(None, 0), (28, 0), (29, 1), (40, 1)])
def test_a_small_term_beside_large_ones_that_cancel(align_width, expected):
    """The example of the unit's description: 2**26 - 2**26 + 1."""
    query = np.float16([[[2**13, -(2**13), 1]]]).view(np.uint16)
    key = np.float16([[[2**13, 2**13, 1]]]).view(np.uint16)
    scores = dot_products(query, key, format="fp16", align_width=align_width)
    assert scores.wide.view(np.float32) == expected


def test_long_sums_keep_the_bound():
    fmt = FP16
    rng = np.random.default_rng(SEED)
    query, key = pairs("gaussian", fmt, rng, (4, 500, 3))
    scores = dot_products(query, key, format="fp16", align_width=23)
    for one_query, one_key, wide in zip(query, key, scores.wide, strict=False):
        terms = exact_terms(fmt, one_query, one_key)
        result = Fraction(float(floats.to_float64(FP32, wide)))
        alignment = len(terms) * Fraction(2) ** (3 - 23) * max(map(abs, terms))
        assert abs(result - sum(terms)) <= alignment + half_ulp(FP32, wide)


@pytest.mark.parametrize("format, share", [("fp16", 0.999), ("bf16", 0.998)])
def test_gaussian_vectors_are_correctly_rounded(format, share):
    """Of the default window's FP16 and BF16 results, how many are those of exact arithmetic."""
    fmt, rng = FORMATS[format], np.random.default_rng(SEED)
    query, key = (words_gaussian(fmt, rng, (50_000, 4, 16)) for _ in range(2))
    scores = dot_products(query, key, format=format)
    products = floats.to_float64(fmt, query) * floats.to_float64(fmt, key)
    exact = products.sum(axis=(1, 2))
    # Sums of float64 are right to 2**-53 of their terms, far below what decides the rounding to 11 bits.
    right = scores.narrow == floats.from_float64(fmt, exact)
    print(f"{format}: {right.mean():.5f} are correctly rounded, seed {SEED}")
    assert right.mean() >= share


def test_narrow_is_rounded_from_the_unrounded_sum():
    """1 + 2**-11 + 2**-26 is a tie once rounded to FP32; rounded twice it would become 1."""
    one, small, tiny = (floats.from_float64(FP16, value) for value in (1.0, 2.0**-11, 2.0**-13))
    query = np.array([[one, small, tiny]])
    key = np.array([[one, one, tiny]])
    scores = dot_products(query, key, format="fp16", align_width=40)
    assert floats.to_float64(FP32, scores.wide) == 1 + 2.0**-11
    assert floats.to_float64(FP16, scores.narrow) == 1 + 2.0**-10


@pytest.mark.parametrize("format", ["fp16", "bf16"])
def test_specials(format):
    fmt = FORMATS[format]
    inf, nan, minus = fmt.infinity, fmt.nan | 1, fmt.sign_bit
    one, zero, largest = fmt.bias << fmt.fraction_width, 0, fmt.infinity - 1
    cases = [
        (([nan, one], [one, one]), fmt.nan),
        (([inf, one], [zero, one]), fmt.nan),
        (([one, minus], [one, inf]), fmt.nan),
        (([inf, one], [one, inf | minus]), fmt.nan),
        (([inf, nan], [inf, one]), fmt.nan),
        (([inf, one], [one, inf]), inf),
        (([inf, largest], [minus | one, largest]), inf | minus),
        (([largest, largest], [largest, largest]), inf),
        (([minus, minus], [one, zero]), zero),
        (([one, one], [one, one | minus]), zero),
        (([minus, one], [one, minus]), zero),
    ]
    for (query, key), expected in cases:
        for shape in ((1, 2), (2, 1)):
            scores = dot_products(np.reshape(query, shape), np.reshape(key, shape), format=format)
            assert scores.narrow == expected
            if expected == fmt.nan:
                assert scores.wide == FP32.nan
            if expected == zero:
                assert scores.wide == 0


def test_int8_is_exact_and_wraps():
    rng = np.random.default_rng(SEED)
    query, key = rng.integers(-128, 128, (2, 20, 7, 5))
    scores = dot_products(query & 255, key & 255, format="int8")
    assert np.array_equal(scores.wide.view(np.int32), (query * key).sum(axis=(1, 2)))
    assert scores.narrow is None
    many = np.full((1, 2048, 64), 0x80)
    assert dot_products(many, many, format="int8").wide == 2**31  # 2**17 products of 2**14


@pytest.mark.parametrize("format", ["fp16", "int8"])
def test_stream_is_the_vectors_that_first_and_last_cut(format):
    rng = np.random.default_rng(SEED)
    n_beats = 400
    shape = (n_beats, 3)
    if format == "int8":
        query, key = rng.integers(0, 256, (2, *shape))
    else:
        query, key = (words_gaussian(FP16, rng, shape) for _ in range(2))
    first, last = rng.random((2, n_beats)) < 0.3
    scores = dot_product_stream(query, key, first, last, format=format)
    expected, start = [], 0
    for beat in range(n_beats):
        start = beat if first[beat] else start
        if last[beat]:
            expected.append(dot_products(query[start : beat + 1], key[start : beat + 1], format=format).wide)
            start = beat + 1
    assert len(expected) > 50
    assert np.array_equal(scores.wide, expected)


def test_accumulator_wraps_beyond_its_headroom():
    """The largest products that are aligned to their own exponent, twice as many as the accumulator holds."""
    query = np.full((1, 4, 1), FP16.infinity - 1)
    key = query - (1 << FP16.fraction_width)
    fits = dot_products(query, key, format="fp16", max_terms=4)
    wraps = dot_products(query, key, format="fp16", max_terms=2)
    exact = 4 * 65504.0 * 32752.0
    assert floats.to_float64(FP32, fits.wide) == np.float32(exact)
    assert floats.to_float64(FP32, wraps.wide) != np.float32(exact)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"format": "fp32"}, "format must be one of fp16, bf16, int8, not 'fp32'"),
        ({"format": "fp16", "align_width": 41}, "align_width must be none, or an integer from 17 to 40, not 41"),
        ({"format": "fp16", "align_width": 22}, "align_width must be at least 23 with format=fp16"),
        ({"format": "bf16", "align_width": 16}, "align_width must be none, or an integer from 17 to 40, not 16"),
        ({"format": "fp16", "max_terms": 48}, "max_terms must be none, or a power of two from 2 to 1048576, not 48"),
        ({"format": "fp16", "max_terms": 2}, "max_terms must be at least n_lanes=4, not 2"),
        ({"format": "int8", "align_width": 27}, "align_width must be none with format=int8"),
        ({"format": "int8", "max_terms": 64}, "max_terms must be none with format=int8"),
    ],
)
def test_refuses_what_the_hardware_refuses(values, message):
    with pytest.raises(ValueError, match=message):
        dot_products(np.zeros((1, 4), int), np.zeros((1, 4), int), **values)
    with pytest.raises(ValueError, match=message):
        DotProductUnit(n_lanes=4, **values)


def test_int8_has_no_score_but_the_wide_one():
    with pytest.raises(ValueError, match="wide_score must be true with format=int8, which has no other score"):
        DotProductUnit(format="int8", wide_score=False)


def test_refuses_what_are_no_words():
    words = np.zeros((1, 4), int)
    with pytest.raises(TypeError, match="query must be integers, the words of the numbers, not float64"):
        dot_products(words.astype(float), words, format="fp16")
    with pytest.raises(ValueError, match="key must be words of 16 bits, from 0 to 65535, not 65536"):
        dot_products(words, words + 0x10000, format="fp16")
    with pytest.raises(ValueError, match="query must be words of 8 bits, from 0 to 255, not -1"):
        dot_products(words - 1, words, format="int8")
    assert dot_products(np.full((1, 4), -1, np.int8), np.full((1, 4), 255), format="int8").wide == 4
    with pytest.raises(ValueError, match="n_lanes must be an integer from 1 to 1024, not 1025"):
        dot_products(np.zeros((1, 1025), int), np.zeros((1, 1025), int), format="int8")
