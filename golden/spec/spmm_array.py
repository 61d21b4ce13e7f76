"""Parameters of the SpMM array, and the clocks that its reduction takes."""

from dataclasses import dataclass

from golden.spec.limits import MAX_RUN_AHEAD, MAX_SLOTS
from golden.spec.parameters import flag, integer, power_of_two
from golden.spec.vector_unit import MAX_BANK_DEPTH, MAX_LANES, FactorParameters

__all__ = ["ISSUE_TO_STATUS", "SpmmArrayParameters", "SpmmLanesParameters"]

MAX_PASSES, MAX_PROBABILITY_DEPTH, MAX_REDUCTION_CLOCKS = 1 << 12, 1 << 24, 8
"""Passes over a row; words of a bank of probabilities; clocks from a pass's reduction to the next one's."""

ISSUE_TO_STATUS = 4
"""Clocks from the issue of a pass's last term until the reduction may take the pass."""

_WRITTEN_AFTER = 3
"""Clocks from a term that needs a place in the queues to the first write there."""

_ROUNDER, _RESULT_QUEUE = 5, 2
"""Clocks of the rounding, and of the queue of results."""


@dataclass(frozen=True, kw_only=True)
class SpmmLanesParameters(FactorParameters):
    n_lanes: int = integer(4, low=1, high=MAX_LANES, doc="lanes an engine")
    n_slots: int = integer(16, low=1, high=MAX_SLOTS, doc="bits of an engine's part of a row: columns over engines")
    bank_depth: int = integer(64, low=1, high=MAX_BANK_DEPTH, doc="words of a bank of values, n_lanes elements each")
    probability_depth: int = power_of_two(
        1024, low=2, high=MAX_PROBABILITY_DEPTH, doc="words of a bank of probabilities, read as a ring"
    )
    max_passes: int = integer(4, low=1, high=MAX_PASSES, doc="largest number of passes over a row")
    align_width: int = integer(28, low=22, high=40, doc="bits of the window below the largest product of a sum")

    @property
    def max_terms(self):
        """Terms that an accumulator holds: one a slot."""
        return 1 << (self.n_slots - 1).bit_length()

    @property
    def value_address_width(self):
        """Bits of an address in a bank of values."""
        return max(1, (self.bank_depth - 1).bit_length())

    @property
    def probability_address_width(self):
        """Bits of an address in a bank of probabilities."""
        return (self.probability_depth - 1).bit_length()


@dataclass(frozen=True, kw_only=True)
class SpmmArrayParameters(SpmmLanesParameters):
    n_engines: int = power_of_two(4, low=2, high=MAX_LANES, doc="engines, each with its bank of values")
    run_ahead: int = integer(2, low=0, high=MAX_RUN_AHEAD, doc="passes that an engine may be ahead of the slowest one")
    reduction_clocks: int = power_of_two(
        1,
        low=1,
        high=MAX_REDUCTION_CLOCKS,
        doc="clocks that a pass is in the reduction; so many engines share an aligner",
    )
    wide: bool = flag(False, doc="whether results come in FP32 as well")

    def check(self):
        super().check()
        if self.reduction_clocks > self.n_engines:
            self.refuse("reduction_clocks", f"at most n_engines={self.n_engines}")

    @property
    def n_groups(self):
        """Engines that are reduced in one clock, each from another group of reduction_clocks engines."""
        return self.n_engines // self.reduction_clocks

    @property
    def exponent_stages(self):
        """Registers of the largest exponent of the engines reduced in a clock: one for two levels of comparisons.

        Where engines share an aligner, exponents are read twice; one more register where both reads of passes that
        follow each other at once would fall into one clock.
        """
        stages = max(1, -(-(self.n_groups - 1).bit_length() // 2))
        return stages + (self.reduction_clocks > 1 and stages % self.reduction_clocks == 0)

    @property
    def second_read(self):
        """Clocks from the first read of a pass's exponents to the second one, when the largest one is known."""
        return self.reduction_clocks + self.exponent_stages - (self.reduction_clocks == 1)

    @property
    def freed_delay(self):
        """Clocks from the reduction's first read of a pass until its engines may reckon with its place in the queues.

        Exponents are read last ``second_read + reduction_clocks - 1`` clocks after that.
        """
        return max(0, self.second_read + self.reduction_clocks - 1 - _WRITTEN_AFTER)

    @property
    def queue_depth(self):
        """Passes of an engine in its queues: those ahead, and those that are on their way in a steady flow."""
        on_the_way = ISSUE_TO_STATUS + 1 + self.freed_delay
        return self.run_ahead + -(-on_the_way // self.reduction_clocks)

    @property
    def sum_stages(self):
        """Registers of the sum of the engines reduced in a clock."""
        return next(stages for stages, most in enumerate((1, 4, 16, MAX_LANES)) if self.n_groups <= most)

    @property
    def bus_to_rounder(self):
        """Clocks from a pass's largest exponent, while it lasts, to the pass's sum over the engines."""
        return 2 + self.sum_stages + (self.reduction_clocks > 1)

    @property
    def to_rounder(self):
        """Clocks from the reduction's first read of a pass to its sum over the engines."""
        return self.second_read + self.reduction_clocks + self.bus_to_rounder

    @property
    def to_result(self):
        """Clocks from there to the pass's result, where nothing stalls."""
        return self.to_rounder + _ROUNDER + _RESULT_QUEUE

    @property
    def result_depth(self):
        """Passes from the reduction's first read to the result in a steady flow, results that wait included."""
        return max(3, -(-(self.to_result + 1) // self.reduction_clocks))

    @property
    def bitmap_depth(self):
        """Rows in an engine's queue of bitmaps: those that the fastest engine may be ahead, two for its latency."""
        return self.queue_depth + 2
