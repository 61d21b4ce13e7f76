"""The block ``mixed_precision_array``: :class:`MixedPrecisionArray` and its parts."""

from hw.units.mixed_precision_array.unit import MixedPrecisionArray, MixedPrecisionArrayParameters

__all__ = ["MixedPrecisionArray", "MixedPrecisionArrayParameters"]
