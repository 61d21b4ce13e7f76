"""Parameters of the mixed-precision array."""

from dataclasses import dataclass

from golden.spec.mixed_precision import sum_width
from golden.spec.parameters import Parameters, integer

__all__ = ["ArrayParameters", "MixedPrecisionArrayParameters"]


@dataclass(frozen=True, kw_only=True)
class ArrayParameters(Parameters):
    n_rows: int = integer(64, low=1, high=256, doc="values of a slice: tokens of a tile, rows of processing elements")
    n_columns: int = integer(64, low=1, high=256, doc="outputs: columns of processing elements")
    n_channels: int = integer(128, low=1, high=4096, doc="vectors of a tile at most, so that no sum overflows")
    n_levels: int = integer(3, low=1, high=8, doc="number of different exponents of the vectors of a tile")
    weight_depth: int = integer(256, low=1, high=1 << 16, doc="weight rows in the bank, n_columns weights each")

    @property
    def sum_width(self):
        """Bits of a sum, which no tile can overflow."""
        return sum_width(self.n_channels, self.n_levels)

    @property
    def address_width(self):
        """Bits of a weight row's address."""
        return max(1, (self.weight_depth - 1).bit_length())

    def check(self):
        if self.sum_width > 32:
            self.refuse("n_channels", f"less, or n_levels: sums of {self.sum_width} bits are more than 32")


@dataclass(frozen=True, kw_only=True)
class MixedPrecisionArrayParameters(ArrayParameters):
    n_output_lanes: int | None = integer(
        None, low=1, high=256, doc="outputs a beat, a divisor of n_columns; by default n_columns"
    )

    @property
    def lanes(self):
        """Outputs a beat."""
        return self.n_output_lanes or self.n_columns

    def check(self):
        super().check()
        if self.n_columns % self.lanes:
            self.refuse("n_output_lanes", f"a divisor of n_columns={self.n_columns}")
