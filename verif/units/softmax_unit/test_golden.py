"""The softmax unit's golden model against the definition: errors, special rows, the mask and what it keeps."""

from fractions import Fraction

import numpy as np
import pytest

from golden.arith import softmax_tables
from golden.arith.floats import from_float64, to_float64
from golden.arith.lines import evaluate
from golden.spec import softmax_unit as spec
from golden.spec.formats import FP16
from golden.spec.tables import LinearTable
from golden.units.softmax_unit import (
    at_least_theta,
    decode_scale,
    encode_scale,
    retained_mass,
    softmax,
    truncated_product,
)

NAN, INFINITY, NEGATIVE_INFINITY = FP16.nan, FP16.infinity, FP16.infinity | FP16.sign_bit
SCALES = (1, 32**-0.5, 1024**-0.5, 0.0002, 7.3)


def exact(scores, enable, scale, factor=FP16.one):
    """The unit's definition in float64; its own error is some 2**-45 for differences that count."""
    values = np.where(enable, to_float64(FP16, scores), -np.inf)
    largest = values.max(axis=-1, keepdims=True)
    powers = np.exp2(decode_scale(scale) * (values - np.where(np.isinf(largest), 0, largest)))
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total > 0, total, 1) * to_float64(FP16, np.asarray(factor).reshape(-1, 1))


def ulps(found, wanted):
    """Distances in units of the last place that the exact result has."""
    exponent = np.maximum(np.floor(np.log2(np.maximum(wanted, 2.0**-30))), 1 - FP16.bias)
    return np.abs(to_float64(FP16, found) - wanted) / np.exp2(exponent - FP16.fraction_width)


def rows_of(kind, rng, shape, scale):
    """Scores of one kind, wide enough apart for the scale to show."""
    unit = 1 / decode_scale(scale)
    values = {
        "random": lambda: rng.normal(0, 4, shape),
        "spread": lambda: rng.normal(0, 30, shape),
        "flat": lambda: rng.normal(0, 0.01, shape),
        "offset": lambda: rng.normal(0, 3, shape) + rng.normal(0, 200, (shape[0], 1)),
        "spiky": lambda: np.where(rng.random(shape) < 0.02, rng.normal(12, 1, shape), rng.normal(0, 1, shape)),
        "stairs": lambda: -rng.integers(0, 2000, shape) / 64,
    }[kind]()
    return from_float64(FP16, np.clip(values * unit, -65504, 65504))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", ["random", "spread", "flat", "offset", "spiky", "stairs"])
