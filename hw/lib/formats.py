"""Words of number formats as Amaranth shapes."""

from amaranth.lib import data

__all__ = ["float_layout", "positive_layout"]


def float_layout(fmt):
    """The word of a :class:`golden.spec.formats.FloatFormat`, from its least significant bit."""
    return data.StructLayout({"fraction": fmt.fraction_width, "exponent": fmt.exponent_width, "sign": 1})


def positive_layout(fmt):
    """The word of a :class:`golden.spec.formats.PositiveFormat`."""
    return data.StructLayout({"fraction": fmt.fraction_width, "exponent": fmt.exponent_width})
