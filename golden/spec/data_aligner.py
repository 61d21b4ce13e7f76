"""Parameters of the data aligner."""

from dataclasses import dataclass

from golden.spec.parameters import Parameters, integer, power_of_two

__all__ = ["DataAlignerParameters"]


@dataclass(frozen=True, kw_only=True)
class DataAlignerParameters(Parameters):
    n: int = power_of_two(16, low=2, high=64, doc="rows and columns of a tile")
    width: int = integer(16, low=1, high=64, doc="bits an element")
