"""The accumulator of the floating-point dot product: block-aligned sums under a running reference exponent."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
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
    guard_bits: int = integer(4, low=0, high=16, doc="bits of the accumulator below a beat's sum")
    width: int = integer(47, low=2, high=96, doc="bits of the accumulator")
    lead: int = integer(2, low=2, high=16, doc="clocks by which a beat's reference comes before its sum")

    def check(self):
        if self.width < self.total_width + self.guard_bits:
            self.refuse("width", "at least total_width + guard_bits")


class AlignedAccumulator(Block):
    """``sum <- (sum >> d) + ((total << guard_bits) >> e)``, aligned to the largest reference so far.

    One of the two distances d and e is zero; shifts truncate towards minus infinity and the sum wraps. The distances
    are found ahead of the sum and the beat is shifted in a stage of its own, so that the loop is one shifter and one
    adder.

    Timing: ``reference``, ``valid`` and ``begins`` come ``lead`` advances before ``total``; ``sum`` and
    ``sum_reference`` hold a beat two advances after its ``total``, and keep it while no valid beat follows.
    """

    Parameters = AlignedAccumulatorParameters
    members_doc = {
        "advance": "lock-step enable",
        "valid": "whether there is a beat",
        "begins": "the beat starts a new sum",
        "reference": "exponent to which the beat is aligned",
        "total": "the beat's sum, of `lead` advances ago",
        "sum": "accumulated, with guard_bits below the beat's unit",
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

        # Next to the reference: the largest one so far.
        running = Signal(self.reference_width, reset_less=True)
        highest = Signal(self.reference_width)
        m.d.comb += highest.eq(Mux(self.begins | (self.reference > running), self.reference, running))
        with m.If(self.advance & self.valid):
            m.d.sync += running.eq(highest)
        own = pipe.register(self.reference, name="own")
        previous = pipe.register(running, name="previous")

        # One later: the distances, held until the total has come.
        wide = self.total_width + self.guard_bits
        beat_distance = self._distance(m, running - own, bits_for(wide), "beat_distance")
        sum_distance = self._distance(m, running - previous, bits_for(self.width), "sum_distance")
        beat_distance = pipe.register(beat_distance, name="beat_shift", stages=self.lead - 1)
        sum_distance = pipe.register(sum_distance, name="sum_shift", stages=self.lead)
        m.d.comb += self.sum_reference.eq(pipe.register(running, name="follows", stages=self.lead + 1))

        m.submodules.beat_shifter = beat_shifter = LogShifter(
            width=wide, amount_width=len(beat_distance), arithmetic=True
        )
        m.d.comb += beat_shifter.value.eq(Cat(Const(0, self.guard_bits), self.total))
        m.d.comb += beat_shifter.amount.eq(beat_distance)
        addend = pipe.register(beat_shifter.shifted.as_signed(), name="addend")

        valid, begins = self.valid, self.begins
        for stage in range(self.lead + 1):
            valid = pipe.control(valid, name=f"valid_{stage}")
            begins = pipe.register(begins, name=f"begins_{stage}")
        total = Signal(signed(self.width), name="accumulator", reset_less=True)
        m.submodules.sum_shifter = sum_shifter = LogShifter(
            width=self.width, amount_width=len(sum_distance), arithmetic=True
        )
        m.d.comb += sum_shifter.value.eq(Mux(begins, 0, total))
        m.d.comb += sum_shifter.amount.eq(sum_distance)
        with m.If(self.advance & valid):
            m.d.sync += total.eq(sum_shifter.shifted.as_signed() + addend)
        m.d.comb += self.sum.eq(total)
        return m

    def _distance(self, m, difference, width, name):
        """A distance that is never negative, saturated to all ones of ``width`` bits."""
        exact = Signal(self.reference_width, name=f"{name}_exact")
        limited = Signal(width, name=name)
        m.d.comb += exact.eq(difference)
        m.d.comb += limited.eq(exact | exact[width:].any().replicate(width))
        return limited
