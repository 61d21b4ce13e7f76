"""What the parts of the layer-norm unit tell each other."""

from amaranth.lib import data
from amaranth.utils import bits_for

from golden import layer_norm_tables as tables
from hw.formats import FP16

__all__ = ["DEVIATION", "EPSILON", "FIXED_WIDTH", "FRAME_WIDTH", "ROOT", "SCALE", "STATISTIC", "TOTAL_WIDTH"]

FIXED_WIDTH = FP16.precision + FP16.max_exponent - 2
"""Bits of any number's magnitude in units of the smallest one."""
TOTAL_WIDTH = FIXED_WIDTH + bits_for(tables.MAX_ELEMENTS)
"""Bits of a row's sum in the same units, in two's complement."""
SCALE = range(1, FIXED_WIDTH + 2)
"""Bits of a row's range in the same units, at least 1."""
FRAME_WIDTH = tables.FRAME_FRACTION + 1

EPSILON = data.StructLayout({"fraction": tables.EPSILON_FRACTION, "exponent": tables.EPSILON_EXPONENT_WIDTH})
"""``(1 + fraction / 2**12) * 2**(exponent - 48)``"""

COUNT = {"count": tables.COUNT_FRACTION, "octave": bits_for(tables.MAX_ELEMENTS.bit_length() - 1)}
"""A row's elements: ``(1 + count / 2**11) * 2**octave``"""

STATISTIC = data.StructLayout({**COUNT, "scale": bits_for(max(SCALE)), "mean": FRAME_WIDTH, "has_special": 1})
"""What is known of a row before its deviations: the mean times ``1 + count / 2**11`` in the frame of its range."""

DEVIATION = data.StructLayout({
    "significand": tables.DEVIATION_WIDTH, "places": bits_for(tables.FRAME_FRACTION), "negative": 1,
})
"""``significand / 2**14 * 2**-places``, the significand 0 or with its top bit set"""

ROOT = data.StructLayout({"fraction": tables.ROOT_FRACTION, "exponent": 7, "has_special": 1})
"""What a row's deviations are multiplied with: ``(1 + fraction / 2**14) / 2 * 2**-exponent``, a signed exponent"""
