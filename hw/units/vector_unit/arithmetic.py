"""Widths and layouts of the accumulators and the reduction bus, defined by ``golden/arith/accumulator.py``."""

from dataclasses import dataclass

from amaranth.hdl import Mux
from amaranth.lib import data
from amaranth.utils import bits_for

from golden.spec import vector_unit as spec

SPECIALS = data.StructLayout({"nan": 1, "positive_infinity": 1, "negative_infinity": 1})
"""The specials among the terms of a sum; unions are bitwise ORs."""


@dataclass(frozen=True, kw_only=True)
class FactorParameters(spec.FactorParameters):
    @property
    def factor_exponent_width(self):
        return bits_for(self.one_exponent + self.float_format.bias)

    @property
    def one_exponent(self):
        """The exponent code of the factor 1; the code of the smallest subnormal is 0."""
        return self.float_format.bias + self.precision - 2

    @property
    def factor_layout(self):
        """A word with a normalised significand: zero, or with its top bit set; both are 0 in NaN and Inf."""
        return data.StructLayout(
            {
                "significand": self.precision,
                "exponent": self.factor_exponent_width,
                "sign": 1,
                "is_zero": 1,
                "is_inf": 1,
                "is_nan": 1,
            }
        )


@dataclass(frozen=True, kw_only=True)
class AccumulatorParameters(spec.AccumulatorParameters, FactorParameters):
    def accumulator(self):
        """The parameters of a lane's accumulator."""
        return {"format": self.format, "align_width": self.align_width, "max_terms": self.max_terms}

    @property
    def exponent_width(self):
        """Bits of a product's exponent code: 0 for a zero, else one more than the factors' sum."""
        return bits_for(2 * (self.one_exponent + self.float_format.bias) + 1)

    @property
    def product_width(self):
        return 2 * self.precision

    @property
    def last_bit_exponent(self):
        """Exponent code minus this is the weight of a bus number's last bit."""
        fmt = self.float_format
        product = 2 * fmt.bias + 4 * fmt.precision - 5
        return product + self.align_width - self.product_width + spec.GUARD_BITS


def amount_width(width, exponent_width):
    """Bits of a shift amount that is clamped where a ``width``-bit number is shifted out entirely."""
    return min(bits_for(width), exponent_width)


def clamp(amount, width):
    """The low ``width`` bits of an unsigned amount, all ones where it does not fit."""
    return Mux(amount[width:].any(), (1 << width) - 1, amount[:width])
