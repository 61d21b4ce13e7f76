"""The block ``dot_product_array``: :class:`DotProductArray` and its parts."""

from hw.units.dot_product_array.unit import DotProductArray, DotProductArrayParameters

__all__ = ["DotProductArray", "DotProductArrayParameters"]
