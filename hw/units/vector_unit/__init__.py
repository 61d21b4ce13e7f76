"""The block ``vector_unit``: :class:`VectorUnit` and its parts."""

from hw.units.vector_unit.unit import VectorUnit, VectorUnitParameters

__all__ = ["VectorUnit", "VectorUnitParameters"]
