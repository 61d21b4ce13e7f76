"""ScaleSelector: precision and exponent of a vector from its largest magnitude."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from golden.spec.mixed_precision import MAX_SLICES
from golden.spec.quantizer_unit import TileParameters
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.quantizer_unit.layouts import EXPONENT, MAGNITUDE_WIDTH

__all__ = ["ScaleSelector"]


class ScaleSelector(Block):
    """The exponent of :func:`golden.units.quantizer_unit.quantise`, two advances after the magnitude.

    First the magnitude is normalised and compared with the three thresholds; then the largest exponent without clipping
    for its precision is limited to the exponents of the tile.
    """

    Parameters = TileParameters
    members_doc = {
        "advance": "lock-step enable",
        "largest": "largest magnitude of the vector, an FP16 word without its sign",
        "threshold": "largest magnitude with 2 bits, FP16",
        "finest_exponent": "the largest exponent",
        "full_precision": "8 bits for all vectors",
        "exponent": "of the scale",
        "level": "index of the exponent in the tile's, 0 the smallest",
    }
    latency = 2

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "largest": In(MAGNITUDE_WIDTH),
            "threshold": In(FP16.width),
            "finest_exponent": In(EXPONENT),
            "full_precision": In(1),
            "exponent": Out(EXPONENT),
            "level": Out(p.level_width),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        fraction, field = self.largest[: FP16.fraction_width], self.largest[FP16.fraction_width :]
        m.submodules.zeros = zeros = LeadingZeroCounter(width=FP16.fraction_width)
        m.submodules.normalise = shifter = LogShifter(
            width=FP16.fraction_width, amount_width=len(zeros.count), direction="left"
        )
        m.d.comb += [zeros.value.eq(fraction), shifter.value.eq(fraction), shifter.amount.eq(zeros.count)]
        is_normal = field != 0
        # Below the leading one; of a subnormal number that is the normalised fraction without its top bit.
        below = Mux(is_normal, fraction, Cat(Const(0, 1), shifter.shifted[:-1]))
        leading = Signal(EXPONENT)
        m.d.comb += leading.eq(Mux(is_normal, field - FP16.bias, -zeros.count - FP16.bias))
        below = pipe.register(below, name="below")
        leading = pipe.register(leading, name="leading")
        above = pipe.register(Cat(self._above(index) for index in range(MAX_SLICES - 1)), name="above")

        precision = Signal(range(MAX_SLICES))
        m.d.comb += precision.eq(Mux(above[2], 3, Mux(above[1], 2, above[0])))
        exponent = Signal(signed(8))
        lowest = Signal(EXPONENT)
        # The middle above the ceiling: 1 and ones, as many as the precision has below its leading one and one more.
        middle = [below[-(2 * index + 1) :].all() for index in range(MAX_SLICES)]
        with m.Switch(precision):
            for index in range(MAX_SLICES):
                with m.Case(index):
                    m.d.comb += exponent.eq(2 * index - leading - middle[index])
        m.d.comb += lowest.eq(self.finest_exponent - (self.n_levels - 1))
        limited = Signal(EXPONENT)
        level = Signal(self.parameters.level_width)
        is_fine, is_coarse = exponent > self.finest_exponent, exponent < lowest
        m.d.comb += [
            limited.eq(Mux(is_fine, self.finest_exponent, Mux(is_coarse, lowest, exponent))),
            level.eq(limited - lowest),
            self.exponent.eq(pipe.register(limited, name="exponent_register")),
            self.level.eq(pipe.register(level, name="level_register")),
        ]
        return m

    def _above(self, index):
        """Whether the largest magnitude is more than ``4**index`` times the threshold."""
        word = self.threshold[:MAGNITUDE_WIDTH]
        bound = word + (2 * index << FP16.fraction_width)
        return self.full_precision | (self.largest > bound)
