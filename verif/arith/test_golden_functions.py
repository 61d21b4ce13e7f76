"""The golden functions on every word of both 16-bit formats: error, monotony, exact points, specials; the fits."""

import math
from decimal import Decimal

import numpy as np
import pytest

from golden.arith import function_tables, gelu_tables, silu_tables
from golden.arith.floats import bit_length, is_nan, to_float64, word_type
from golden.arith.functions import exponential, gelu, reciprocal, reciprocal_root, silu
from golden.arith.lines import evaluate
from golden.spec import functions
from golden.spec.formats import BF16, FP16

FORMATS = pytest.mark.parametrize("fmt", [FP16, BF16], ids=lambda fmt: fmt.name)
WORDS = np.arange(1 << 16)


def finite(fmt, bits):
    return np.isfinite(to_float64(fmt, bits))


def values(fmt, bits):
    """Values as float64, which holds them exactly; infinity counts as the first power of two that is too large."""
    value = to_float64(fmt, bits)
    return np.where(np.isinf(value), np.copysign(2.0 ** (fmt.bias + 1), value), value)


def last_place(fmt, exact):
    """The distance of neighbouring numbers of the format where `exact` is; its binade is all that matters."""
    exponent = np.maximum(np.frexp(np.abs(exact))[1] - 1, 1 - fmt.bias)
    return np.ldexp(1.0, np.minimum(exponent, fmt.bias) - fmt.fraction_width)


@FORMATS
def test_exponential_error(fmt):
    chosen = finite(fmt, WORDS)
    x = to_float64(fmt, WORDS[chosen])
    # NumPy's exp is good to a few units of 2**-52, far less than the slack of 2**-20 ulp that is left to it.
    exact = np.exp(np.clip(x, -700, 700))
    nearest_infinity = 2.0 ** (fmt.bias + 1)
    exact = np.minimum(exact, nearest_infinity)
    error = np.abs(values(fmt, exponential(WORDS[chosen], fmt)) - exact) / last_place(fmt, exact)
    print(f"{fmt.name}: {len(x)} arguments, largest error {error.max():.4f} ulp at {x[error.argmax()]}")
    assert len(x) > 60000 and error.max() <= 1 - 2**-20


@FORMATS
def test_exponential_is_monotone(fmt):
    falling = np.arange(fmt.infinity, -1, -1) | fmt.sign_bit
    ordered = exponential(np.concatenate([falling, np.arange(fmt.infinity + 1)]), fmt).astype(int)
    assert np.all(np.diff(ordered) >= 0)
    assert ordered[0] == 0 and ordered[-1] == fmt.infinity


@FORMATS
def test_exponential_specials(fmt):
    one = fmt.bias << fmt.fraction_width
    points = {
        0: one,
        fmt.sign_bit: one,
        fmt.infinity: fmt.infinity,
        fmt.infinity | fmt.sign_bit: 0,
        fmt.infinity - 1: fmt.infinity,
        (fmt.infinity - 1) | fmt.sign_bit: 0,
        1: one,
        1 | fmt.sign_bit: one,
    }
    assert exponential(np.array(list(points)), fmt).tolist() == list(points.values())


@FORMATS
def test_exponential_subnormal_results(fmt):
    """Rounded, not flushed: every subnormal result is there that some argument's exponential is nearest to."""
    x = to_float64(fmt, WORDS)
    with np.errstate(over="ignore"):
        exact = np.exp(np.where(np.isfinite(x), x, 0)) / np.ldexp(1.0, 1 - fmt.bias - fmt.fraction_width)
    chosen = np.isfinite(x) & (exact < 2**fmt.fraction_width) & (exact > 2.0**-10)
    difference = np.abs(exponential(WORDS[chosen], fmt) - exact[chosen])
    assert chosen.sum() > 20 and difference.max() < 1
    # The line is good to a part of a unit of a normal result; far below that subnormals are rounded to nearest.
    deep = exact[chosen] < 2 ** (fmt.fraction_width - 5)
    assert deep.sum() > 10 and difference[deep].max() < 0.53


