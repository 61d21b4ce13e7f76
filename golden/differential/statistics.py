"""What mixed precision makes of tiles of differences: average bits, slices, shifts, blank lanes, clocks of an array."""

from dataclasses import dataclass, field

import numpy as np

from golden.spec.mixed_precision import GROUP, MAX_SLICES, SLICE_WIDTH
from golden.units.mixed_precision_array import schedule
from golden.units.quantizer_unit import encode, quantise

__all__ = ["Statistics", "activation_statistics"]


@dataclass
class Statistics:
    """Counts over tiles; add two of them to join them."""

    vectors: int = 0
    """Vectors that were quantised: sub-channels."""
    by_slices: np.ndarray = field(default_factory=lambda: np.zeros(MAX_SLICES + 1, np.int64))
    """Vectors with so many slices, 0 to 4."""
    groups: int = 0
    """Clocks in which slices enter an array."""
    shifts: int = 0
    """Clocks in which its sums are shifted instead."""
    errors: int = 0
    """Vectors with a NaN or an infinity."""

    @classmethod
    def of(cls, quantised, entries):
        """Of one tile and its entries."""
        plan = schedule(entries)
        counts = np.bincount(quantised.n_slices.ravel(), minlength=MAX_SLICES + 1)
        return cls(
            quantised.n_slices.size, counts, len(plan.groups), int(plan.shifts.sum()), int(quantised.error.sum())
        )

    def __add__(self, other):
        return Statistics(
            self.vectors + other.vectors,
            self.by_slices + other.by_slices,
            self.groups + other.groups,
            self.shifts + other.shifts,
            self.errors + other.errors,
        )

    @property
    def slices(self):
        """Slices of two bits."""
        return int(self.by_slices @ np.arange(MAX_SLICES + 1))

    @property
    def bits(self):
        """Average bits of a value; a vector without slices has none."""
        return SLICE_WIDTH * self.slices / self.vectors if self.vectors else 0.0

    @property
    def clocks(self):
        """Clocks of an array for one tile of columns."""
        return self.groups + self.shifts

    @property
    def int8_clocks(self):
        """Clocks of an array of the same elements that always takes 8 bits: four slices, one vector a clock."""
        return self.vectors

    @property
    def blanks(self):
        """Lanes that are idle in clocks in which slices enter."""
        return GROUP * self.groups - self.slices

    @property
    def utilisation(self):
        """Share of the lanes that multiply, over all clocks."""
        return self.slices / (GROUP * self.clocks) if self.clocks else 0.0

    def to_dict(self):
        """Plain numbers, for tables and JSON."""
        return {
            "vectors": self.vectors,
            "by_slices": [int(count) for count in self.by_slices],
            "bits": self.bits,
            "groups": self.groups,
            "shifts": self.shifts,
            "blanks": self.blanks,
            "utilisation": self.utilisation,
            "clocks": self.clocks,
            "int8_clocks": self.int8_clocks,
            "errors": self.errors,
        }


def activation_statistics(words, *, n_rows=64, n_channels=128, threshold, finest_exponent, n_levels=3):
    """:class:`Statistics` of FP16 words [tokens, channels], cut into tiles of ``n_rows`` tokens and ``n_channels``.

    The last tile of either side is smaller if the sizes do not divide.
    """
    words = np.asarray(words)
    if words.ndim != 2:
        raise ValueError(f"words must have the shape [tokens, channels], not {words.shape}")
    for name, value in (("n_rows", n_rows), ("n_channels", n_channels)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value!r}")
    total = Statistics()
    for row in range(0, words.shape[0], n_rows):
        for channel in range(0, words.shape[1], n_channels):
            tile = words[row : row + n_rows, channel : channel + n_channels].T
            found = quantise(tile, threshold=threshold, finest_exponent=finest_exponent, n_levels=n_levels)
            total += Statistics.of(found, encode(found, finest_exponent=finest_exponent, n_levels=n_levels))
    return total
