"""DifferenceLane: an activation less its reference, as an FP16 word that is rounded to odd."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from golden.spec.mixed_precision import REFERENCE_GUARD, REFERENCE_WIDTH
from golden.spec.parameters import Parameters, integer
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline
from hw.units.mixed_precision_core.layouts import EXPONENT

__all__ = ["DifferenceLane"]

UNITS_WIDTH = REFERENCE_WIDTH - 1 + REFERENCE_GUARD
"""Bits of the magnitude of an activation in fixed point."""


@dataclass(frozen=True, kw_only=True)
class DifferenceLaneParameters(Parameters):
    n_levels: int = integer(3, low=1, high=8, doc="number of different exponents in a tile")


class DifferenceLane(Block):
    """``x - reference / 2**finest_exponent``, see :func:`golden.units.differences.difference`.

    The activation is shifted to fixed point with two bits below the finest scale, the last one sticky, and limited; the
    reference is subtracted, and the difference normalised. Rounding to odd needs no adder. Timing: two advances; the
    result is not registered.
    """

    Parameters = DifferenceLaneParameters
    members_doc = {
        "advance": "lock-step enable",
        "word": "activation, FP16",
        "reference": "16-bit integer, in units of the finest scale",
        "finest_exponent": "of the finest scale, constant",
        "difference": "FP16; infinite if the activation is no finite number",
    }
    latency = 2

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "word": In(float_layout(FP16)),
            "reference": In(signed(REFERENCE_WIDTH)),
            "finest_exponent": In(EXPONENT),
            "difference": Out(FP16.width),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        units = pipe.register(self._units(m), name="units")
        sign = pipe.register(self.word.sign, name="sign")
        special = pipe.register(self.word.exponent.all(), name="special")
        reference = pipe.register(self.reference, name="reference_register")

        exact = Signal(signed(UNITS_WIDTH + 2))
        scaled = reference << REFERENCE_GUARD
        m.d.comb += exact.eq(Mux(sign, -units, units) - scaled)
        negative = exact[-1]
        magnitude = Signal(UNITS_WIDTH + 1)
        m.d.comb += magnitude.eq(Mux(negative, -exact, exact))
        self._pack(
            m,
            pipe.register(magnitude, name="magnitude"),
            pipe.register(negative, name="negative"),
            pipe.register(special, name="special_2"),
        )
        return m

    def _units(self, m):
        """The magnitude of the activation in units of a quarter of the finest scale, rounded to odd and limited."""
        word, width = self.word, UNITS_WIDTH
        hidden = word.exponent.any()
        significand = Cat(word.fraction, hidden)
        # With the significand in the highest bits, the right shift that gives units; negative for numbers beyond.
        right = Signal(signed(8))
        above = FP16.bias + REFERENCE_WIDTH - 2
        m.d.comb += right.eq(above - Cat(word.exponent[0] | ~hidden, word.exponent[1:]) - self.finest_exponent)
        m.submodules.to_units = shifter = LogShifter(width=width, amount_width=5, sticky=True)
        m.d.comb += [shifter.value.eq(Cat(Const(0, width - FP16.precision), significand)), shifter.amount.eq(right[:5])]
        below = self.n_levels + REFERENCE_GUARD
        is_far = right[5] & ~right[-1]
        is_beyond = right[-1] | (~is_far & shifter.shifted[below:].all())
        units = Signal(width)
        limit = ((1 << width - below) - 1) << below
        odd = Cat(shifter.shifted[0] | shifter.lost, shifter.shifted[1:])
        m.d.comb += units.eq(Mux(is_beyond, limit, Mux(is_far, significand.any(), odd)))
        return units

    def _pack(self, m, magnitude, negative, special):
        """Normalise, down to the smallest exponent; what does not fit is ORed into the last bit."""
        width = len(magnitude)
        m.submodules.zeros = zeros = LeadingZeroCounter(width=width)
        top = FP16.bias + REFERENCE_WIDTH - 1  # exponent field of the highest bit, plus the finest exponent
        most = Signal(EXPONENT)
        places = Signal(len(zeros.count))
        m.d.comb += [
            zeros.value.eq(magnitude),
            most.eq(top - 1 - self.finest_exponent),
            places.eq(Mux(zeros.count > most, most, zeros.count)),
        ]
        m.submodules.normalise = shifter = LogShifter(width=width, amount_width=len(places), direction="left")
        m.d.comb += [shifter.value.eq(magnitude), shifter.amount.eq(places)]
        field = Signal(signed(8))
        m.d.comb += field.eq(top - self.finest_exponent - places)
        low = width - FP16.precision
        hidden, fraction = shifter.shifted[-1], shifter.shifted[low:-1]
        is_large = hidden & (field >= FP16.max_exponent)
        word = Cat(
            fraction[0] | shifter.shifted[:low].any(),
            fraction[1:],
            field[: FP16.exponent_width] & hidden.replicate(FP16.exponent_width),
        )
        largest = Mux(special, FP16.infinity, FP16.infinity - 1)
        m.d.comb += self.difference.eq(Cat(Mux(special | is_large, largest, word), negative & ~special))