@FORMATS
def test_reciprocal_error(fmt):
    chosen = finite(fmt, WORDS) & (WORDS % fmt.sign_bit != 0)
    x, y = to_float64(fmt, WORDS[chosen]), values(fmt, reciprocal(WORDS[chosen], fmt))
    # All exact: x * y has at most 22 bits, and the binade of 1 / x is known from that of x.
    mantissa, exponent = np.frexp(np.abs(x))
    binade = np.ldexp(1.0, np.where(mantissa == 0.5, 1 - exponent, -exponent))
    too_large = np.abs(1 / x) > 2.0 ** (fmt.bias + 1)
    error = np.abs(x * y - 1) / (last_place(fmt, binade) * np.abs(x))
    error = np.where(too_large, np.abs(np.abs(y) - 2.0 ** (fmt.bias + 1)), error)
    print(f"{fmt.name}: {len(x)} arguments, largest error {error.max():.4f} ulp at {x[error.argmax()]}")
    assert len(x) > 60000 and too_large.sum() > 60 and error.max() <= 1
    assert np.all(np.signbit(x) == np.signbit(y))


@FORMATS
def test_reciprocal_exact_points(fmt):
    x = to_float64(fmt, WORDS)
    powers = np.isfinite(x) & (x != 0) & (np.frexp(np.where(np.isfinite(x), x, 0))[0] % 0.5 == 0)
    assert powers.sum() == 2 * (2 * fmt.bias + fmt.fraction_width)
    reached = np.abs(x[powers]) >= 2.0**-fmt.bias
    assert np.array_equal(to_float64(fmt, reciprocal(WORDS[powers][reached], fmt)), 1 / x[powers][reached])
    points = {0: fmt.infinity, fmt.infinity: 0}
    points |= {word | fmt.sign_bit: result | fmt.sign_bit for word, result in points.items()}
    assert reciprocal(np.array(list(points)), fmt).tolist() == list(points.values())


