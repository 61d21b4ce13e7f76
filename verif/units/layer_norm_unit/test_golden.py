"""The layer-norm unit's golden model against the definition: errors, rows of all kinds, epsilon, special values."""

import numpy as np
import pytest

from golden.arith import layer_norm_tables as tables
from golden.arith.floats import decode, from_float64, is_nan, to_float64
from golden.arith.lines import evaluate
from golden.spec import layer_norm_unit as spec
from golden.spec.formats import FP16
from golden.units.layer_norm_unit import decode_epsilon, encode_epsilon, layer_norm, normalise
from verif.bench.datasets import workload
from verif.units.layer_norm_unit.rows import SHOWN, load_rows, shows

ONE, LARGEST = 0x3C00, 0x7BFF
COUNTS = (1, 2, 3, 16, 100, 1000, 1152, 2048, 4096)


def exact(words, enable, epsilon):
    """The definition: deviations times n as integers, exactly; from there on float64, good to some 2**-50."""
    number = decode(FP16, words)
    units = np.where(enable, np.where(number.sign == 1, -number.significand, number.significand) << number.field - 1, 0)
    n = np.maximum(enable.sum(axis=-1, keepdims=True), 1)
    deviation = np.where(enable, n * units - units.sum(axis=-1, keepdims=True), 0) / (n * 2.0**24)
    variance = (deviation**2).sum(axis=-1, keepdims=True) / n
    return deviation / np.sqrt(variance + decode_epsilon(epsilon))


def last_place(value):
    exponent = np.maximum(np.frexp(np.abs(value))[1] - 1, 1 - FP16.bias)
    return np.exp2(exponent - FP16.fraction_width)


def rows_of(kind, rng, shape):
    single = np.arange(shape[1]) == rng.integers(0, shape[1], (shape[0], 1))
    size = np.exp2(rng.uniform(-14, 10, (shape[0], 1)))
    values = {
        "gauss": lambda: rng.normal(0, 1, shape) * size,
        "offset": lambda: (rng.normal(0, 1, shape) + 100) * size / 8,
        "neighbours": lambda: rng.integers(0, 2, shape) + 1024.0 + rng.integers(0, 1000, (shape[0], 1)),
        "all but one alike": lambda: np.where(single, 1.001, 1) * size * 32,
        "outlier": lambda: np.where(single, 60000, rng.normal(0, 0.01, shape)),
        "crowd": lambda: np.where(rng.random(shape) < 2 / shape[1], 1000, 1000 / 90) * rng.choice([-1, 1], shape),
        "subnormal": lambda: rng.integers(-20, 20, shape) * 2.0**-24,
        "huge": lambda: rng.choice([-65504.0, 65504, 65472, 3], shape),
        "any": lambda: to_float64(FP16, rng.integers(0, FP16.infinity, shape)) * rng.choice([-1, 1], shape),
    }[kind]()
    return from_float64(FP16, np.clip(values, -65504, 65504))


KINDS = ("gauss", "offset", "neighbours", "all but one alike", "outlier", "crowd", "subnormal", "huge", "any")


