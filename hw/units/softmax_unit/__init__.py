"""The block ``softmax_unit``: :class:`SoftmaxUnit` and its parts."""

from hw.units.softmax_unit.unit import SoftmaxUnit, SoftmaxUnitParameters

__all__ = ["SoftmaxUnit", "SoftmaxUnitParameters"]