@FORMATS
def test_reciprocal_root_error(fmt):
    chosen = finite(fmt, WORDS) & (WORDS > 0) & (WORDS < fmt.sign_bit)
    x, y = to_float64(fmt, WORDS[chosen]), values(fmt, reciprocal_root(WORDS[chosen], fmt))
    # y is within one unit u of the root if (y - u)**2 x <= 1 <= (y + u)**2 x; all of it is exact in float64.
    exponent = np.frexp(x)[1] - 1
    power_of_four = (np.frexp(x)[0] == 0.5) & (exponent % 2 == 0)
    unit = last_place(fmt, np.ldexp(1.0, np.where(power_of_four, -exponent // 2, -(exponent // 2) - 1)))
    assert np.all((y - unit) ** 2 * x <= 1) and np.all((y + unit) ** 2 * x >= 1)
    assert np.array_equal(y[power_of_four] ** 2 * x[power_of_four], np.ones(power_of_four.sum()))
    print(f"{fmt.name}: {len(x)} arguments, largest error {np.max(np.abs(y - 1 / np.sqrt(x)) / unit):.4f} ulp")
    assert len(x) > 30000 and power_of_four.sum() > 10


@FORMATS
def test_reciprocal_root_specials(fmt):
    points = {
        0: fmt.infinity,
        fmt.sign_bit: fmt.infinity | fmt.sign_bit,
        fmt.infinity: 0,
        fmt.infinity | fmt.sign_bit: fmt.nan,
        fmt.sign_bit | 1: fmt.nan,
    }
    assert reciprocal_root(np.array(list(points)), fmt).tolist() == list(points.values())
    negative = np.arange(fmt.sign_bit + 1, 1 << fmt.width)
    assert np.all(reciprocal_root(negative, fmt) == fmt.nan)


def exact_gelu(x):
    """x * Phi(x); erfc keeps the relative precision of the tail, to a few units of 2**-52."""
    return np.array([value / 2 * math.erfc(-value / math.sqrt(2)) for value in x])


@FORMATS
def test_gelu_error(fmt):
    chosen = finite(fmt, WORDS)
    x = to_float64(fmt, WORDS[chosen])
    exact = exact_gelu(x)
    error = np.abs(values(fmt, gelu(WORDS[chosen], fmt)) - exact)
    ulps = error / last_place(fmt, exact)
    share = error / np.maximum(2 * last_place(fmt, exact), 2.0**-15)
    print(
        f"{fmt.name}: {len(x)} arguments, at most {share.max():.4f} of what is allowed, at {x[share.argmax()]}, "
        f"{ulps[x > 0].max():.4f} ulp above 0, {ulps[(x < 0) & (x > -2)].max():.4f} from -2 on"
    )
    assert len(x) > 60000 and share.max() <= 1
    # Better than asked for: relative precision for small numbers, although their errors would not count.
    assert ulps[x > -2].max() <= 2 and ulps[x > 0].max() <= 1.1


@FORMATS
def test_gelu_specials_and_signs(fmt):
    points = {
        0: 0,
        fmt.sign_bit: fmt.sign_bit,
        fmt.infinity: fmt.infinity,
        fmt.infinity | fmt.sign_bit: fmt.sign_bit,
        fmt.infinity - 1: fmt.infinity - 1,
        (fmt.infinity - 1) | fmt.sign_bit: fmt.sign_bit,
        2: 1,
        2 | fmt.sign_bit: 1 | fmt.sign_bit,
    }
    assert gelu(np.array(list(points)), fmt).tolist() == list(points.values())
    numbers = WORDS[~is_nan(fmt, WORDS)]
    assert np.array_equal(gelu(numbers, fmt) & fmt.sign_bit, numbers & fmt.sign_bit)
    # From 4.5 on there is nothing left to tell GELU from x or 0.
    large = numbers[np.abs(to_float64(fmt, numbers)) >= 5]
    assert np.array_equal(gelu(large, fmt), np.where(large & fmt.sign_bit, fmt.sign_bit, large))


@FORMATS
def test_gelu_fits_have_the_errors_that_they_state(fmt):
    tables = functions.gelu_tables(fmt)
    half = 2.0 ** -(functions.GELU_FRACTION + 1)
    for e, table in enumerate((*tables.even, tables.rest), start=1 - functions.GELU_OCTAVES):
        argument = np.arange(1 << table.argument_width)
        a = (1 + argument / (1 << table.argument_width)) * 2.0**e
        rest = np.array([value / 2 * math.erfc(value / math.sqrt(2)) for value in a]) / 2.0**e
        exact = rest if e == 1 else a / 2.0 ** (e + 1) - rest
        distance = np.abs(evaluate(table, argument) / 2.0**table.value_fraction - exact - half).max()
        assert distance == pytest.approx(float(table.error), rel=1e-6)
        assert table.falling == (e == 1) and table.fraction_width == functions.GELU_FRACTION
    assert tables.tail[-1] > 0 and list(tables.tail) == sorted(tables.tail, reverse=True)


def exact_silu(x):
    """x / (1 + exp(-x)), to a few units of 2**-52; below 0 as x * exp(x) / (1 + exp(x)), which does not overflow."""
    grown = np.exp(-np.abs(x))
    return x * np.where(x < 0, grown, 1) / (1 + grown)


@FORMATS
def test_silu_error(fmt):
    chosen = finite(fmt, WORDS)
    x = to_float64(fmt, WORDS[chosen])
    exact = exact_silu(x)
    error = np.abs(values(fmt, silu(WORDS[chosen], fmt)) - exact)
    ulps = error / last_place(fmt, exact)
    share = error / np.maximum(2 * last_place(fmt, exact), 2.0**-15)
    print(
        f"{fmt.name}: {len(x)} arguments, at most {share.max():.4f} of what is allowed, at {x[share.argmax()]}, "
        f"{ulps[x > 0].max():.4f} ulp above 0, {ulps[(x < 0) & (x > -4)].max():.4f} from -4 on"
    )
    assert len(x) > 60000 and share.max() <= 1
    # Better than asked for: relative precision for small numbers, although their errors would not count.
    assert ulps[x > -4].max() <= 2 and ulps[x > 0].max() <= 1


@FORMATS
def test_silu_specials_and_signs(fmt):
    points = {
        0: 0,
        fmt.sign_bit: fmt.sign_bit,
        fmt.infinity: fmt.infinity,
        fmt.infinity | fmt.sign_bit: fmt.sign_bit,
        fmt.infinity - 1: fmt.infinity - 1,
        (fmt.infinity - 1) | fmt.sign_bit: fmt.sign_bit,
        2: 1,
        2 | fmt.sign_bit: 1 | fmt.sign_bit,
    }
    assert silu(np.array(list(points)), fmt).tolist() == list(points.values())
    numbers = WORDS[~is_nan(fmt, WORDS)]
    assert np.array_equal(silu(numbers, fmt) & fmt.sign_bit, numbers & fmt.sign_bit)
    large = numbers[np.abs(to_float64(fmt, numbers)) >= 16]
    assert np.array_equal(silu(large, fmt), np.where(large & fmt.sign_bit, fmt.sign_bit, large))


@FORMATS
def test_silu_fits_have_the_errors_that_they_state(fmt):
    tables = functions.silu_tables(fmt)
    half = 2.0 ** -(functions.GELU_FRACTION + 1)
    for e, table in enumerate((*tables.even, *tables.rest), start=1 - functions.GELU_OCTAVES):
        argument = np.arange(1 << table.argument_width)
        a = (1 + argument / (1 << table.argument_width)) * 2.0**e
        rest = -exact_silu(-a) / 2.0 ** min(e, 1)
        exact = rest if e >= 1 else a / 2.0 ** (e + 1) - rest
        distance = np.abs(evaluate(table, argument) / 2.0**table.value_fraction - exact - half).max()
        assert distance == pytest.approx(float(table.error), rel=1e-6)
        assert table.falling == (e >= 1) and table.fraction_width == functions.GELU_FRACTION
    assert len(silu_tables.report().splitlines()) == 2 * (functions.GELU_OCTAVES + functions.SILU_OCTAVES + 1)
    assert float(silu_tables.sigmoid(Decimal("0.75"))) == pytest.approx(1 / (1 + math.exp(-0.75)), rel=1e-14)


def test_normal_distribution():
    for value in ("0", "0.001", "0.75", "1.5", "4.5"):
        expected = math.erf(float(value) / math.sqrt(2)) / 2
        assert float(gelu_tables.normal_distribution(Decimal(value))) == pytest.approx(expected, rel=1e-14)


@FORMATS
@pytest.mark.parametrize("function", [exponential, reciprocal, reciprocal_root, gelu, silu])
def test_nans_become_canonical_and_numbers_stay_numbers(function, fmt):
    result, nans = function(WORDS, fmt), is_nan(fmt, WORDS)
    assert nans.sum() > 100 and np.all(result[nans] == fmt.nan)
    numbers = WORDS[~nans & (WORDS <= fmt.sign_bit)]
    assert not is_nan(fmt, function(numbers, fmt)).any()
    assert result.dtype == word_type(fmt)
    assert np.array_equal(function(WORDS.reshape(2, -1, 16), fmt).ravel(), result)


TABLES = {
    "exponential": (lambda fmt: functions.exponential_tables(fmt).power, lambda a: 2**a, 0.5),
    "reciprocal": (functions.reciprocal_table, lambda a: 2 / (1 + a), 0),
    "reciprocal_root": (
        functions.reciprocal_root_table,
        lambda a: 2 / np.sqrt((1 + 2 * a % 1) * np.where(a < 0.5, 1, 2)),
        0,
    ),
}


@FORMATS
@pytest.mark.parametrize("name", TABLES)
def test_fit_has_the_error_that_it_states(name, fmt):
    make, function, centre = TABLES[name]
    table = make(fmt)
    argument = np.arange(1 << table.argument_width)
    exact = function((argument + centre) / (1 << table.argument_width))
    distance = np.abs(evaluate(table, argument) / 2.0**table.value_fraction - exact).max()
    assert distance == pytest.approx(float(table.error), rel=1e-9)
    assert len(table.intercepts) == len(table.slopes) == 1 << table.index_width
    # What the hardware relies on: a leading one, no sign, no carry beyond 2.
    assert all(1 << table.fraction_width <= value < 2 << table.fraction_width for value in table.intercepts)
    assert all(slope > 0 for slope in table.slopes) and table.slope_width == bit_length(max(table.slopes))
    assert evaluate(table, argument).max() < (2 << table.value_fraction) + (
        1 << table.value_fraction - fmt.fraction_width - 1
    )


def test_report_names_every_table():
    report = function_tables.report().splitlines()
    assert len(report) == 6 and all(line.endswith(" ulp") for line in report)
    assert len(gelu_tables.report().splitlines()) == 2 * (functions.GELU_OCTAVES + 2)


def test_signed_digits():
    for value in range(1, 2000):
        digits = function_tables.signed_digits(value)
        assert sum(sign << weight for sign, weight in digits) == value
        assert len(digits) <= value.bit_count()