@pytest.mark.parametrize("epsilon", [1e-5, 1e-12, 4e-15, 0.7, 3000])
@pytest.mark.parametrize("kind", KINDS)
def test_error(kind, epsilon):
    """Each normalised element within its bound, and with beta 0 each result within 4 ulp, or 2**-21 of gamma."""
    rng = np.random.default_rng(1)
    epsilon = encode_epsilon(epsilon)
    worst = 0
    for n in COUNTS:
        words = rows_of(kind, rng, (max(4, 4096 // n), n))
        enable = rng.random(words.shape) < rng.choice([0.3, 1, 1], (len(words), 1))
        wanted = exact(words, enable, epsilon)
        error = np.where(enable, np.abs(to_float64(FP16, normalise(words, enable, epsilon)) - wanted), 0)
        allowed = tables.error_bound(n) * last_place(wanted) + tables.absolute_error(n)
        assert (error <= allowed).all()
        worst = max(worst, ((error - tables.absolute_error(n)) / last_place(wanted)).max())

        gamma = from_float64(FP16, rng.normal(1, 0.4, n))
        factor = to_float64(FP16, gamma)
        wanted *= factor
        error = np.abs(to_float64(FP16, layer_norm(words, enable, gamma, np.zeros(n, int), epsilon)) - wanted)
        assert (np.where(enable, error, 0) <= np.maximum(4 * last_place(wanted), 2.0**-21 * np.abs(factor))).all()
    print(f"{kind}: {worst:.3f} ulp")
    assert tables.error_bound() < 1.5 and tables.absolute_error() < 2.0**-21


def test_real_rows():
    """Rows of a diffusion transformer: its queries, keys and values, and tokens, where the workload has them."""
    data = workload()
    epsilon, n_rows = encode_epsilon(1e-5), 0
    for name in {"A_fc1_in", "A_qkv"} & set(data):
        words = data[name].view(np.uint16)
        words = words.reshape(-1, words.shape[-1])
        enable = np.ones(words.shape, bool)
        wanted = exact(words, enable, epsilon)
        error = np.abs(to_float64(FP16, normalise(words, enable, epsilon)) - wanted) / last_place(wanted)
        print(f"{name}: {len(words)} rows of {words.shape[1]}, {error.max():.3f} ulp, {error.mean():.3f} on average")
        assert error.max() < 1
        n_rows += len(words)
    assert n_rows > 1000


def test_gamma_and_beta():
    """Of the sum with beta the error is that of the normalised element, times gamma, and half an ulp."""
    rng = np.random.default_rng(2)
    words, n = rows_of("gauss", rng, (50, 300)), 300
    enable, epsilon = np.ones(words.shape, bool), encode_epsilon(1e-5)
    gamma, beta = from_float64(FP16, rng.normal(1, 0.4, n)), from_float64(FP16, rng.normal(0, 1, n))
    factor = to_float64(FP16, gamma)
    normal = exact(words, enable, epsilon)
    wanted = factor * normal + to_float64(FP16, beta)
    error = np.abs(to_float64(FP16, layer_norm(words, enable, gamma, beta, epsilon)) - wanted)
    inner = tables.error_bound(n) * last_place(normal) + tables.absolute_error(n)
    assert (error <= np.abs(factor) * inner + 0.5 * last_place(np.abs(wanted) + np.abs(factor) * inner)).all()


@pytest.mark.parametrize("n", COUNTS)
def test_constant_rows_give_beta(n):
    """The mean of equal elements is exact, for all of them and however small epsilon is."""
    rng = np.random.default_rng(3)
    words = np.concatenate([[0, 1, 0x3FF, 0x400, LARGEST], rng.integers(0, FP16.infinity, 20)])
    words = np.repeat(np.concatenate([words, words | FP16.sign_bit])[:, None], n, axis=1)
    gamma, beta = from_float64(FP16, rng.normal(1, 0.4, n)), from_float64(FP16, rng.normal(0, 1, n))
    found = layer_norm(words, np.ones(words.shape, bool), gamma, beta, encode_epsilon(4e-15))
    assert np.array_equal(found, np.broadcast_to(beta, words.shape))


@pytest.mark.parametrize("word", [FP16.nan, FP16.infinity, FP16.infinity | FP16.sign_bit, 0xFC01])
def test_specials_make_their_row_nan(word):
    rng = np.random.default_rng(4)
    words = rows_of("gauss", rng, (3, 40))
    enable = rng.random(words.shape) < 0.8
    clean = layer_norm(words, enable, np.full(40, ONE), np.zeros(40, int), encode_epsilon(1e-5))
    words[1, 7], words[2, 9] = word, word
    enable[1, 7], enable[2, 9] = True, False
    found = layer_norm(words, enable, np.full(40, ONE), np.zeros(40, int), encode_epsilon(1e-5))
    assert is_nan(FP16, found[1][enable[1]]).all() and not found[1][~enable[1]].any()
    # Where it is not enabled it does not count.
    assert np.array_equal(found[[0]], clean[[0]]) and not is_nan(FP16, found[2]).any()


def test_rows_without_elements_are_zeros():
    words = np.random.default_rng(5).integers(0, 1 << 16, (20, 8))
    found = layer_norm(words, np.zeros(words.shape, bool), np.full(8, ONE), np.full(8, ONE), encode_epsilon(1))
    assert not found.any()


def test_order_does_not_count():
    rng = np.random.default_rng(6)
    words = rows_of("any", rng, (30, 200))
    enable, epsilon, order = rng.random(words.shape) < 0.7, encode_epsilon(1e-5), rng.permutation(200)
    found = np.where(enable, normalise(words, enable, epsilon), 0)
    shuffled = np.where(enable[:, order], normalise(words[:, order], enable[:, order], epsilon), 0)
    assert np.array_equal(found[:, order], shuffled)


def test_negated_rows_are_nearly_the_negated_results():
    rng = np.random.default_rng(7)
    words = rows_of("gauss", rng, (50, 100))
    enable, epsilon = np.ones(words.shape, bool), encode_epsilon(1e-5)
    values = to_float64(FP16, normalise(words, enable, epsilon))
    negated = to_float64(FP16, normalise(words ^ FP16.sign_bit, enable, epsilon))
    assert (np.abs(values + negated) <= last_place(values)).all()


@pytest.mark.parametrize("epsilon", [1e-5, 1e-6, 4e-15, 1, 0.99999, 65528, 2.0**-40])
def test_epsilon_words(epsilon):
    word = encode_epsilon(epsilon)
    assert 0 <= word < 1 << 18 and decode_epsilon(word) == pytest.approx(epsilon, rel=2.0**-13)


@pytest.mark.parametrize("epsilon", [0, -1e-5, 1e-15, 65536, float("inf"), float("nan")])
def test_bad_epsilons_are_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be from 4e-15 to 65528, not"):
        encode_epsilon(epsilon)


def test_tables_stay_below_two():
    """What the hardware relies on: a leading one and no carry beyond it."""
    for table, fraction in (
        (spec.reciprocal_table(), spec.RECIPROCAL_FRACTION),
        (spec.root_table(), spec.ROOT_FRACTION),
    ):
        values = evaluate(table, np.arange(1 << table.argument_width)) >> table.value_fraction - fraction
        assert values.min() >= 1 << fraction and values.max() < 2 << fraction


def test_report_adds_up():
    lines = tables.report().splitlines()
    assert len(lines) == len(tables.error_budget()) + 2 and lines[-1].startswith(f"{tables.error_bound():.3f} ulp")


def test_kept_rows_show_errors_of_one_unit():
    rows = load_rows()
    assert set(rows["shown"]) == set(range(len(SHOWN)))
    for index, shown in enumerate(SHOWN):
        for epsilon in set(rows["epsilon"]):
            chosen = (rows["shown"] == index) & (rows["epsilon"] == epsilon)
            assert shows(rows["values"][chosen], rows["enable"][chosen], int(epsilon), *shown).all(), shown
