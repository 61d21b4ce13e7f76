"""A DiT block in float64, from the same FP16 weights, to tell the error of a core's results."""

import math

import numpy as np

from golden.core.attention import softmax_reference

__all__ = ["block_reference", "gelu_erf", "gelu_tanh", "layer_norm", "silu"]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu_erf(x):
    """``x * Phi(x)``, the form that the core computes."""
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def gelu_tanh(x):
    """The approximation that DiT is trained with; it differs by at most 5e-4."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + np.exp(-x))


def layer_norm(x, epsilon=1e-6):
    """Rows with mean 0 and variance 1, without gain and bias."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon)


def block_reference(x, condition, weights, n_heads, gelu=gelu_tanh, *, masks=None, tokens=None, cached=None):
    """Tokens [n, dim] after the block; ``condition`` [dim] is the sum of time and class embedding.

    ``masks``, ``tokens`` and ``cached`` are those of :class:`golden.program.dit.places.Sparsity`, of this block. The
    retained mass of a row multiplies what its values add to their bias.
    """
    x = np.asarray(x, np.float64)
    w = {name: np.asarray(array, np.float64) for name, array in vars(weights).items()}
    vectors = silu(np.asarray(condition, np.float64)) @ w["ada"] + w["ada_bias"]
    b1, s1, g1, b2, s2, g2 = np.split(vectors, 6)
    h = layer_norm(x) * (1 + s1) + b1
    if tokens is not None:
        kept = np.asarray(cached).view(np.float16).astype(np.float64)
        kept[tokens] = h[tokens]
        h = kept
    q, k, v = (
        part.reshape(len(x), n_heads, -1).swapaxes(0, 1) for part in np.split(h @ w["qkv"] + w["qkv_bias"], 3, axis=1)
    )
    scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[2])
    if masks is None:
        weighed = softmax_reference(scores) @ v
    else:
        selected, masses = zip(*masks, strict=True)
        bias = w["qkv_bias"][2 * x.shape[1] :].reshape(n_heads, 1, -1)
        factor = [np.ones(len(x)) if mass is None else mass.view(np.float16).astype(np.float64) for mass in masses]
        probabilities = softmax_reference(scores, np.array(selected, bool))
        weighed = probabilities @ (v - bias) * np.array(factor)[..., None] + bias
    attention = weighed.swapaxes(0, 1).reshape(len(x), -1)
    y = x + g1 * (attention @ w["proj"] + w["proj_bias"])
    h = layer_norm(y) * (1 + s2) + b2
    y = y + g2 * (gelu(h @ w["fc1"] + w["fc1_bias"]) @ w["fc2"] + w["fc2_bias"])
    if tokens is not None:
        others = np.setdiff1d(np.arange(len(x)), tokens)
        y[others] = x[others]
    return y
