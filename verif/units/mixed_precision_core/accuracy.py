"""Command line: bits against error of differential layers, in a whole diffusion transformer or on recorded pairs."""

import argparse
import itertools
import sys

import numpy as np

from golden.arith.elementwise import from_fp32
from golden.arith.floats import from_float64, to_float64
from golden.arith.functions import gelu
from golden.differential.layer import DifferentialLayer, error_account, quantise_weights
from golden.differential.statistics import Statistics
from golden.spec.formats import FP16, FP32
from hw.cli.arguments import reporting_errors
from hw.lib.errors import UsageError
from verif.units.mixed_precision_core.dit_model import N_BLOCKS, DiffusionTransformer, gelu_tanh, psnr, read_safetensors
from verif.units.mixed_precision_core.recorded_layer import finest_exponent

__all__ = ["main", "pair_account", "sample_account"]

CALIBRATION_STEPS = 10


def calibrate(model, noise, label, timesteps):
    """RMS of the inputs of both layers of every block over some steps: {(block, layer): RMS}."""
    squares = {}

    def record(step, block, x):
        hidden = gelu_tanh(model.linear(x, f"blocks.{block}.fc1"))
        for layer, values in enumerate((x, hidden)):
            squares.setdefault((block, layer), []).append(float((values.astype(np.float64) ** 2).mean()))
        return model.linear(hidden, f"blocks.{block}.fc2")

    model.sample(noise, label, timesteps[:: max(1, len(timesteps) // CALIBRATION_STEPS)], record)
    return {key: float(np.sqrt(np.mean(values))) for key, values in squares.items()}


def make_layers(model, sizes, unit, options):
    """Both layers of every block: {(block, layer): DifferentialLayer}."""
    layers = {}
    for block, layer in itertools.product(range(N_BLOCKS), range(2)):
        name = f"blocks.{block}.fc{layer + 1}"
        finest = 24 if options.get("base") == "dynamic" else finest_exponent(unit, sizes[block, layer])
        weights = quantise_weights(model.tensors[f"{name}.weight"].T)
        bias = model.tensors[f"{name}.bias"]
        layers[block, layer] = DifferentialLayer(*weights, bias, finest_exponent=finest, **options)
    return layers


def sample_account(model, layers, noise, label, timesteps):
    """An image with these layers: errors [steps, blocks] of their outputs, statistics without the first step, PSNR."""
    errors, total = [], Statistics()

    def feed_forward(step, block, x):
        nonlocal total
        first, second = layers[block, 0], layers[block, 1]
        words = second.step(gelu(from_fp32(first.step(from_float64(FP16, x)), FP16)))
        errors.append(error_account(words, model.feed_forward(block, x.astype(np.float64)))[0])
        if step:
            total += first.last + second.last
        return to_float64(FP32, words).astype(np.float32)

    image = model.sample(noise, label, timesteps, feed_forward)
    expected = model.sample(noise, label, timesteps)
    return np.reshape(errors, (-1, N_BLOCKS)), total, psnr(image, expected)


def pair_account(before, after, weights, bias, unit, **options):
    """A step from one recorded input to the next: statistics and error of the second step's output."""
    integers, scales = quantise_weights(weights)
    finest = finest_exponent(unit, np.asarray(before, np.float64))
    layer = DifferentialLayer(integers, scales, bias, finest_exponent=finest, first_passes=4, **options)
    layer.step(before.view(np.uint16))
    words = layer.step(after.view(np.uint16))
    return layer.last, error_account(words, after.astype(np.float64) @ weights.astype(np.float64) + bias)[0]


def _line(name, found, error, largest=None, image=None):
    text = f"{name}: {found.bits:.2f} bits, error {100 * error:.2f} %"
    text += "" if largest is None else f" (at most {100 * largest:.2f} %)"
    text += (
        f", lanes used {100 * found.utilisation:.1f} %, {found.clocks / found.int8_clocks:.3f} of the clocks of 8 bits"
    )
    return text + ("" if image is None else f", image {image:.1f} dB")


def main(arguments=None):
    name = "python -m verif.units.mixed_precision_core.accuracy"
    parser = argparse.ArgumentParser(prog=name, description=__doc__)
    parser.add_argument("--model", metavar="FILE", help="dit_small.safetensors")
    parser.add_argument("--reference", metavar="FILE", help="dit_small_reference.npz: noise, class, steps")
    parser.add_argument("--pairs", metavar="FILE", help="workload_public.npz: inputs of fc1 at adjacent steps")
    parser.add_argument("--steps", type=int, default=10, help="first steps of the schedule (default 10)")
    parser.add_argument("--stride", type=int, default=1, help="take every n-th step of the schedule (default 1)")
    parser.add_argument("--sample", type=int, default=0, help="number of the image (default 0)")
    parser.add_argument("--tokens", type=int, default=16, help="tokens of a tile (default 16)")
    parser.add_argument("--levels", type=int, default=3, help="different exponents of a tile (default 3)")
    parser.add_argument("--threshold", type=float, default=1.5, help="2 bits up to so many units (default 1.5)")
    parser.add_argument("--loop", default="closed", choices=("closed", "open"), help="(default closed)")
    parser.add_argument("--base", default="static", choices=("static", "dynamic"), help="(default static)")
    parser.add_argument("--units", type=float, nargs="+", default=[1 / 16, 1 / 32], help="finest scales, in RMS")
    options = parser.parse_args(arguments)
    if (options.model is None) == (options.pairs is None) or (options.model is None) != (options.reference is None):
        raise UsageError("either --model and --reference, or --pairs must be given")
    if min(options.steps, options.stride) < 1 or not all(0 < unit < 1 for unit in options.units):
        raise UsageError("--steps and --stride must be at least 1, and --units more than 0 and less than 1")
    layer_options = {
        "n_rows": options.tokens,
        "n_levels": options.levels,
        "threshold": options.threshold,
        "loop": options.loop,
        "base": options.base,
    }
    try:
        if options.pairs is not None:
            _pairs(options, layer_options)
        else:
            _model(options, layer_options)
    except (OSError, KeyError, ValueError) as error:
        raise UsageError(str(error)) from None
    return 0


def _pairs(options, layer_options):
    with np.load(options.pairs) as data:
        inputs, weights, bias = data["A_fc1_in"], data["A_W1"].T, data["A_b1"].astype(np.float32)
    for unit in options.units:
        results = [pair_account(*pair, weights, bias, unit, **layer_options) for pair in inputs]
        total = sum((found for found, _ in results), Statistics())
        print(_line(f"unit {unit:.5f}", total, np.mean([error for _, error in results])), flush=True)


def _model(options, layer_options):
    model = DiffusionTransformer(read_safetensors(options.model))
    with np.load(options.reference) as reference:
        noise, labels, schedule = reference["z0"], reference["classes"], reference["timesteps"]
    if not 0 <= options.sample < len(noise):
        raise ValueError(f"--sample must be from 0 to {len(noise) - 1}, not {options.sample}")
    sizes = calibrate(model, noise[-1], labels[-1], schedule)
    timesteps = schedule[:: options.stride][: options.steps]
    for unit in options.units:
        layers = make_layers(model, sizes, unit, layer_options)
        sample = noise[options.sample], labels[options.sample]
        errors, total, image = sample_account(model, layers, *sample, timesteps)
        later = errors[1:] if len(errors) > 1 else errors
        print(_line(f"unit {unit:.5f}", total, later.mean(), later.max(), image), flush=True)


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
