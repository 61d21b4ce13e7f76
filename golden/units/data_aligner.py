"""Bit-exact model of the data aligner: tiles of vectors become their columns."""

import numpy as np


def transpose_tiles(rows, n):
    """Columns ``[..., n * tiles, n]`` of vectors ``[..., n * tiles, n]``: ``columns[k n + t][u] = rows[k n + u][t]``."""
    rows = np.asarray(rows)
    *leading, count, width = rows.shape
    if width != n or count % n:
        raise ValueError(f"rows must be whole tiles of {n} vectors of {n} elements, got shape {rows.shape}")
    return rows.reshape(*leading, count // n, n, n).swapaxes(-1, -2).reshape(rows.shape)
