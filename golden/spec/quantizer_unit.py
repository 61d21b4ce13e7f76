"""Parameters of the quantiser."""

from dataclasses import dataclass

from golden.spec.mixed_precision import MAX_SLICES
from golden.spec.parameters import Parameters, flag, integer

__all__ = ["QuantizerUnitParameters", "TileParameters"]

LEVELS_PER_STAGE = 2
"""Comparators between the registers of the search for the largest magnitude."""


@dataclass(frozen=True, kw_only=True)
class TileParameters(Parameters):
    n_channels: int = integer(128, low=1, high=4096, doc="vectors of a tile at most")
    n_levels: int = integer(3, low=1, high=8, doc="number of different exponents of the vectors of a tile")
    channel_width: int = integer(8, low=1, high=16, doc="bits of a channel's index, which is passed on")

    @property
    def address_width(self):
        """Bits of a slice's address in its tile."""
        return max(1, (MAX_SLICES * self.n_channels - 1).bit_length())

    @property
    def level_width(self):
        """Bits of a level."""
        return max(1, (self.n_levels - 1).bit_length())


@dataclass(frozen=True, kw_only=True)
class VectorParameters(TileParameters):
    n_values: int = integer(64, low=1, high=256, doc="values of a vector: tokens of a tile")
    reconstruct: bool = flag(False, doc="whether the quantised values are also output as FP16 words")


@dataclass(frozen=True, kw_only=True)
class QuantizerUnitParameters(VectorParameters):
    @property
    def maximum_stages(self):
        """Register stages of the search for the largest magnitude."""
        return max(1, -(-(self.n_values - 1).bit_length() // LEVELS_PER_STAGE))
