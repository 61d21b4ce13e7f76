"""The golden sorter against NumPy's sort, and its networks against the generator's lists of comparators."""

import numpy as np
import pytest

from golden.units.bitonic_sorter import sort, sort_order
from hw.arith.sorting_network import NETWORKS

SIZES = (2, 4, 8, 16, 64, 128)


def vectors(rng, n, dtype):
    """Random keys, ones with many ties, and the extremes of the type."""
    limits = np.iinfo(dtype)
    return np.concatenate(
        [
            rng.integers(limits.min, limits.max, (20, n), dtype, endpoint=True),
            rng.integers(0, 4, (20, n)).astype(dtype),
            rng.choice(np.array([limits.min, limits.max, 0], dtype), (20, n)),
        ]
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("network, stable", [("bitonic", False), ("odd_even", False), ("bitonic", True)])
def test_sorts_as_numpy_does(network, stable, descending, dtype):
    rng = np.random.default_rng(1)
    for n in SIZES:
        keys = vectors(rng, n, dtype)
        result, payloads = sort(keys, keys ^ 1, network=network, descending=descending, stable=stable)
        expected = np.sort(keys, axis=-1)
        assert (result == (expected[:, ::-1] if descending else expected)).all()
        assert (payloads == result ^ 1).all()
        order = sort_order(keys, network=network, descending=descending, stable=stable)
        assert (np.sort(order, axis=-1) == np.arange(n)).all()
        if stable:
            ties = result[:, 1:] == result[:, :-1]
            assert ties.any() and (np.diff(order, axis=-1)[ties] > 0).all()


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("n", SIZES)
def test_executes_the_comparators_of_the_hardware(network, n):
    rng = np.random.default_rng(2)
    keys = rng.integers(-3, 4, (50, n))
    state, order = keys.copy(), np.tile(np.arange(n), (50, 1))
    for layer in NETWORKS[network](n):
        first, second = np.array(layer).T
        assert (first < second).all() and len({*first, *second}) == 2 * len(layer)
        exchange = state[:, second] < state[:, first]
        for array in (state, order):
            array[:, first], array[:, second] = (
                np.where(exchange, array[:, second], array[:, first]),
                np.where(exchange, array[:, first], array[:, second]),
            )
    assert (order == sort_order(keys, network=network)).all()


@pytest.mark.parametrize("n, bitonic, odd_even", [(2, 1, 1), (4, 6, 5), (8, 24, 19), (16, 80, 63), (64, 672, 543)])
def test_number_of_comparators(n, bitonic, odd_even):
    layers = [NETWORKS[name](n) for name in ("bitonic", "odd_even")]
    assert [sum(map(len, network)) for network in layers] == [bitonic, odd_even]
    assert len(layers[0]) == len(layers[1])


def test_bad_input_is_refused():
    with pytest.raises(TypeError, match="keys must be integers, not float64"):
        sort(np.zeros((1, 4)))
    for n in (1, 3, 256):
        with pytest.raises(ValueError, match=f"n must be a power of two from 2 to 128, not {n}"):
            sort(np.zeros((1, n), int))
    with pytest.raises(ValueError, match="network must be one of bitonic, odd_even, not 'quick'"):
        sort(np.zeros((1, 4), int), network="quick")
