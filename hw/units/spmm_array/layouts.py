"""Parameters and layouts that the parts of the SpMM array share."""

from dataclasses import dataclass

from amaranth.lib import data
from amaranth.utils import bits_for

from golden.spec import spmm_array as spec
from golden.spec import vector_unit
from golden.spec.parameters import flag, integer
from hw.units.vector_unit.arithmetic import SPECIALS, AccumulatorParameters

__all__ = [
    "FactorParameters",
    "SpmmArrayParameters",
    "SpmmEngineParameters",
    "SpmmLaneParameters",
    "factor_layout",
    "left_layout",
    "status_layout",
]


@dataclass(frozen=True, kw_only=True)
class FactorParameters(vector_unit.FactorParameters):
    @property
    def factor_exponent_width(self):
        """Bits of a factor's exponent code; that of 1 is ``bias + precision - 2`` and a special's the highest."""
        fmt = self.float_format
        return bits_for(fmt.max_exponent + self.precision - 2)


class SpmmLaneParameters(AccumulatorParameters, FactorParameters):
    """An accumulator that holds the terms of one pass."""


@dataclass(frozen=True, kw_only=True)
class SpmmLanesParameters(spec.SpmmLanesParameters):
    def lane(self):
        """The parameters of a lane's accumulator."""
        return {"format": self.format, "align_width": self.align_width, "max_terms": self.max_terms}

    @property
    def arithmetic(self):
        """Widths of a lane."""
        return SpmmLaneParameters(**self.lane())


@dataclass(frozen=True, kw_only=True)
class SpmmEngineParameters(SpmmLanesParameters):
    passes_queued: int = integer(7, low=1, high=256, doc="passes in the queues of sums")
    rows_queued: int = integer(9, low=3, high=256, doc="rows in the queue of bitmaps")
    reads_at_once: bool = flag(True, doc="whether exponents of two passes may be read in one clock")


@dataclass(frozen=True, kw_only=True)
class SpmmArrayParameters(spec.SpmmArrayParameters, SpmmLanesParameters):
    def engine(self):
        """The parameters of one engine."""
        lanes = {name: getattr(self, name) for name in spec.SpmmLanesParameters.__dataclass_fields__}
        queues = {"passes_queued": self.queue_depth, "rows_queued": self.bitmap_depth}
        return lanes | queues | {"reads_at_once": self.reduction_clocks == 1}


def factor_layout(p):
    """A word with a normalised significand."""
    return data.StructLayout(
        {"significand": p.precision, "exponent": p.factor_exponent_width, "sign": 1, "is_inf": 1, "is_nan": 1}
    )


def left_layout(p):
    """The left factor of a term, for all lanes of an engine; 0 where there is no term."""
    return data.StructLayout(
        {
            "once": p.precision,
            "triple": p.precision + 2,
            "exponent": p.factor_exponent_width,
            "sign": 1,
            "is_inf": 1,
            "is_nan": 1,
            "takes_part": 1,
        }
    )


def status_layout(p):
    """What is known of a lane's sum one clock before it: its exponent code, and the specials among its terms."""
    return data.StructLayout({"exponent": p.exponent_width, "specials": SPECIALS})
