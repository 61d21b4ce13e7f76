"""The block ``spmm_array``: :class:`SpmmArray` and its parts."""

from hw.units.spmm_array.layouts import SpmmArrayParameters
from hw.units.spmm_array.unit import SpmmArray

__all__ = ["SpmmArray", "SpmmArrayParameters"]
