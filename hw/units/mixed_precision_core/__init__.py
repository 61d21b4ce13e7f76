"""The block ``mixed_precision_core``: :class:`MixedPrecisionCore` and its parts."""

from hw.units.mixed_precision_core.unit import MixedPrecisionCore, MixedPrecisionCoreParameters

__all__ = ["MixedPrecisionCore", "MixedPrecisionCoreParameters"]
