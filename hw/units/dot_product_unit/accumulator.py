"""The accumulator of the floating-point dot product: sums of beats under a monotonically growing alignment exponent."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from golden.spec.parameters import Parameters, integer
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline

__all__ = ["AlignedAccumulator"]


@dataclass(frozen=True, kw_only=True)
class AlignedAccumulatorParameters(Parameters):
    reference_width: int = integer(4, low=1, high=16, doc="bits of an alignment exponent")
    unit_log2: int = integer(2, low=0, high=4, doc="log2 of the shift of the sum for an increment of the exponent")
    width: int = integer(41, low=2, high=96, doc="bits of the accumulator")
    lead: int = integer(1, low=1, high=16, doc="clocks from a beat's alignment exponent to its sum")


class AlignedAccumulator(Block):
    """``sum <- (sum >> step * 2**unit_log2) + addend``, step = increase of the alignment exponent since the last beat.

    The shift truncates towards minus infinity, and the sum wraps. The step is computed ahead of the addend. The
    addition is outside, where the addend may be in carry-save form.

    Timing: ``reference``, ``valid`` and ``begins`` come ``lead`` advances before ``shifted`` and ``total``; ``sum``
    and ``sum_reference`` hold a beat one advance after its ``total``.
    """

    Parameters = AlignedAccumulatorParameters
    members_doc = {
        "advance": "lock-step enable",
        "valid": "whether there is a beat",
        "begins": "the beat starts a new sum",
        "reference": "exponent to which the beat is aligned, at least that of the beat before, unless it begins",
        "shifted": "the sum of the beats before, aligned to the reference of `lead` advances ago",
        "total": "the same with this beat's addends",
        "sum": "accumulated",
        "sum_reference": "exponent to which the sum is aligned",
    }

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "valid": In(1),
            "begins": In(1),
            "reference": In(p.reference_width),
            "shifted": Out(p.width),
            "total": In(p.width),
            "sum": Out(signed(p.width)),
            "sum_reference": Out(p.reference_width),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        previous = Signal(self.reference_width, reset_less=True)
        with m.If(self.advance & self.valid):
            m.d.sync += previous.eq(self.reference)
        # At the beginning of a sum the old one is shifted out entirely, with zeros shifted in.
        growth = Signal(self.reference_width)
        step = Signal(bits_for((self.width - 1 >> self.unit_log2) + 1))
        m.d.comb += [
            growth.eq(self.reference - previous),
            step.eq(growth | (growth[len(step) :].any() | self.begins).replicate(len(step))),
        ]
        step = pipe.register(step, name="step_later", stages=self.lead)
        m.d.comb += self.sum_reference.eq(pipe.register(self.reference, name="follows", stages=self.lead + 1))

        valid, begins = self.valid, self.begins
        for stage in range(self.lead):
            valid = pipe.control(valid, name=f"valid_{stage}")
            begins = pipe.register(begins, name=f"begins_{stage}")
        total = Signal(self.width, name="accumulator", reset_less=True)
        m.submodules.shifter = shifter = LogShifter(
            width=self.width + 1, amount_width=len(step) + self.unit_log2, arithmetic=True
        )
        m.d.comb += [
            shifter.value.eq(Cat(total, total[-1] & ~begins)),
            shifter.amount.eq(step << self.unit_log2),
            self.shifted.eq(shifter.shifted),
        ]
        with m.If(self.advance & valid):
            m.d.sync += total.eq(self.total)
        m.d.comb += self.sum.eq(total)
        return m
