"""Layouts between the parts of the layer-norm unit; widths depend on the row length."""

from dataclasses import dataclass

from amaranth.lib import data
from amaranth.utils import bits_for, ceil_log2

from golden.spec import layer_norm_unit as spec
from golden.spec.formats import FP16
from golden.spec.parameters import Parameters, integer
from hw.lib.formats import positive_layout

__all__ = ["DEVIATION", "EPSILON", "FIXED_WIDTH", "FRAME_WIDTH", "ROOT", "SCALE", "RowLanesParameters", "RowParameters"]

FIXED_WIDTH = FP16.precision + FP16.max_exponent - 2
"""Bits of any number's magnitude in units of the smallest one."""
SCALE = range(1, FIXED_WIDTH + 2)
"""Bits of a row's range in the same units, at least 1."""
FRAME_WIDTH = spec.FRAME_FRACTION + 1

EPSILON = positive_layout(spec.EPSILON)
"""``(1 + fraction / 2**12) * 2**(exponent - 48)``"""

DEVIATION = data.StructLayout(
    {"significand": spec.DEVIATION_WIDTH, "places": bits_for(spec.FRAME_FRACTION), "negative": 1}
)
"""``significand / 2**14 * 2**-places``, the significand 0 or with its top bit set"""

ROOT = data.StructLayout({"fraction": spec.ROOT_FRACTION, "exponent": 7, "has_special": 1})
"""Multiplier of a row's deviations: ``(1 + fraction / 2**14) / 2 * 2**-exponent``, a signed exponent"""


@dataclass(frozen=True, kw_only=True)
class RowParameters(Parameters):
    n_elements: int = integer(spec.MAX_ELEMENTS, low=1, high=spec.MAX_ELEMENTS, doc="elements of a row at most")

    @property
    def count_width(self):
        """Bits of a row's number of elements; at least as many as avoid fields without bits."""
        return max(3, bits_for(self.n_elements))

    @property
    def count_fraction(self):
        """Fraction bits of that number's significand; the others of ``spec.COUNT_FRACTION`` are 0."""
        return max(3, bits_for(self.n_elements - 1)) - 1

    @property
    def total_width(self):
        """Bits of a row's sum in units of the smallest number, in two's complement."""
        return FIXED_WIDTH + ceil_log2(self.n_elements) + 1

    @property
    def squares_width(self):
        """Bits of the sum of a row's squares, each of which is below 1."""
        return spec.SQUARE_FRACTION + ceil_log2(self.n_elements)

    @property
    def count(self):
        """A row's elements: ``(1 + count / 2**count_fraction) * 2**octave``."""
        return data.StructLayout({"count": self.count_fraction, "octave": bits_for(self.count_width - 1)})

    @property
    def statistic(self):
        """Row statistics before the deviations; the mean is scaled by the count's significand, in the row's frame."""
        return data.StructLayout(
            {**self.count.members, "scale": bits_for(max(SCALE)), "mean": FRAME_WIDTH, "has_special": 1}
        )


@dataclass(frozen=True, kw_only=True)
class RowLanesParameters(RowParameters, spec.LanesParameters):
    pass
