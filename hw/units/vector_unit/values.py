"""Results of one lane: element-wise operation, function or bank word, merged into one pipeline."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP32, OPERAND_FORMATS, float_format
from golden.spec.parameters import Parameters, choice
from golden.spec.vector_operations import OPERATION_WIDTH, VectorOp
from hw.arith.elementwise import ElementwiseLane
from hw.arith.exponential import Exponential
from hw.arith.gelu import Gelu
from hw.arith.reciprocal import Reciprocal
from hw.arith.reciprocal_root import ReciprocalRoot
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline

__all__ = ["FUNCTIONS", "ValueLane", "narrow_width", "expand"]

FUNCTIONS = {
    VectorOp.EXP: ("exponential", Exponential),
    VectorOp.RECIPROCAL: ("reciprocal", Reciprocal),
    VectorOp.RSQRT: ("reciprocal_root", ReciprocalRoot),
    VectorOp.GELU: ("gelu", Gelu),
}
"""The unary operations with function units."""


def narrow_width(fmt):
    """Bits that a result needs: a word of the format, or the top bits of an FP32 word that came from one."""
    return max(fmt.width, FP32.width - FP32.fraction_width + fmt.fraction_width)


def expand(fmt, value, is_single):
    """The 32 bits of a narrowed result: aligned to the top for FP32 words, to the bottom for others."""
    width = narrow_width(fmt)
    return Mux(is_single, value << (FP32.width - width), value[: fmt.width])


@dataclass(frozen=True, kw_only=True)
class ValueLaneParameters(Parameters):
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, doc="format of the operands")

    @property
    def float_format(self):
        return float_format(self.format)


class ValueLane(Block):
    """The result of one lane, ``latency`` advances after its command, narrowed to :func:`narrow_width` bits.

    The engine selects the source of the command's result with one bit each, at the stage at which that source delivers.
    With no source selected the value is 0.
    """

    Parameters = ValueLaneParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "operation": "stage 0: a VectorOp",
        "a": "stage 0: first operand",
        "b": "stage 0: second operand",
        "c": "stage 0: third operand",
        "row": "stage 1: the word from the bank",
        "take_row": "stage 1: the word from the bank is the result",
        "take_elementwise": "when the element-wise lane delivers: take its result",
        "take_single": "at the same stage: it is an FP32 word",
        "take_exponential": "when the exponential delivers: take it",
        "take_reciprocal": "when the reciprocal delivers: take it",
        "take_reciprocal_root": "when the reciprocal square root delivers: take it",
        "take_gelu": "when GELU delivers: take it",
        "value": "the narrowed result",
    }

    sources = {"elementwise": ElementwiseLane, **dict(FUNCTIONS.values())}

    def members(self, p):
        width = p.float_format.width
        return {
            "advance": In(1),
            "operation": In(OPERATION_WIDTH),
            **{name: In(width) for name in ("a", "b", "c", "row")},
            **{f"take_{name}": In(1) for name in ("row", "single", *self.sources)},
            "value": Out(narrow_width(p.float_format)),
        }

    def prepare(self):
        self.children = {name: source(format=self.format) for name, source in self.sources.items()}

    @property
    def latency(self):
        return max(child.latency for child in self.children.values())

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        fmt = self.parameters.float_format
        width = narrow_width(fmt)
        lane, *functions = self.children.values()
        for name, child in self.children.items():
            m.submodules[name] = child
            m.d.comb += child.advance.eq(self.advance)
        narrowed = Signal(width)
        m.d.comb += [
            lane.operation.eq(self.operation),
            lane.a.eq(self.a),
            lane.b.eq(self.b),
            lane.c.eq(self.c),
            *(function.x.eq(self.a) for function in functions),
            narrowed.eq(Mux(self.take_single, lane.result >> (FP32.width - width), lane.result)),
        ]
        entries = [
            (1, self.row, self.take_row),
            (lane.latency, narrowed, self.take_elementwise),
            *(
                (child.latency, child.y, getattr(self, f"take_{name}"))
                for name, child in self.children.items()
                if child is not lane
            ),
        ]
        value = None
        for stage in range(1, self.latency + 1):
            parts = [] if value is None else [pipe.register(value, name=f"value_{stage}")]
            parts += [word & take.replicate(len(word)) for latency, word, take in entries if latency == stage]
            value = Signal(width, name=f"merged_{stage}")
            for part in parts[1:]:
                parts[0] = parts[0] | part
            m.d.comb += value.eq(parts[0])
        m.d.comb += self.value.eq(value)
        return m
