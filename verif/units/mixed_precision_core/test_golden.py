"""Layers of differences, their statistics and programs: against float64, plain INT8 products, and each other."""

import numpy as np
import pytest

from golden.arith.elementwise import from_fp32
from golden.arith.floats import from_float64, to_float64
from golden.arith.functions import gelu
from golden.differential.layer import DifferentialLayer, error_account, quantise_weights
from golden.differential.program import FeedForward
from golden.differential.statistics import Statistics, activation_statistics
from golden.spec.formats import FP16, FP32
from golden.spec.mixed_precision_core import Code, Command, Error, MixedPrecisionCoreParameters
from golden.units.mixed_precision_core import MixedPrecisionCore

SMALL = {"n_rows": 8, "n_channels": 16}


def walk(seed, steps=12, tokens=8, channels=24):
    """Activations that change a little from step to step, FP16 words [steps, tokens, channels]."""
    rng = np.random.default_rng(seed)
    spread = np.exp(rng.standard_normal(channels) / 2)
    x = rng.standard_normal((tokens, channels)) * spread
    changes = rng.standard_normal((steps, tokens, channels)) * spread / 20
    return from_float64(FP16, x + np.cumsum(changes, axis=0))


def layer_of(seed, channels=24, columns=10, **options):
    rng = np.random.default_rng(seed)
    weights, scales = quantise_weights(rng.standard_normal((channels, columns)) / np.sqrt(channels))
    bias = rng.standard_normal(columns).astype(np.float32)
    return DifferentialLayer(weights, scales, bias, **SMALL | options)


def exact(layer, words):
    return to_float64(FP16, words) @ (layer.weights * to_float64(FP16, layer.scales)) + layer.bias


def errors(layer, steps):
    return [error_account(layer.step(words), exact(layer, words))[0] for words in steps]


def test_a_closed_loop_does_not_drift():
    steps = walk(1, steps=40)
    found = errors(layer_of(2, finest_exponent=5), steps)
    assert max(found) < 0.02 and np.mean(found[-10:]) < 1.3 * np.mean(found[:10])


def test_an_open_loop_drifts():
    steps = walk(1, steps=40)
    closed, opened = (errors(layer_of(2, finest_exponent=5, loop=loop), steps) for loop in ("closed", "open"))
    assert opened[-1] > 3 * closed[-1]


def test_a_finer_scale_costs_bits_and_saves_error():
    results = []
    for finest in (3, 5, 7):
        layer, total = layer_of(3, finest_exponent=finest), Statistics()
        found = []
        for words in walk(4):
            found.append(error_account(layer.step(words), exact(layer, words))[0])
            total += layer.last
        results.append((total.bits, np.mean(found)))
    bits, error = zip(*results, strict=True)
    assert bits[0] < bits[1] < bits[2] and error[0] > 2 * error[1] > 4 * error[2]


@pytest.mark.parametrize("loop", ["closed", "open"])
def test_a_dynamic_base_follows_the_differences(loop):
    steps = walk(5, steps=6)
    layer = layer_of(6, base="dynamic", loop=loop, finest_exponent=11, n_levels=6)
    assert max(errors(layer, steps)) < 0.2
    small = layer_of(6, base="dynamic", loop=loop, finest_exponent=11, n_levels=6)
    small.step(from_float64(FP16, to_float64(FP16, steps[0]) / 64))
    assert small.last.bits == pytest.approx(_first_bits(steps[0], loop), abs=0.5)


def _first_bits(words, loop):
    layer = layer_of(6, base="dynamic", loop=loop, finest_exponent=11, n_levels=6)
    layer.step(words)
    return layer.last.bits


def test_statistics_add_up():
    words = walk(7, steps=1, tokens=20, channels=50)[0]
    found = activation_statistics(words, n_rows=8, n_channels=16, threshold=0x2E00, finest_exponent=4)
    assert found.vectors == 3 * 50 == found.by_slices.sum()
    assert found.bits == 2 * found.slices / 150
    assert found.blanks == 4 * found.groups - found.slices and 0 < found.utilisation <= 1
    assert found.int8_clocks == 150 and found.clocks == found.groups + found.shifts
    assert found.to_dict()["bits"] == found.bits and found.errors == 0
    full = activation_statistics(np.full((8, 16), 0x3C00), threshold=0x0400, finest_exponent=6, n_levels=1)
    assert full.bits == 8 and full.groups == 16 and full.shifts == 6
    none = activation_statistics(np.zeros((8, 16), int), threshold=0x0400, finest_exponent=6)
    assert none.bits == none.clocks == none.utilisation == 0


def test_a_step_without_change_costs_nothing():
    words, layer = walk(8, steps=1)[0], layer_of(9, first_passes=4, n_levels=8, finest_exponent=4)
    first = layer.step(words)
    assert (layer.step(words) == first).all() and layer.last.slices == 0


