"""Alignment of a two's complement number to a larger exponent."""

from dataclasses import dataclass

from amaranth.hdl import Module, Signal, signed
from amaranth.lib.wiring import In, Out

from golden.spec.parameters import Parameters, integer
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.units.vector_unit.arithmetic import amount_width, clamp

__all__ = ["BusAligner"]


@dataclass(frozen=True, kw_only=True)
class BusAlignerParameters(Parameters):
    width: int = integer(47, low=1, high=64, doc="bits of the number, in two's complement")
    exponent_width: int = integer(7, low=1, high=16, doc="bits of an exponent code")


class BusAligner(Block):
    """``aligned = floor(value / 2**(reference - exponent))``, reference >= exponent. Combinational."""

    Parameters = BusAlignerParameters
    members_doc = {
        "value": "in two's complement",
        "exponent": "its exponent code",
        "reference": "the exponent code to align to",
        "aligned": "the aligned number",
    }

    @staticmethod
    def members(p):
        return {
            "value": In(signed(p.width)),
            "exponent": In(p.exponent_width),
            "reference": In(p.exponent_width),
            "aligned": Out(signed(p.width)),
        }

    def circuit(self):
        m = Module()
        amount = amount_width(self.width, self.exponent_width)
        distance = Signal(self.exponent_width)
        m.submodules.shifter = shifter = LogShifter(width=self.width, amount_width=amount, arithmetic=True)
        m.d.comb += [
            distance.eq(self.reference - self.exponent),
            shifter.value.eq(self.value),
            shifter.amount.eq(clamp(distance, amount)),
            self.aligned.eq(shifter.shifted),
        ]
        return m
