"""Layouts between the stages of the fused multiply-add datapath."""

from dataclasses import dataclass

from amaranth.hdl import signed, unsigned
from amaranth.lib import data

from golden.spec.formats import OPERAND_FORMATS, float_format
from golden.spec.parameters import Parameters, choice, flag

__all__ = [
    "GROUP",
    "FusedParameters",
    "operand_layout",
    "exact_product_layout",
    "product_layout",
    "sum_layout",
    "control_fields",
    "window_width",
    "n_groups",
]

GROUP = 8
"""Bits of a group of the sum: the second stage normalises by groups, the third one within a group."""


@dataclass(frozen=True, kw_only=True)
class FusedParameters(Parameters):
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, doc="format of the operands")
    wide: bool = flag(False, doc="whether results may be FP32 words, and operands parts of them")
    clears_sign: bool = flag(False, doc="whether results may have their signs cleared")
    gives_product: bool = flag(
        False, doc="whether the exact product is an output, where the addend is a zero of its sign"
    )

    @property
    def options(self):
        """Names of the control inputs."""
        return ("widen",) * self.wide + ("absolute",) * self.clears_sign


def operand_layout(fmt):
    """A finite operand is ``(-1)**sign * (hidden, fraction) * 2**(exponent - bias - fraction_width)``.

    The exponent may leave the format's range on both sides; the largest field marks Inf and NaN, with ``hidden`` set.
    """
    return data.StructLayout(
        {"fraction": fmt.fraction_width, "hidden": 1, "exponent": signed(fmt.exponent_width + 2), "sign": 1}
    )


def exact_product_layout(fmt):
    """A product's significand of 2 * precision bits, its sign, and whether it is NaN or infinite."""
    return data.StructLayout({"magnitude": 2 * fmt.precision, "sign": 1, "is_nan": 1, "is_inf": 1})


def window_width(fmt):
    """Width of the window: the addend, two guard bits, the product, and two bits below it."""
    return 3 * fmt.precision + 4


def n_groups(fmt):
    """Groups of the window, the last one filled up."""
    return -(-window_width(fmt) // GROUP)


def control_fields(parameters):
    """Control bits: specials, and for wide results the requested form."""
    return {"is_nan": 1, "is_inf": 1} | ({"widen": 1} if parameters.wide else {})


def limit_shape(parameters):
    """Largest left shift of a sum, in bits; not negative if the operands' exponents are in the format's range."""
    fmt = float_format(parameters.format)
    return signed(fmt.exponent_width + 3) if parameters.wide else unsigned(fmt.exponent_width + 1)


def product_layout(parameters):
    """Between the first and the second stage."""
    fmt = float_format(parameters.format)
    return data.StructLayout(
        {
            "sum": window_width(fmt),
            "carry": 2 * fmt.precision,  # of weight 8 in the window
            "lost": 1,  # ones of the addend below the window
            "limit": limit_shape(parameters),
            "sign": 1,  # of the product, or of a special
            "subtract": 1,
            **control_fields(parameters),
            **({"absolute": 1} if parameters.clears_sign else {}),
        }
    )


def sum_layout(parameters):
    """Between the second and the third stage."""
    fmt = float_format(parameters.format)
    return data.StructLayout(
        {
            "significand": fmt.precision + GROUP,
            "lost": 1,
            "limit": limit_shape(parameters),
            "group": range(n_groups(fmt)),  # number of groups shifted out
            "limited": 1,  # whether the limit is within the first remaining group
            "sign": 1,
            **control_fields(parameters),
        }
    )
