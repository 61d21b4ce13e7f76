"""The base of every unit's testbench: a source of batches of stimulus with the golden model's answers."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Batch:
    """Beats for each input stream, the beats expected at each output stream, in order, as packed integers.

    ``bins`` counts the corner cases that the batch contains; ``statics`` are values of plain input ports, set while
    the unit is idle.
    """

    inputs: dict[str, list[int]]
    outputs: dict[str, list[int]]
    bins: dict[str, int] = field(default_factory=dict)
    statics: dict[str, int] = field(default_factory=dict)


class Bench:
    """A unit's testbench; subclasses define ``unit``, :meth:`batch` and the bins that a run must hit."""

    unit = ""
    required_bins: frozenset[str] = frozenset()

    def __init__(self, block, seed):
        self.block = block
        self.parameters = block.parameters
        self.rng = np.random.default_rng(seed)

    def batch(self, count) -> Batch:
        """About ``count`` beats of stimulus that depend on nothing that was sent before."""
        raise TypeError(f"{type(self).__name__} does not define batch()")
