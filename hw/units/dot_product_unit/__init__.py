"""The block ``dot_product_unit``: :class:`DotProductUnit` and its parts."""

from hw.units.dot_product_unit.unit import DotProductUnit, DotProductUnitParameters

__all__ = ["DotProductUnit", "DotProductUnitParameters"]