@pytest.mark.parametrize(
    "change, message",
    [
        ({"loop": "half"}, "loop must be one of closed, open, not 'half'"),
        ({"base": "none"}, "base must be one of static, dynamic, not 'none'"),
        ({"threshold": 0}, "threshold must be a number above 0 and below 1024, not 0"),
        ({"threshold": "1"}, "threshold must be a number above 0 and below 1024, not '1'"),
        ({"finest_exponent": 25}, "finest_exponent must be an integer from -15 to 24, not 25"),
        ({"first_passes": 0}, "first_passes must be an integer from 1 to 4, not 0"),
    ],
)
def test_options_are_refused(change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        layer_of(1, **change)


def test_data_are_refused():
    layer = layer_of(1)
    with pytest.raises(ValueError, match="words must have 24 channels, not shape"):
        layer.step(np.zeros((8, 23), int))
    layer.step(np.zeros((8, 24), int))
    with pytest.raises(ValueError, match="words must have 8 tokens in every step, not 9"):
        layer.step(np.zeros((9, 24), int))
    with pytest.raises(ValueError, match="scales and bias must have 10 elements"):
        DifferentialLayer(layer.weights, layer.scales[:9])
    with pytest.raises(ValueError, match="weights must be a matrix of finite numbers"):
        quantise_weights([[np.nan]])
    with pytest.raises(ValueError, match=r"words must have the shape \[tokens, channels\]"):
        activation_statistics(np.zeros(3, int), threshold=0x400, finest_exponent=1)


def feed_forward(n_tiles=1, n_regions=3):
    first = layer_of(11, channels=24, columns=20, first_passes=1, finest_exponent=6)
    second = layer_of(12, channels=20, columns=10, first_passes=1, finest_exponent=7)
    sizes = MixedPrecisionCoreParameters(
        **SMALL,
        n_columns=4,
        n_output_lanes=2,
        n_regions=n_regions,
        n_buffers=4 * n_tiles,
        n_tiles=8 * n_tiles,
        activation_depth=44 * n_tiles,
        reference_depth=44 * n_tiles,
    )
    return sizes, first, second


@pytest.mark.parametrize("n_tiles, n_regions", [(1, 1), (1, 2), (2, 3)])
def test_a_program_computes_what_the_layers_do(n_tiles, n_regions):
    sizes, first, second = feed_forward(n_tiles, n_regions)
    host, core = FeedForward(sizes, first, second, n_tiles), MixedPrecisionCore(**sizes.to_dict())
    begin = host.begin()
    assert all(core.execute(begin.commands, begin.beats).executed)
    for words in walk(13, steps=4, tokens=8 * n_tiles):
        program = host.step(words)
        run = core.execute(program.commands, program.beats)
        assert all(run.executed) and run.loaded == len(program.beats) and len(run.stored) == program.n_stored
        hidden = gelu(from_fp32(first.step(words), FP16))
        assert (host.outputs([beat for beat, _ in run.stored]) == second.step(hidden)).all()


def test_int8_mode_is_the_product_of_8_bit_values():
    sizes, first, _ = feed_forward()
    core, words = MixedPrecisionCore(**sizes.to_dict()), walk(14, steps=1, channels=16)[0]
    core.activations[:16], core.weights[0, :, :] = words.T, first.weights[:16, :4]
    core.scales[0] = first.scales[:4]
    quantise = Command(
        opcode=Code.QUANTISE, flags=3, count=16, threshold=0x3C00, finest_exponent=8, source=0, reference=0
    )
    core.execute([quantise, Command(opcode=Code.MULTIPLY)])
    assert (core.buffers[0].quantised.n_slices == 4).all()
    product = core.references[:16].T / 2.0**8 @ core.weights[0] * to_float64(FP16, core.scales[0])
    assert np.abs(to_float64(FP32, core.outputs[0]) - product).max() < 1e-5 * np.abs(product).max()


def test_what_the_core_cannot_hold_is_refused():
    sizes, first, second = feed_forward()
    small = MixedPrecisionCoreParameters(**{**sizes.to_dict(), "n_tiles": 7})
    with pytest.raises(ValueError, match="n_tiles must be at least 8 for these layers, not 7"):
        FeedForward(small, first, second)
    with pytest.raises(ValueError, match="n_output_lanes must be a divisor of n_columns=4, not 8"):
        MixedPrecisionCoreParameters(**{**sizes.to_dict(), "n_output_lanes": 8})
    core = MixedPrecisionCore(**sizes.to_dict())
    assert core.execute([Command(opcode=Code.MULTIPLY)]).refusals == [(Error.BUFFER_MISSING, 0)]
    with pytest.raises(ValueError, match="beats must hold 3 beats for a LOAD, only 0 are left"):
        MixedPrecisionCore(**sizes.to_dict()).execute([Command(opcode=Code.LOAD, function=2, count=3)])
