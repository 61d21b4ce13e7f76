"""A feed-forward layer of the small diffusion transformer and its inputs at successive steps."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from golden.differential.layer import DifferentialLayer, quantise_weights
from verif.units.mixed_precision_core.dit_model import DiffusionTransformer, gelu_tanh, read_safetensors

__all__ = ["PATH", "Layer", "finest_exponent", "from_model", "recorded"]

PATH = Path(__file__).parents[2] / "data" / "feed_forward_small.npz"
"""Block 2 of the model, 32 of the 256 tokens of one image, the first 10 of 50 steps; made by ``record`` below."""


class Layer(NamedTuple):
    """Weights as [channels, columns]."""

    inputs: np.ndarray  # float16 [steps, tokens, channels]
    weights: tuple  # of fc1 and fc2, float32
    biases: tuple

    def exact(self, step):
        """The output of the layer in float64, from these weights, tanh form of GELU, and unquantised inputs."""
        x = self.inputs[step].astype(np.float64)
        return gelu_tanh(x @ self.weights[0] + self.biases[0]) @ self.weights[1] + self.biases[1]

    def layers(self, unit, **options):
        """Both as :class:`golden.differential.layer.DifferentialLayer`, their finest scale at most ``unit`` RMS."""
        x = self.inputs.astype(np.float64)
        hidden = gelu_tanh(x @ self.weights[0] + self.biases[0])
        return tuple(
            DifferentialLayer(
                *quantise_weights(weights), bias, finest_exponent=finest_exponent(unit, values), **options
            )
            for values, weights, bias in zip((x, hidden), self.weights, self.biases, strict=True)
        )


def finest_exponent(unit, values):
    """The static base: a scale of at most ``unit`` times the RMS of the activations, a power of two."""
    return int(np.ceil(-np.log2(unit * np.sqrt((np.asarray(values, np.float64) ** 2).mean()))))


def recorded():
    """The layer that comes with the project."""
    with np.load(PATH) as data:
        return Layer(
            data["inputs"],
            (data["fc1"].astype(np.float32), data["fc2"].astype(np.float32)),
            (data["bias1"].astype(np.float32), data["bias2"].astype(np.float32)),
        )


def from_model(model, noise, label, timesteps, block):
    """A block's layer and its inputs while an image is made; ``model`` is a :class:`DiffusionTransformer`."""
    inputs = []

    def keep(step, index, x):
        if index == block:
            inputs.append(x.astype(np.float16))
        return model.feed_forward(index, x)

    model.sample(noise, label, timesteps, keep)
    tensors = model.tensors
    names = [f"blocks.{block}.{name}" for name in ("fc1", "fc2")]
    return Layer(
        np.stack(inputs),
        tuple(tensors[f"{name}.weight"].T for name in names),
        tuple(tensors[f"{name}.bias"] for name in names),
    )


def record(model_path, reference_path, block=2, tokens=slice(96, 128)):
    """Make the recorded layer from the model's file and that of its reference run."""
    model = DiffusionTransformer(read_safetensors(model_path))
    with np.load(reference_path) as reference:
        z, label, timesteps = reference["z0"][0], reference["classes"][0], reference["timesteps"][:10]
    layer = from_model(model, z, label, timesteps, block)
    half = [array.astype(np.float16) for array in (*layer.weights, *layer.biases)]
    arrays = dict(zip(("fc1", "fc2", "bias1", "bias2"), half, strict=True))
    np.savez_compressed(PATH, inputs=layer.inputs[:, tokens], **arrays)
