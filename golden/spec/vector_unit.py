"""Parameters of the vector unit and of its accumulators."""

from dataclasses import dataclass

from golden.spec.formats import OPERAND_FORMATS, float_format
from golden.spec.limits import MAX_INPUT_BITS
from golden.spec.parameters import Parameters, choice, integer, power_of_two
from golden.spec.vector_operations import OPERATION_WIDTH, SCOPE_WIDTH

__all__ = ["GUARD_BITS", "AccumulatorParameters", "FactorParameters", "VectorUnitParameters"]


GUARD_BITS = 2
"""Guard bits of the reduction bus below an accumulator's last bit."""

MAX_LANES, MAX_BANK_DEPTH = 128, 1 << 24
"""Lanes of an engine, and engines; rows of a bank."""

_WIDEST_TOTAL = 62
"""Bits of the widest integer that the model sums."""

_HANDSHAKE_BITS = 4
"""Inputs of the unit beside its command: clock, reset, a valid and a ready."""


@dataclass(frozen=True, kw_only=True)
class FactorParameters(Parameters):
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, doc="format of the operands")

    @property
    def float_format(self):
        return float_format(self.format)

    @property
    def precision(self):
        return self.float_format.precision


@dataclass(frozen=True, kw_only=True)
class AccumulatorParameters(FactorParameters):
    align_width: int = integer(28, low=22, high=40, doc="bits of the window below the largest product of a sum")
    max_terms: int = power_of_two(1 << 16, low=1, high=1 << 20, doc="terms a lane that cannot overflow an accumulator")

    @property
    def sum_width(self):
        """Bits of an accumulator, in two's complement."""
        return self.align_width + (self.max_terms - 1).bit_length() + 1

    @property
    def aligned_width(self):
        """Bits of an accumulator on the bus."""
        return self.sum_width + GUARD_BITS


@dataclass(frozen=True, kw_only=True)
class TotalsParameters(AccumulatorParameters):
    n_engines: int = power_of_two(4, low=1, high=MAX_LANES, doc="SIMD engines, each with its bank")
    n_lanes: int = integer(4, low=1, high=MAX_LANES, doc="lanes an engine")

    @property
    def n_totals(self):
        return max(self.n_engines, self.n_lanes)

    @property
    def lane_width(self):
        """Bits of a lane's sum over the engines."""
        return self.aligned_width + (self.n_engines - 1).bit_length()

    @property
    def engine_width(self):
        """Bits of an engine's sum over its lanes."""
        return self.aligned_width + (self.n_lanes - 1).bit_length()

    @property
    def all_width(self):
        """Bits of the sum over all lanes of all engines."""
        return self.engine_width + (self.n_engines - 1).bit_length()


@dataclass(frozen=True, kw_only=True)
class VectorUnitParameters(TotalsParameters):
    bank_depth: int = integer(64, low=1, high=MAX_BANK_DEPTH, doc="rows of a bank, n_lanes words each")

    def check(self):
        excess = self.all_width - _WIDEST_TOTAL
        if excess > 0:
            self.refuse(
                "align_width",
                f"at most {self.align_width - excess} with max_terms {self.max_terms}, "
                f"n_engines {self.n_engines} and n_lanes {self.n_lanes}",
            )
        if self.n_lanes > self.most_lanes:
            self.refuse(
                "n_lanes",
                f"at most {self.most_lanes} with n_engines {self.n_engines}, since a command of more than "
                f"{MAX_INPUT_BITS - _HANDSHAKE_BITS} bits exceeds the limit of a module's input bits",
            )

    @property
    def address_width(self):
        """Bits of the address of a bank's row."""
        return max(1, (self.bank_depth - 1).bit_length())

    @property
    def lane_command_width(self):
        """Bits of a command for each lane: an enable and three operands."""
        return 1 + 3 * self.float_format.width

    @property
    def command_width(self):
        """Bits of a command: operation, scope, first and last; for each engine an enable, an address, and its lanes."""
        engine = 1 + self.address_width + self.n_lanes * self.lane_command_width
        return OPERATION_WIDTH + SCOPE_WIDTH + 2 + self.n_engines * engine

    @property
    def most_lanes(self):
        """Largest number of lanes for which a command fits into a module's input bits."""
        others = self.command_width - self.n_engines * self.n_lanes * self.lane_command_width
        return (MAX_INPUT_BITS - _HANDSHAKE_BITS - others) // (self.n_engines * self.lane_command_width)
