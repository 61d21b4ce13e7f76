"""Parameters of one SIMD engine, and what follows from them: which of its parts exist, and when results are there."""

from dataclasses import dataclass

from amaranth.utils import ceil_log2

from golden.spec.parameters import integer
from golden.spec.vector_operations import FUNCTION_OPS, LANE_OPS, VectorOp, names_of
from golden.spec.vector_unit import MAX_BANK_DEPTH
from hw.arith.elementwise import ElementwiseLane
from hw.units.vector_unit.arithmetic import OperationParameters
from hw.units.vector_unit.functions import FunctionLane
from hw.units.vector_unit.values import ValueLane

__all__ = ["VectorEngineParameters"]


@dataclass(frozen=True, kw_only=True)
class VectorEngineParameters(OperationParameters):
    bank_depth: int = integer(64, low=1, high=MAX_BANK_DEPTH, doc="rows of the bank, n_lanes words each")
    value_stage: int | None = integer(
        None, low=1, high=64, doc="stage of the values; by default that at which they are there"
    )

    @property
    def address_width(self):
        return max(1, ceil_log2(self.bank_depth))

    @property
    def engine_total_width(self):
        """Bits of the sum over the lanes."""
        return self.aligned_width + ceil_log2(self.n_lanes)

    @property
    def has_bank(self):
        return self.has(VectorOp.WRITE_BANK)

    @property
    def over_engines(self):
        """Whether there are totals of each lane over the engines."""
        return "lanes" in self.total_scopes

    @property
    def over_lanes(self):
        """Whether there are totals of the engine over its lanes."""
        return bool({"engine", "all"} & set(self.total_scopes))

    @property
    def lane_operations(self):
        return names_of(self.present(LANE_OPS))

    @property
    def functions(self):
        return names_of(self.present(FUNCTION_OPS))

    @property
    def value_lane(self):
        """The parameters of the lanes' values."""
        return {
            "format": self.format,
            "wide": self.has(VectorOp.TO_FP32),
            "element_stage": ElementwiseLane.latency if self.lane_operations else None,
            "function_stage": FunctionLane(format=self.format, functions=self.functions).latency
            if self.functions
            else None,
            "has_row": self.has(VectorOp.READ_BANK),
        }

    @property
    def earliest_value(self):
        """The stage at which the lanes' values are there."""
        return ValueLane(**self.value_lane).latency if self.gives_values else 0
