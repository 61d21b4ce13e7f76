"""Stimulus and expectation for the data aligner: whole tiles of random elements, the first of them numbered."""

import numpy as np

from golden.units.data_aligner import transpose_tiles
from verif.bench.batch import Batch, Bench
from verif.bench.packing import pack


class DataAlignerBench(Bench):
    """Batches are whole tiles: at least three, so that both halves are filled, emptied and filled again."""

    unit = "data_aligner"
    required_bins = frozenset({"tiles"})

    @property
    def longest_stall(self):
        """A half takes vectors again when all its columns are read."""
        return self.parameters.n

    def batch(self, count):
        n, width = self.parameters.n, self.parameters.width
        n_tiles = max(3, -(-count // n))
        rows = self.rng.integers(0, 1 << min(width, 62), (n_tiles * n, n))
        rows[:n] = np.arange(n * n).reshape(n, n) & ((1 << min(width, 62)) - 1)
        first_columns = [beat + n - 1 if beat % n == 0 else None for beat in range(n_tiles * n)]
        return Batch(
            {"rows": pack(rows, width)},
            {"columns": pack(transpose_tiles(rows, n), width)},
            {"tiles": n_tiles},
            causes={"columns": ("rows", first_columns)},
        )
