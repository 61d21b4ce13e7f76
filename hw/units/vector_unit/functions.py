"""The functions of one operand: a unit for each, merged into one result."""

from dataclasses import dataclass

from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from golden.spec.formats import OPERAND_FORMATS, float_format
from golden.spec.parameters import Parameters, choice, subset
from golden.spec.vector_operations import FUNCTION_OPS, VectorOp, names_of
from hw.arith.exponential import Exponential
from hw.arith.gelu import Gelu
from hw.arith.reciprocal import Reciprocal
from hw.arith.reciprocal_root import ReciprocalRoot
from hw.arith.silu import Silu
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.vector_unit.merge import merge

__all__ = ["FUNCTION_UNITS", "FunctionLane"]

FUNCTION_UNITS = {
    VectorOp.EXP: Exponential,
    VectorOp.RECIPROCAL: Reciprocal,
    VectorOp.RSQRT: ReciprocalRoot,
    VectorOp.GELU: Gelu,
    VectorOp.SILU: Silu,
}

_NAMES = names_of(FUNCTION_OPS)


@dataclass(frozen=True, kw_only=True)
class FunctionLaneParameters(Parameters):
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, doc="format of argument and result")
    functions: tuple[str, ...] = subset(_NAMES, *_NAMES, doc="the functions that exist")

    @property
    def float_format(self):
        return float_format(self.format)

    @property
    def units(self):
        """``{name: class}`` of the functions that exist."""
        return {name: FUNCTION_UNITS[VectorOp[name.upper()]] for name in self.functions}


class FunctionLane(Block):
    """``y`` is the function of ``x`` that is taken, all of them with the same latency; 0 if none is.

    Each function is taken with one bit, at the stage at which its unit delivers.
    """

    Parameters = FunctionLaneParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "x": "stage 0: argument",
        **{f"take_{name}": "when the unit of this function delivers: take it" for name in _NAMES},
        "y": "stage `latency`: the result, combinational after the last registers",
    }

    @staticmethod
    def members(p):
        width = p.float_format.width
        takes = {f"take_{name}": In(1) for name in p.functions}
        return {"advance": In(1), "x": In(width), **takes, "y": Out(width)}

    def prepare(self):
        self.children = {name: unit(format=self.format) for name, unit in self.parameters.units.items()}

    @property
    def latency(self):
        return max(child.latency for child in self.children.values())

    def circuit(self):
        m = Module()
        entries = []
        for name, child in self.children.items():
            m.submodules[name] = child
            m.d.comb += [child.advance.eq(self.advance), child.x.eq(self.x)]
            entries.append((child.latency, child.y, getattr(self, f"take_{name}")))
        m.d.comb += self.y.eq(merge(m, Pipeline(m, advance=self.advance), entries, self.latency, len(self.y)))
        return m
