"""The block ``bitonic_sorter``: :class:`BitonicSorter` and its parts."""

from hw.units.bitonic_sorter.unit import BitonicSorter, BitonicSorterParameters

__all__ = ["BitonicSorter", "BitonicSorterParameters"]
