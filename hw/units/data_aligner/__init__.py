"""The block ``data_aligner``: :class:`DataAligner` and its parts."""

from hw.units.data_aligner.unit import DataAligner, DataAlignerParameters

__all__ = ["DataAligner", "DataAlignerParameters"]
