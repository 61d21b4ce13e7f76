"""Function tables as data, one file a table, read on first use.

``python -m golden.arith.fit_tables`` fits them from the definitions of the functions and writes the files.
"""

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

from golden.spec.formats import check_operand_format

__all__ = ["FOLDER", "LinearTable", "line", "read", "read_for"]

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class LinearTable:
    """A function of an argument in [0, 1) by one straight line for each value of the argument's first bits.

    ``value = (intercept[index] * 2**slope_shift + slope[index] * offset) / 2**(fraction_width + slope_shift)``,
    ``index`` and ``offset`` the upper and lower bits of the argument. Slopes are positive: where the function falls,
    the offset is inverted, that is, counted down from the end of the segment.
    """

    index_width: int
    offset_width: int
    fraction_width: int
    """Fraction bits of the intercepts."""
    slope_shift: int
    """Fraction bits that a slope has beyond an intercept's."""
    falling: bool
    intercepts: tuple[int, ...]
    slopes: tuple[int, ...]
    error: Fraction
    """The largest distance between line and function, over all arguments."""

    @property
    def argument_width(self):
        return self.index_width + self.offset_width

    @property
    def slope_width(self):
        return max(self.slopes).bit_length()

    @property
    def value_fraction(self):
        """Fraction bits of the values."""
        return self.fraction_width + self.slope_shift


def line(fields):
    """The table of lines from the fields of a file."""
    exact = {"intercepts": tuple(fields["intercepts"]), "slopes": tuple(fields["slopes"])}
    return LinearTable(**{**fields, **exact, "error": Fraction(fields["error"])})


@cache
def read(name):
    """The contents of a table's file; read-only."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def read_for(name, fmt):
    """The same for a table with one entry for each operand format."""
    check_operand_format(fmt)
    return read(f"{name}_{fmt.name}")
