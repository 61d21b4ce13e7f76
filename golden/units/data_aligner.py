"""Bit-exact model of the data aligner: tiles of vectors become their columns."""

import numpy as np

from golden.spec.data_aligner import DataAlignerParameters


def transpose_tiles(rows, n):
    """Columns of vectors, both ``[..., n * tiles, n]``: ``columns[k n + t][u] = rows[k n + u][t]``."""
    DataAlignerParameters.check_value("n", n)
    rows = np.asarray(rows)
    *leading, count, width = rows.shape
    if width != n or count % n:
        raise ValueError(f"rows must be whole tiles of {n} vectors of {n} elements, got shape {rows.shape}")
    return rows.reshape(*leading, count // n, n, n).swapaxes(-1, -2).reshape(rows.shape)
