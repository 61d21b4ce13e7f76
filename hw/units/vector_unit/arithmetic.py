"""Widths and layouts of the accumulators and the reduction bus, defined by ``golden/arith/accumulator.py``."""

from dataclasses import dataclass

from amaranth.hdl import Mux
from amaranth.lib import data
from amaranth.utils import bits_for

from golden.spec import vector_unit as spec
from golden.spec.vector_operations import ADDING_OPS, VectorOp

__all__ = ["SPECIALS", "AccumulatorParameters", "OperationParameters", "amount_width", "clamp"]

SPECIALS = data.StructLayout({"nan": 1, "positive_infinity": 1, "negative_infinity": 1})
"""The specials among the terms of a sum; unions are bitwise ORs."""


@dataclass(frozen=True, kw_only=True)
class AccumulatorParameters(spec.AccumulatorParameters):
    def accumulator(self):
        """The parameters of a lane's accumulator."""
        return {"format": self.format, "align_width": self.align_width, "max_terms": self.max_terms}

    @property
    def code_offset(self):
        """The exponent code of a product that is not zero minus the sum of its factors' exponents."""
        return 2 * self.precision - 3

    @property
    def exponent_width(self):
        """Bits of a product's exponent code, 0 for a zero."""
        return bits_for(2 * self.float_format.max_exponent + self.code_offset)

    @property
    def product_width(self):
        return 2 * self.precision

    @property
    def last_bit_exponent(self):
        """Exponent code minus this is the weight of a bus number's last bit."""
        fmt = self.float_format
        product = 2 * fmt.bias + 4 * fmt.precision - 5
        return product + self.align_width - self.product_width + spec.GUARD_BITS


@dataclass(frozen=True, kw_only=True)
class OperationParameters(spec.OperationParameters, AccumulatorParameters):
    def operation_parameters(self):
        """The parameters that say what there is."""
        names = ("n_lanes", "operations", "scopes", "totals", "special_lanes", "stallable")
        return self.accumulator() | {name: getattr(self, name) for name in names}

    @property
    def has_sums(self):
        return self.has(*ADDING_OPS)

    @property
    def has_maximum(self):
        return self.has(VectorOp.MAXIMUM)


def amount_width(width, exponent_width):
    """Bits of a shift amount that is clamped where a ``width``-bit number is shifted out entirely."""
    return min(bits_for(width), exponent_width)


def clamp(amount, width):
    """The low ``width`` bits of an unsigned amount, all ones where it does not fit."""
    return Mux(amount[width:].any(), (1 << width) - 1, amount[:width])
