"""Values of one lane: element-wise result, function or bank word, merged into one pipeline."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP32, OPERAND_FORMATS, float_format
from golden.spec.parameters import Parameters, choice, flag, integer
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.vector_unit.merge import merge

__all__ = ["ValueLane", "expand", "narrow_width"]


def narrow_width(fmt, wide):
    """Bits that a result needs: a word of the format or, with ``wide``, the top bits of an FP32 word that was one."""
    return max(fmt.width, FP32.width - FP32.fraction_width + fmt.fraction_width) if wide else fmt.width


def expand(fmt, value, is_single):
    """The 32 bits of a narrowed result: aligned to the top for FP32 words, to the bottom for others."""
    return Mux(is_single, value << (FP32.width - len(value)), value[: fmt.width])


@dataclass(frozen=True, kw_only=True)
class ValueLaneParameters(Parameters):
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, doc="format of the operands")
    wide: bool = flag(True, doc="whether the element-wise result may be an FP32 word that was one of the format")
    element_stage: int | None = integer(None, low=1, high=16, doc="stage of the element-wise result, if there is one")
    function_stage: int | None = integer(None, low=1, high=16, doc="stage of the function's result, if there is one")
    has_row: bool = flag(True, doc="whether a word of the bank may be the result")

    @property
    def float_format(self):
        return float_format(self.format)

    @property
    def latency(self):
        return max(self.element_stage or 1, self.function_stage or 1)


class ValueLane(Block):
    """The value of one lane, ``latency`` advances after its command, narrowed to :func:`narrow_width` bits.

    The engine selects the source of the value with one bit each, at the stage at which that source delivers. With no
    source selected the value is 0.
    """

    Parameters = ValueLaneParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "row": "stage 0: the word from the bank",
        "take_row": "stage 0: it is the result",
        "element": "element_stage: the element-wise result",
        "take_element": "element_stage: take it",
        "take_single": "element_stage: it is an FP32 word",
        "function": "function_stage: the function's result",
        "take_function": "function_stage: take it",
        "value": "the narrowed result",
    }

    @staticmethod
    def members(p):
        width = p.float_format.width
        members = {"advance": In(1), "value": Out(narrow_width(p.float_format, p.wide))}
        if p.has_row:
            members |= {"row": In(width), "take_row": In(1)}
        if p.element_stage:
            members |= {"element": In(FP32.width if p.wide else width), "take_element": In(1)}
            members |= {"take_single": In(1)} if p.wide else {}
        if p.function_stage:
            members |= {"function": In(width), "take_function": In(1)}
        return members

    @property
    def latency(self):
        return self.parameters.latency

    def circuit(self):
        m = Module()
        width, entries = len(self.value), []
        if self.has_row:
            entries.append((0, self.row, self.take_row))
        if self.element_stage:
            narrowed = Signal(width)
            above = FP32.width - width
            m.d.comb += narrowed.eq(
                Mux(self.take_single, self.element >> above, self.element) if self.wide else self.element
            )
            entries.append((self.element_stage, narrowed, self.take_element))
        if self.function_stage:
            entries.append((self.function_stage, self.function, self.take_function))
        pipe = Pipeline(m, advance=self.advance)
        m.d.comb += self.value.eq(merge(m, pipe, entries, self.latency, width))
        return m
