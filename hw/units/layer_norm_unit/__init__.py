"""The block ``layer_norm_unit``: :class:`LayerNormUnit` and its parts."""

from hw.units.layer_norm_unit.unit import LayerNormUnit, LayerNormUnitParameters

__all__ = ["LayerNormUnit", "LayerNormUnitParameters"]