def test_error(kind, scale):
    rng = np.random.default_rng(1)
    word = encode_scale(scale)
    worst = 0
    for n in (1, 2, 3, 16, 100, 256, 1024, 4096):
        scores = rows_of(kind, rng, (max(4, 8192 // n), n), word)
        enable = rng.random(scores.shape) < rng.choice([0.1, 0.5, 1], (len(scores), 1))
        factor = np.where(rng.random(len(scores)) < 0.5, FP16.one, rng.integers(0x0000, 0x3C01, len(scores)))
        found = softmax(scores, enable, word, 0, factor)
        error = ulps(found.values, exact(scores, enable, word, factor))
        assert error.max() <= softmax_tables.error_bound(n)
        assert not found.values[~enable].any()
        worst = max(worst, error.max())
    print(f"{kind}, scale {scale}: largest error {worst:.3f} ulp")
    assert 0.45 < worst


def test_error_of_all_finite_scores():
    """Each FP16 number beside each of some maxima: the fixed-point window holds what counts at every magnitude."""
    rng = np.random.default_rng(2)
    words = np.arange(1 << 16).astype(np.uint16)
    words = words[words & INFINITY != INFINITY]
    for scale in SCALES:
        word = encode_scale(scale)
        for other in (0, 0x8001, 0x3C00, 0x7BFF, *rng.integers(0, 0x7C00, 4), *rng.integers(0x8000, 0xFC00, 4)):
            pairs = np.stack([words, np.full_like(words, other)], axis=1)
            enable = np.ones(pairs.shape, bool)
            assert ulps(softmax(pairs, enable, word).values, exact(pairs, enable, word)).max() < 2


def test_error_bound():
    """Below the 3 ulp that are asked for; its parts are those of the tables, evaluated at all arguments."""
    assert softmax_tables.error_bound(4096) < 2.5 and softmax_tables.error_bound() < 3
    tables = [
        (spec.power_table(), lambda f: 2**f, Fraction(0)),
        (spec.reciprocal_table(), lambda f: 2 / (1 + f), Fraction(1, 2 << spec.FRACTION)),
    ]
    for table, function, raised in tables:
        assert isinstance(table, LinearTable)
        argument = np.arange(1 << table.argument_width)
        lines = evaluate(table, argument) / 2.0**table.value_fraction
        distance = np.abs(lines - float(raised) - function((argument + 0.5) / len(argument)))
        assert abs(distance.max() - float(table.error)) < 1e-12
        assert (lines >= 1).all() and (lines < 2).all()


def test_truncated_product_is_near_the_product():
    rng = np.random.default_rng(3)
    for widths, dropped, centre in (
        ((19, 16), spec.EXPONENT_DROPPED, spec.EXPONENT_CENTRE),
        ((14, 14), spec.PRODUCT_DROPPED, spec.PRODUCT_CENTRE),
    ):
        left, right = (rng.integers(0, 1 << width, 200_000) for width in widths)
        left[0], right[0] = ((1 << width) - 1 for width in widths)
        error = truncated_product(left, right, dropped, centre) - left * right / 2.0**dropped
        assert error.max() <= centre and error.min() >= centre - (dropped - 1) - 2.0**-dropped
        assert error.min() < 0 < error.max()


@pytest.mark.parametrize("scale", [0.00017, *SCALES, 11])
def test_scale_words(scale):
    word = encode_scale(scale)
    assert abs(decode_scale(word) / (scale * np.log2(np.e)) - 1) <= 2.0**-16
    assert encode_scale(decode_scale(word) / np.log2(np.e)) == word


@pytest.mark.parametrize("scale", [0.00016, 12])
def test_scales_that_no_word_has(scale):
    with pytest.raises(ValueError, match="scale must be from 0.00017 to 11"):
        encode_scale(scale)


def one_row(words, enable=None, theta=0, factor=FP16.one):
    enable = np.ones(len(words), bool) if enable is None else np.array(enable, bool)
    found = softmax(np.array([words], np.uint16), enable[None], encode_scale(1), theta, factor)
    return found.values[0].tolist(), found.keep[0].tolist(), int(found.retained_mass[0])


def test_special_rows():
    half, third = 0x3800, int(from_float64(FP16, 1 / 3))
    assert one_row([NAN, INFINITY, 5], [0, 0, 0]) == ([0, 0, 0], [False] * 3, 0)
    assert one_row([NAN, 0xC123, INFINITY], [0, 1, 0]) == ([0, FP16.one, 0], [False, True, False], FP16.one)
    assert one_row([0, 0xFE01, 5]) == ([NAN] * 3, [False] * 3, 0)
    assert one_row([INFINITY, 0x7BFF, INFINITY, NEGATIVE_INFINITY])[0] == [half, 0, half, 0]
    assert one_row([INFINITY, NAN])[0] == [NAN, NAN]
    assert one_row([NEGATIVE_INFINITY] * 2) == ([0, 0], [True, True], 0)
    assert one_row([NEGATIVE_INFINITY, 0xFBFF])[0] == [0, FP16.one]
    assert one_row([0x7BFF, 0xFBFF])[0] == [FP16.one, 0]
    assert one_row([0x4900] * 3)[0] == [third] * 3
    assert one_row([0, 0x8000])[0] == [half, half]


@pytest.mark.parametrize("n", [1, 2, 8, 64, 1024, 4096])
def test_equal_scores_share_equally(n):
    for word in (0, 0x0001, 0x8001, 0x3555, 0x7BFF, 0xFBFF, 0xB001):
        found = softmax(np.full((1, n), word, np.uint16), np.ones((1, n), bool), encode_scale(1))
        assert (found.values == from_float64(FP16, 1 / n)).all()
        assert found.retained_mass == FP16.one


def test_order_does_not_matter():
    rng = np.random.default_rng(4)
    scores = rows_of("random", rng, (20, 300), encode_scale(1))
    enable = rng.random(scores.shape) < 0.7
    order = rng.permutation(300)
    found = softmax(scores, enable, encode_scale(1), 0x1800)
    mixed = softmax(scores[:, order], enable[:, order], encode_scale(1), 0x1800)
    assert np.array_equal(found.values[:, order], mixed.values) and np.array_equal(found.keep[:, order], mixed.keep)
    assert np.array_equal(found.retained_mass, mixed.retained_mass)


def test_threshold():
    values = np.array([0, 1, 0x03FF, 0x3400, 0x3C00, NAN], np.uint16)
    numbers = to_float64(FP16, values)
    for theta in (0, 0x8000, 1, 0x3400, 0x3C01, INFINITY, NEGATIVE_INFINITY, 0xBC00, NAN, 0xFE00):
        assert np.array_equal(at_least_theta(values, theta), numbers >= to_float64(FP16, theta))


def test_kept_mass_is_rounded_once():
    rng = np.random.default_rng(5)
    values = rng.integers(0, 0x2C00, (500, 60)).astype(np.uint16)
    keep = rng.random(values.shape) < rng.random((500, 1))
    exact_sums = np.where(keep, to_float64(FP16, values), 0).sum(axis=1)  # exact: multiples of 2**-24 below 2**29
    assert np.array_equal(retained_mass(values, keep), from_float64(FP16, exact_sums))


def test_factor():
    """Sign and the exponent's top bit are ignored; zero gives zeros; subnormal factors count."""
    words, factor = [0x3C00, 0x3800, 0xB800], 0x3555
    found = one_row(words, factor=factor)
    assert found == one_row(words, factor=factor | 0xC000)
    wanted = exact(np.array([words], np.uint16), np.ones((1, 3), bool), encode_scale(1), factor)
    assert ulps(np.array([found[0]]), wanted).max() <= softmax_tables.error_bound(3)
    assert one_row(words, factor=0)[0] == [0, 0, 0]
    assert one_row([0], factor=0x0001)[0] == [1] and one_row([0], factor=0x03A5)[0] == [0x03A5]


def test_report():
    lines = softmax_tables.report().splitlines()
    assert len(lines) == len(softmax_tables.error_budget(4096)) + 1 and "4096 elements" in lines[-1]
