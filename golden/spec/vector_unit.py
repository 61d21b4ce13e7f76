"""Parameters of the vector unit and of its accumulators."""

from dataclasses import dataclass

from golden.spec.formats import FP32, OPERAND_FORMATS, float_format
from golden.spec.limits import MAX_INPUT_BITS
from golden.spec.parameters import Parameters, choice, flag, integer, power_of_two, subset
from golden.spec.vector_operations import (
    ACCUMULATING_OPS,
    BANK_OPS,
    FUNCTION_OPS,
    LANE_OPS,
    OPERATION_WIDTH,
    OPERATIONS,
    SCOPE_WIDTH,
    SCOPES,
    TWO_OPERAND_OPS,
    VectorOp,
    names_of,
    operations_of,
)

__all__ = [
    "FORMS",
    "GUARD_BITS",
    "AccumulatorParameters",
    "FactorParameters",
    "OperationParameters",
    "TotalsParameters",
    "VectorUnitParameters",
]

FORMS = ("single", "rounded")
"""The forms in which totals are given: FP32 words, and words of the format."""

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
class OperationParameters(AccumulatorParameters):
    """Which operations there are, and in what forms their results are."""

    n_lanes: int = integer(4, low=1, high=MAX_LANES, doc="lanes an engine")
    operations: tuple[str, ...] = subset(
        OPERATIONS, *OPERATIONS, doc="the operations that exist; any other code gives a result of zeros"
    )
    scopes: tuple[str, ...] | None = subset(
        None, *SCOPES, doc="over what totals are: all of these by default; with one only, commands carry no scope"
    )
    totals: tuple[str, ...] | None = subset(
        None, *FORMS, doc="the forms of totals, FP32 (single) and the format (rounded); both by default"
    )
    special_lanes: int | None = integer(
        None,
        low=1,
        high=MAX_LANES,
        doc="function units of each kind an engine; by default n_lanes, with fewer a function takes several clocks",
    )
    stallable: bool = flag(True, doc="whether a result may wait; else result has no ready and must always be taken")

    def check(self):
        banks = self.has(*BANK_OPS)
        if banks and not (self.has(VectorOp.WRITE_BANK) and self.has(VectorOp.READ_BANK, VectorOp.SPMM)):
            self.refuse("operations", "write_bank together with read_bank or spmm, or none of the three")
        if not self.accumulates:
            needed = ", ".join(names_of(ACCUMULATING_OPS))
            for name in ("scopes", "totals"):
                if getattr(self, name) is not None:
                    self.refuse(name, f"none without one of the operations {needed}")
        if self.special_lanes is not None:
            if not self.has(*FUNCTION_OPS):
                needed = ", ".join(names_of(FUNCTION_OPS))
                self.refuse("special_lanes", f"none without one of the operations {needed}")
            if self.special_lanes > self.n_lanes:
                self.refuse("special_lanes", f"at most n_lanes={self.n_lanes}")

    def has(self, *codes):
        """Whether at least one of these operations exists."""
        return not operations_of(self.operations).isdisjoint(codes)

    def present(self, codes):
        """Those of these operations that exist."""
        return tuple(code for code in codes if self.has(code))

    @property
    def accumulates(self):
        return self.has(*ACCUMULATING_OPS)

    @property
    def gives_values(self):
        """Whether some operation gives a value a lane."""
        return self.has(*LANE_OPS, *FUNCTION_OPS, VectorOp.READ_BANK)

    @property
    def value_width(self):
        """Bits of a lane's value: FP32 words are only there with TO_FP32."""
        return FP32.width if self.has(VectorOp.TO_FP32) else self.float_format.width

    @property
    def total_scopes(self):
        """The scopes of totals that exist."""
        return (self.scopes or SCOPES) if self.accumulates else ()

    @property
    def total_forms(self):
        """The forms of totals that exist."""
        return (self.totals or FORMS) if self.accumulates else ()

    @property
    def n_special_lanes(self):
        return self.special_lanes or self.n_lanes

    @property
    def n_passes(self):
        """Clocks that a function takes."""
        return -(-self.n_lanes // self.n_special_lanes) if self.has(*FUNCTION_OPS) else 1


@dataclass(frozen=True, kw_only=True)
class TotalsParameters(OperationParameters):
    n_engines: int = power_of_two(4, low=1, high=MAX_LANES, doc="SIMD engines, each with its bank")

    @property
    def n_totals(self):
        """Entries of a total: the most that one of the scopes has."""
        counts = {"lanes": self.n_lanes, "engine": self.n_engines, "all": 1}
        return max((counts[scope] for scope in self.total_scopes), default=0)

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

    @property
    def total_width(self):
        """Bits of the widest total."""
        widths = {"lanes": self.lane_width, "engine": self.engine_width, "all": self.all_width}
        return max((widths[scope] for scope in self.total_scopes), default=0)


@dataclass(frozen=True, kw_only=True)
class VectorUnitParameters(TotalsParameters):
    bank_depth: int = integer(64, low=1, high=MAX_BANK_DEPTH, doc="rows of a bank, n_lanes words each")
    early_values: bool = flag(
        False, doc="whether values leave as soon as they are there, not with the latency of totals"
    )

    def check(self):
        super().check()
        excess = self.all_width - _WIDEST_TOTAL
        if excess > 0:
            self.refuse(
                "align_width",
                f"at most {self.align_width - excess} with max_terms {self.max_terms}, "
                f"n_engines {self.n_engines} and n_lanes {self.n_lanes}",
            )
        if self.early_values and not (self.accumulates and self.gives_values):
            self.refuse("early_values", "false where all results are values, or all are totals")
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
    def operands(self):
        """The names of the operands that a command has."""
        return "a" + "b" * self.has(*TWO_OPERAND_OPS) + "c" * self.has(VectorOp.FMA)

    @property
    def field_widths(self):
        """``{field: (bits, of what)}`` of a command: one a command, one an engine, or one a lane of each engine."""
        has_banks, accumulates = self.has(*BANK_OPS), self.accumulates
        fields = {
            "operation": (OPERATION_WIDTH, "command", True),
            "scope": (SCOPE_WIDTH, "command", len(self.total_scopes) > 1),
            "first": (1, "command", accumulates),
            "last": (1, "command", accumulates),
            "enable": (1, "engine", accumulates or has_banks),
            "lane_enable": (1, "lane", accumulates or has_banks),
            "address": (self.address_width, "engine", has_banks),
            **{name: (self.float_format.width, "lane", name in self.operands) for name in "abc"},
        }
        return {name: (width, unit) for name, (width, unit, exists) in fields.items() if exists}

    def _width_of(self, unit):
        return sum(width for width, of in self.field_widths.values() if of == unit)

    @property
    def command_width(self):
        """Bits of a command."""
        engine = self._width_of("engine") + self.n_lanes * self._width_of("lane")
        return self._width_of("command") + self.n_engines * engine

    @property
    def most_lanes(self):
        """Largest number of lanes for which a command fits into a module's input bits."""
        others = self._width_of("command") + self.n_engines * self._width_of("engine")
        return (MAX_INPUT_BITS - _HANDSHAKE_BITS - others) // (self.n_engines * self._width_of("lane"))
