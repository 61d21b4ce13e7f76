"""The accumulator of the floating-point dot product: sums of beats under a reference that only grows."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.arith.shifter import LogShifter
from hw.block import Block
from hw.params import Parameters, integer
from hw.pipeline import Pipeline

__all__ = ["AlignedAccumulator"]


@dataclass(frozen=True, kw_only=True)
class AlignedAccumulatorParameters(Parameters):
    reference_width: int = integer(6, low=1, high=16, doc="bits of a reference")
    total_width: int = integer(31, low=2, high=64, doc="bits of a beat's sum")
    width: int = integer(43, low=2, high=96, doc="bits of the accumulator")
    lead: int = integer(2, low=1, high=16, doc="clocks by which a beat's reference comes before its sum")

    def check(self):
        if self.width < self.total_width:
            self.refuse("width", "at least total_width")


class AlignedAccumulator(Block):
    """``sum <- (sum >> step) + total``, where step is what the reference has grown since the beat before.

    The shift truncates towards minus infinity, and the sum wraps. The step is found ahead of the total.

    Timing: ``reference``, ``valid`` and ``begins`` come ``lead`` advances before ``total``; ``sum`` and
    ``sum_reference`` hold a beat one advance after its ``total``, and keep it while no valid beat follows.
    """

    Parameters = AlignedAccumulatorParameters
    members_doc = {
        "advance": "lock-step enable",
        "valid": "whether there is a beat",
        "begins": "the beat starts a new sum",
        "reference": "exponent to which the beat is aligned, at least that of the beat before, unless it begins",
        "total": "the beat's sum, of `lead` advances ago",
        "sum": "accumulated",
        "sum_reference": "exponent to which the sum is aligned",
    }

    def __init__(self, **parameters):
        super().__init__(parameters, lambda p: {
            "advance": In(1),
            "valid": In(1),
            "begins": In(1),
            "reference": In(p.reference_width),
            "total": In(signed(p.total_width)),
            "sum": Out(signed(p.width)),
            "sum_reference": Out(p.reference_width),
        })

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        previous = Signal(self.reference_width, reset_less=True)
        with m.If(self.advance & self.valid):
            m.d.sync += previous.eq(self.reference)
        growth = Signal(self.reference_width)
        step = Signal(min(self.reference_width, bits_for(self.width - 1)))
        m.d.comb += [
            growth.eq(self.reference - previous),
            step.eq(growth | growth[len(step):].any().replicate(len(step))),
        ]
        step = pipe.register(step, name="step_later", stages=self.lead)
        m.d.comb += self.sum_reference.eq(pipe.register(self.reference, name="follows", stages=self.lead + 1))

        valid, begins = self.valid, self.begins
        for stage in range(self.lead):
            valid = pipe.control(valid, name=f"valid_{stage}")
            begins = pipe.register(begins, name=f"begins_{stage}")
        total = Signal(signed(self.width), name="accumulator", reset_less=True)
        m.submodules.shifter = shifter = LogShifter(width=self.width, amount_width=len(step), arithmetic=True)
        m.d.comb += [shifter.value.eq(Mux(begins, 0, total)), shifter.amount.eq(step)]
        with m.If(self.advance & valid):
            m.d.sync += total.eq(shifter.shifted.as_signed() + self.total)
        m.d.comb += self.sum.eq(total)
        return m
