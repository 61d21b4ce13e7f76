"""Base of the functions of one floating-point number."""

from dataclasses import dataclass

from amaranth.lib.wiring import In, Out

from golden.spec.formats import OPERAND_FORMATS, float_format
from golden.spec.parameters import Parameters, choice
from hw.lib.block import Block

__all__ = ["FloatFunction"]


@dataclass(frozen=True, kw_only=True)
class FloatFunctionParameters(Parameters):
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, doc="format of argument and result")


class FloatFunction(Block):
    """``y`` is a function of ``x``, one result a clock; the input is not registered, the output is."""

    Parameters = FloatFunctionParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "x": "argument",
        "y": "the function of it, `latency` advances later",
    }

    @staticmethod
    def members(p):
        width = float_format(p.format).width
        return {"advance": In(1), "x": In(width), "y": Out(width)}
