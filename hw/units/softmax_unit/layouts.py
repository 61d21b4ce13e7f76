"""Layouts between the parts of the softmax unit."""

from amaranth.lib import data

from golden.spec import softmax_unit
from golden.spec.formats import FP16
from golden.spec.softmax_unit import FACTOR_WIDTH, FRACTION, WHOLE_WIDTH
from hw.lib.formats import positive_layout

__all__ = ["SCALE", "POWER", "MAXIMUM", "MULTIPLIER"]

SCALE = positive_layout(softmax_unit.SCALE)
"""``(1 + fraction / 2**15) * 2**(exponent - 12)``"""

POWER = data.StructLayout({"fraction": FRACTION, "whole": WHOLE_WIDTH})
"""``(1 + fraction / 2**13) * 2**-(whole + 1)``, or 0 if whole is all ones"""

MAXIMUM = data.StructLayout({"maximum": FP16.width, "has_nan": 1, "factor": FACTOR_WIDTH})
"""A row's largest score, and values passed on with it"""

MULTIPLIER = data.StructLayout({"fraction": FRACTION, "exponent": WHOLE_WIDTH, "has_nan": 1})
"""``(1 + fraction / 2**13) * 2**-(exponent - 1)``, the multiplier of a row's powers"""
