"""The small trained diffusion transformer in float32, with its feed-forward layers open to other arithmetic."""

import json

import numpy as np

__all__ = ["DiffusionTransformer", "gelu_tanh", "psnr", "read_safetensors"]

N_BLOCKS, N_HEADS, DIM, SIDE, PATCH, CHANNELS = 5, 4, 128, 16, 2, 3
_TYPES = {"F16": np.float16, "F32": np.float32}


def read_safetensors(path):
    """``{name: float32 array}`` of a safetensors file with FP16 or FP32 tensors."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 8 or not 0 < (length := int.from_bytes(data[:8], "little")) <= len(data) - 8:
        raise ValueError(f"{path} is not a safetensors file")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in _TYPES:
            raise ValueError(f"{path}: {name} must be of type F16 or F32, not {entry['dtype']}")
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], _TYPES[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = values.astype(np.float32)
    return tensors


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def psnr(image, reference):
    """Of images in [-1, 1], in dB."""
    return float(10 * np.log10(4 / np.mean((np.asarray(image, np.float64) - reference) ** 2)))


def _silu(x):
    return x / (1 + np.exp(-x))


def _normalise(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)


def _positions():
    """Sines and cosines of the row and the column of each token."""
    rates = 10000.0 ** (-np.arange(DIM // 4) / (DIM // 4))
    angles = (np.arange(SIDE)[:, None] + 0.5) * rates
    one = np.concatenate([np.sin(angles), np.cos(angles)], -1)
    rows, columns = np.divmod(np.arange(SIDE * SIDE), SIDE)
    return np.concatenate([one[rows], one[columns]], -1).astype(np.float32)


class DiffusionTransformer:
    """``sample`` makes an image. ``tensors`` are those of ``dit_small.safetensors``."""

    def __init__(self, tensors):
        self.tensors = tensors
        self._positions = _positions()
        alphas = np.cumprod(1 - np.linspace(1e-4, 0.02, 1000))
        self._signal, self._noise = np.sqrt(alphas), np.sqrt(1 - alphas)

    def linear(self, x, name):
        return x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def feed_forward(self, block, x):
        """The feed-forward layers of a block in float32."""
        return self.linear(gelu_tanh(self.linear(x, f"blocks.{block}.fc1")), f"blocks.{block}.fc2")

    def velocity(self, z, t, label, feed_forward=None):
        """The network's output for a latent [3, 32, 32]; ``feed_forward(block, x)`` replaces those layers."""
        feed_forward = feed_forward or self.feed_forward
        patches = z.reshape(CHANNELS, SIDE, PATCH, SIDE, PATCH).transpose(1, 3, 0, 2, 4).reshape(SIDE * SIDE, -1)
        x = self.linear(patches, "emb") + self._positions
        angles = t * np.exp(-np.log(10000) * np.arange(DIM) / DIM)
        rates = np.concatenate([np.cos(angles), np.sin(angles)])[None].astype(np.float32)
        condition = self.linear(_silu(self.linear(rates, "temb.0")), "temb.2") + self.tensors["yemb.weight"][label]
        condition = _silu(condition)
        for block in range(N_BLOCKS):
            name = f"blocks.{block}"
            shift, scale, gate, shift_2, scale_2, gate_2 = np.split(self.linear(condition, f"{name}.ada"), 6, -1)
            x = x + gate * self._attention(_normalise(x) * (1 + scale) + shift, name)
            x = x + gate_2 * feed_forward(block, _normalise(x) * (1 + scale_2) + shift_2)
        shift, scale = np.split(self.linear(condition, "adaf"), 2, -1)
        x = self.linear(_normalise(x) * (1 + scale) + shift, "out")
        return x.reshape(SIDE, SIDE, CHANNELS, PATCH, PATCH).transpose(2, 0, 3, 1, 4).reshape(z.shape)

    def _attention(self, x, name):
        parts = [np.split(part, N_HEADS, -1) for part in np.split(self.linear(x, f"{name}.qkv"), 3, -1)]
        heads = []
        for query, key, value in zip(*parts, strict=True):
            scores = query @ key.T / np.sqrt(DIM / N_HEADS)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(weights / weights.sum(-1, keepdims=True) @ value)
        return self.linear(np.concatenate(heads, -1), f"{name}.proj")

    def sample(self, z, label, timesteps, feed_forward=None):
        """DDIM over ``timesteps`` from noise z: the image. ``feed_forward(step, block, x)`` replaces those layers."""
        for step, t in enumerate(timesteps):
            layers = None if feed_forward is None else (lambda *args, step=step: feed_forward(step, *args))
            v = self.velocity(z, t, label, layers)
            image = self._signal[t] * z - self._noise[t] * v
            noise = self._noise[t] * z + self._signal[t] * v
            if step == len(timesteps) - 1:
                return image
            z = self._signal[timesteps[step + 1]] * image + self._noise[timesteps[step + 1]] * noise
        return z
