"""One lane's deviation from the row's mean."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from golden.spec import layer_norm_unit as spec
from golden.spec.formats import FP16
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.multiplier import UnsignedMultiplier
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.layer_norm_unit.fixed import significand_of
from hw.units.layer_norm_unit.layouts import DEVIATION, FRAME_WIDTH, SCALE, RowParameters

__all__ = ["DeviationLane"]

_LEAST = 1 - max(SCALE)
"""Smallest difference of an element's exponent field and the row's scale."""


class DeviationLane(Block):
    """``element - mean`` times the number of elements, scaled by powers of two, as a floating-point number.

    Both terms are integers in the frame, modulo its size: only their difference has to fit. Bits below the frame are
    truncated; the significand is rounded down. Golden: step 2 of :func:`golden.units.layer_norm_unit.normalise`.
    """

    Parameters = RowParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "element": "FP16",
        "enable": "the element belongs to the row; if not, its deviation is 0",
        "count": "with the element: the row's number of elements",
        "scale": "with the element: of the row",
        "mean": "two advances after the element: of the row",
        "deviation": "`latency` advances after the element",
    }
    latency = 5

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "element": In(FP16.width),
            "enable": In(1),
            **{name: In(p.statistic.members[name]) for name in ("count", "scale", "mean")},
            "deviation": Out(DEVIATION),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        fraction = self.parameters.count_fraction
        # Left shift of an element whose field equals the scale, and the largest right shift.
        unit = spec.FRAME_FRACTION - FP16.fraction_width - 3 + spec.COUNT_FRACTION - fraction
        dropped = -(_LEAST + unit)

        # 1. Times the number of elements as a significand.
        significand, field, sign = significand_of(m, self.element, "element")
        m.submodules.product = multiplier = UnsignedMultiplier(
            multiplicand_width=1 + fraction, multiplier_width=FP16.precision
        )
        amount = Signal(range(FP16.max_exponent - _LEAST))
        m.d.comb += [
            multiplier.multiplicand.eq(Cat(self.count, 1)),
            multiplier.multiplier.eq(significand),
            amount.eq(field - self.scale - _LEAST),
        ]
        product = pipe.register(multiplier.product, name="product_1")
        amount = pipe.register(amount, name="amount_1")
        sign = pipe.register(sign, name="sign_1")
        enable = pipe.register(self.enable, name="enable_3", stages=3)

        # 2 and 3. Shift into the frame; the mean minus this.
        m.submodules.frame = frame = LogShifter(width=FRAME_WIDTH + dropped, amount_width=len(amount), direction="left")
        term = Signal(FRAME_WIDTH)
        m.d.comb += [
            frame.value.eq(product),
            frame.amount.eq(amount),
            term.eq(frame.shifted[dropped:] ^ (~sign).replicate(FRAME_WIDTH)),
        ]
        term = pipe.register(term, name="term_2")
        positive = pipe.register(~sign, name="positive_2")
        negated = Signal(FRAME_WIDTH)
        m.d.comb += negated.eq(self.mean + term + positive)
        negated = pipe.register(negated, name="negated_3")

        # 4 and 5. Magnitude (minus 1 unit of the frame if positive), normalisation.
        magnitude = Signal(spec.FRAME_FRACTION)
        below = negated[-1]
        m.d.comb += magnitude.eq((negated[:-1] ^ below.replicate(len(magnitude))) & enable.replicate(len(magnitude)))
        m.submodules.zeros = zeros = LeadingZeroCounter(width=spec.FRAME_FRACTION)
        m.d.comb += zeros.value.eq(magnitude)
        magnitude = pipe.register(magnitude, name="magnitude_4")
        places = pipe.register(zeros.count, name="places_4")
        m.submodules.normalise = normalise = LogShifter(
            width=spec.FRAME_FRACTION, amount_width=len(places), direction="left"
        )
        m.d.comb += [
            normalise.value.eq(magnitude),
            normalise.amount.eq(places),
            self.deviation.significand.eq(
                pipe.register(normalise.shifted[-spec.DEVIATION_WIDTH :], name="significand_5")
            ),
            self.deviation.places.eq(pipe.register(places, name="places_5")),
            self.deviation.negative.eq(pipe.register(~below, name="negative_5", stages=2)),
        ]
        return m
