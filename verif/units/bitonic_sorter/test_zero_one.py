"""The sorter's complete tests: all zero-one inputs by the 0-1 principle, all pairs of keys through the comparator."""

import numpy as np
import pytest

from golden.units.bitonic_sorter import sort_order
from hw.units.bitonic_sorter.unit import BitonicSorter
from verif.bench.packing import pack
from verif.bench.recorded import stream_through

pytestmark = pytest.mark.slow

# Every network of 2, 4, 8 and 16 keys; the modes and pipelines take turns.
NETWORKS = [
    {"n": 2, "network": "bitonic", "layers_per_stage": 0},
    {"n": 2, "network": "odd_even", "stable": True},
    {"n": 4, "network": "bitonic", "descending": True},
    {"n": 4, "network": "odd_even", "layers_per_stage": 0},
    {"n": 8, "network": "bitonic", "stable": True, "descending": True},
    {"n": 8, "network": "odd_even", "layers_per_stage": 3},
    {"n": 16, "network": "bitonic", "layers_per_stage": 4},
    {"n": 16, "network": "odd_even", "layers_per_stage": 10},
]


def _name(parameters):
    return "-".join(f"{key}={value}" for key, value in parameters.items())


def run_sorter(keys, payload_width, **parameters):
    """The keys, in two's complement, and payloads ``[..., n]`` that come out when payload i is i."""
    block = BitonicSorter(payload_width=payload_width, **parameters)
    n, key_width = block.n, block.key_width
    key_bits = n * key_width
    payloads = pack(np.arange(n), payload_width) << key_bits
    beats = [word | payloads for word in pack(keys, key_width)]
    received = stream_through(block, beats, "unsorted", "sorted")
    assert len(received) == len(beats)
    low = [beat & ((1 << key_bits) - 1) for beat in received]
    high = [beat >> key_bits for beat in received]
    return _elements(low, key_width, n), _elements(high, payload_width, n)


def _elements(words, width, n):
    """``[len(words), n]`` fields of packed integers."""
    n_bytes = -(-n * width // 8)
    raw = np.frombuffer(b"".join(word.to_bytes(n_bytes, "little") for word in words), np.uint8)
    bits = np.unpackbits(raw.reshape(len(words), n_bytes), axis=1, bitorder="little")[:, : n * width]
    return bits.reshape(len(words), n, width) @ (1 << np.arange(width))


def check(keys, result_keys, order, parameters):
    """Sorted, a permutation, each payload with its key, stable where promised, and the golden model's bits."""
    down = parameters.get("descending", False)
    steps = np.diff(result_keys, axis=-1)
    assert (steps <= 0).all() if down else (steps >= 0).all()
    assert (np.sort(order, axis=-1) == np.arange(keys.shape[-1])).all()
    assert (np.take_along_axis(keys, order, -1) == result_keys).all()
    if parameters.get("stable"):
        assert (np.diff(order, axis=-1)[steps == 0] > 0).all()
    modes = {name: parameters[name] for name in ("network", "descending", "stable") if name in parameters}
    assert (sort_order(keys, **modes) == order).all()


@pytest.mark.parametrize("parameters", NETWORKS, ids=_name)
def test_all_zero_one_inputs(parameters):
    n = parameters["n"]
    keys = np.arange(1 << n)[:, None] >> np.arange(n) & 1
    result_keys, order = run_sorter(keys, n.bit_length() - 1, key_width=1, **parameters)
    assert len(keys) == 2**n
    check(keys, result_keys, order, parameters)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("stable", [False, True])
def test_all_pairs_of_keys(signed, descending, stable):
    parameters = {"descending": descending, "stable": stable}
    width = 4
    numbers = np.arange(-(1 << width - 1), 1 << width - 1) if signed else np.arange(1 << width)
    keys = np.stack(np.meshgrid(numbers, numbers), -1).reshape(-1, 2)
    result_keys, order = run_sorter(keys, 1, n=2, key_width=width, signed=signed, **parameters)
    if signed:
        result_keys = (result_keys ^ 1 << width - 1) - (1 << width - 1)
    check(keys, result_keys, order, parameters)


def test_latency_and_registers_follow_layers_per_stage():
    latencies = [BitonicSorter(n=16, layers_per_stage=layers).latency for layers in (0, 1, 2, 3, 10, 28)]
    assert latencies == [0, 11, 6, 5, 2, 2]


@pytest.mark.parametrize("name, value", [("n", 3), ("n", 1), ("key_width", 0), ("network", "quick")])
def test_bad_parameters_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be .* not {value!r}"):
        BitonicSorter(**{name: value})
