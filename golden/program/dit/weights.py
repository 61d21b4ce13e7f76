"""The shape and the weights of a DiT block with adaLN-zero."""

from dataclasses import dataclass, fields, replace

import numpy as np

__all__ = ["BlockShape", "BlockWeights", "random_block"]


@dataclass(frozen=True)
class BlockShape:
    """Tokens, elements of a token, heads (of ``dim / n_heads`` elements each), and elements of a hidden row."""

    n_tokens: int
    dim: int
    n_heads: int
    hidden: int

    def __post_init__(self):
        for item in fields(self):
            value = getattr(self, item.name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{item.name} must be an integer, not {value!r} of type {type(value).__name__}")
            if value < 1:
                raise ValueError(f"{item.name} must be at least 1, not {value}")
        if self.dim % self.n_heads:
            raise ValueError(f"n_heads must divide dim={self.dim}, not {self.n_heads}")

    def check(self, sizes):
        """``ValueError`` if a core of these sizes cannot attend to so many tokens, or heads of so many elements."""
        for name, value, limit in (
            ("n_tokens", self.n_tokens, "max_tokens"),
            ("dim / n_heads", self.head_dim, "max_head_dim"),
        ):
            if value > getattr(sizes, limit):
                raise ValueError(f"{name} must be at most {limit}={getattr(sizes, limit)} of the core, not {value}")

    @property
    def head_dim(self):
        return self.dim // self.n_heads

    @property
    def products(self):
        """Multiplications of the block, those for the six vectors of adaLN left out."""
        dense = self.dim * (4 * self.dim + 2 * self.hidden) + 2 * self.n_tokens * self.dim
        return self.n_tokens * dense


@dataclass(frozen=True)
class BlockWeights:
    """Matrices [n_in, n_out] and biases [n_out] of floating-point numbers.

    ``ada`` gives the six vectors b1, s1, g1, b2, s2, g2, ``qkv`` the queries, keys and values, each head after head.
    """

    ada: np.ndarray
    ada_bias: np.ndarray
    qkv: np.ndarray
    qkv_bias: np.ndarray
    proj: np.ndarray
    proj_bias: np.ndarray
    fc1: np.ndarray
    fc1_bias: np.ndarray
    fc2: np.ndarray
    fc2_bias: np.ndarray

    def check(self, shape):
        """``ValueError`` if an array has not the size that the block has."""
        dim, hidden = shape.dim, shape.hidden
        legal = {"ada": (dim, 6 * dim), "qkv": (dim, 3 * dim), "proj": (dim, dim)}
        legal |= {"fc1": (dim, hidden), "fc2": (hidden, dim)}
        legal |= {f"{name}_bias": size[1:] for name, size in legal.items()}
        for name, size in legal.items():
            found = np.shape(getattr(self, name))
            if found != size:
                raise ValueError(f"{name} must be {list(size)}, not {list(found)}")

    def folded(self):
        """The same block without the biases of keys and values.

        Softmax does not see what is added to all scores of a row, and the weights of a row have the sum 1: the keys'
        bias is without effect, and that of the values is a bias of the projection, ``proj_bias + bias @ proj``. Where
        rows are multiplied with their retained mass, the values' bias is not: it counts as in the dense row.
        """
        dim = len(self.proj)
        qkv_bias = np.array(self.qkv_bias)
        moved = qkv_bias[2 * dim :].astype(np.float64) @ self.proj.astype(np.float64)
        qkv_bias[dim:] = 0
        return replace(self, qkv_bias=qkv_bias, proj_bias=(self.proj_bias + moved).astype(np.float16))

    def head(self, kind, index, head_dim):
        """Weights [dim, head_dim] and bias of a head's queries (kind 0), keys (1) or values (2)."""
        first = kind * len(self.proj) + index * head_dim
        part = slice(first, first + head_dim)
        return self.qkv[:, part], self.qkv_bias[part]

    def modulation(self, index):
        """Weights [dim, dim] and bias of vector ``index`` of b1, s1, g1, b2, s2, g2."""
        dim = len(self.proj)
        part = slice(index * dim, (index + 1) * dim)
        return self.ada[:, part], self.ada_bias[part]


def random_block(shape, seed=0):
    """Random weights whose results have about the size of their inputs."""
    rng = np.random.default_rng(seed)
    dim, hidden = shape.dim, shape.hidden
    sizes = {"ada": (dim, 6 * dim), "qkv": (dim, 3 * dim), "proj": (dim, dim), "fc1": (dim, hidden)}
    sizes["fc2"] = (hidden, dim)
    arrays = {}
    for name, size in sizes.items():
        scale = 0.3 if name == "ada" else 1.0
        arrays[name] = (rng.standard_normal(size) * scale / np.sqrt(size[0])).astype(np.float16)
        arrays[f"{name}_bias"] = (0.1 * rng.standard_normal(size[1])).astype(np.float16)
    return BlockWeights(**arrays)
