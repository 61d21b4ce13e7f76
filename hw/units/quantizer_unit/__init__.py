"""The block ``quantizer_unit``: :class:`QuantizerUnit` and its parts."""

from hw.units.quantizer_unit.unit import QuantizerUnit, QuantizerUnitParameters

__all__ = ["QuantizerUnit", "QuantizerUnitParameters"]
