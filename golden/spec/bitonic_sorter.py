"""Parameters of the sorter."""

from dataclasses import dataclass

from golden.spec.parameters import Parameters, choice, flag, integer, power_of_two

__all__ = ["BitonicSorterParameters"]


@dataclass(frozen=True, kw_only=True)
class BitonicSorterParameters(Parameters):
    n: int = power_of_two(16, low=2, high=128, doc="keys a vector")
    key_width: int = integer(8, low=1, high=64, doc="bits a key")
    payload_width: int = integer(8, low=0, high=64, doc="payload bits of each key; 0 = keys only")
    signed: bool = flag(False, doc="keys in two's complement")
    descending: bool = flag(False, doc="largest key first")
    stable: bool = flag(False, doc="equal keys keep their order (the index is the tie-break)")
    layers_per_stage: int = integer(2, low=0, high=28, doc="comparator layers between registers; 0 = no registers")
    network: str = choice("bitonic", "bitonic", "odd_even", doc="Batcher's bitonic sorter or odd-even merge sort")
