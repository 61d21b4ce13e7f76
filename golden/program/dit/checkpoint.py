"""The trained model dit_small: its file, its formulas around the blocks in float64, and the weights of its blocks."""

import json
import math

import numpy as np

from golden.program.dit.reference import silu
from golden.program.dit.weights import BlockShape, BlockWeights

__all__ = ["DitSmall", "read_safetensors"]

_TYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
_LARGEST_HEADER = 1 << 24


def read_safetensors(path):
    """``{name: array}`` and metadata of a safetensors file of floating-point numbers; ``OSError`` or ``ValueError``."""
    with open(path, "rb") as file:
        content = file.read()
    try:
        length = int.from_bytes(content[:8], "little")
        if len(content) < 8 or length > min(_LARGEST_HEADER, len(content) - 8):
            raise ValueError("its header is cut off")
        header = json.loads(content[8 : 8 + length])
        metadata = header.pop("__metadata__", {})
        data = memoryview(content)[8 + length :]
        arrays = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            kind = np.dtype(_TYPES[entry["dtype"]])
            if not 0 <= begin <= end <= len(data) or end - begin != kind.itemsize * math.prod(entry["shape"]):
                raise ValueError(f"{name!r} lies beyond its end or has another size than its shape says")
            arrays[name] = np.frombuffer(data[begin:end], kind).reshape(entry["shape"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} is not a safetensors file of floating-point numbers: {error}") from None
    return arrays, metadata


class DitSmall:
    """A DiT on images of 3 x 32 x 32: patch embedding, condition, blocks, output; see the formulas in its methods."""

    n_heads, side, patch = 4, 16, 2

    def __init__(self, path):
        self.arrays, _ = read_safetensors(path)
        needed = {"emb.weight", "temb.0.weight", "temb.2.weight", "yemb.weight", "adaf.weight", "out.weight"}
        if missing := sorted(needed - set(self.arrays)):
            raise ValueError(f"{str(path)!r} is not dit_small: it has no {', '.join(missing)}")
        self.n_blocks = len({name.split(".")[1] for name in self.arrays if name.startswith("blocks.")})
        dim = self.arrays["emb.weight"].shape[0]
        hidden = self.arrays["blocks.0.fc1.weight"].shape[0]
        self.shape = BlockShape(self.side**2, dim, self.n_heads, hidden)

    def _linear(self, name, x):
        weight, bias = (self.arrays[f"{name}.{part}"].astype(np.float64) for part in ("weight", "bias"))
        return x @ weight.T + bias

    def block(self, index):
        """The weights of a block."""
        parts = {}
        for name in ("ada", "qkv", "proj", "fc1", "fc2"):
            parts[name] = self.arrays[f"blocks.{index}.{name}.weight"].T
            parts[f"{name}_bias"] = self.arrays[f"blocks.{index}.{name}.bias"]
        weights = BlockWeights(**parts)
        weights.check(self.shape)
        return weights

    def tokens(self, image):
        """Embedded patches of an image [3, 32, 32], channel first in a patch, with sine and cosine positions."""
        channels, patch = len(image), self.patch
        cut = np.asarray(image, np.float64).reshape(channels, self.side, patch, self.side, patch)
        x = self._linear("emb", cut.transpose(1, 3, 0, 2, 4).reshape(self.side**2, -1))
        quarter = self.shape.dim // 4
        angle = (np.arange(self.side) + 0.5)[:, None] * 10000.0 ** (-np.arange(quarter) / quarter)
        place = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
        row, column = np.divmod(np.arange(self.side**2), self.side)
        return x + np.concatenate([place[row], place[column]], axis=1)

    def condition(self, time, label):
        """The embedding of a time 0 to 999 plus that of a class."""
        half = self.arrays["temb.0.weight"].shape[1] // 2
        angle = time * np.exp(-math.log(10000) * np.arange(half) / half)
        features = np.concatenate([np.cos(angle), np.sin(angle)])
        hidden = silu(self._linear("temb.0", features))
        return self._linear("temb.2", hidden) + self.arrays["yemb.weight"][label].astype(np.float64)
