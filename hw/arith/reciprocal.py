"""Reciprocal of a floating-point number, at most one unit in the last place from the exact value."""

from amaranth.hdl import Cat, Module, Mux, Signal

from golden.spec.formats import float_format
from hw.arith.float_function import FloatFunction
from hw.arith.linear_segments import LinearSegments
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline

__all__ = ["Reciprocal"]


class Reciprocal(FloatFunction):
    """``y = 1 / x`` for every x, subnormal arguments and results included; powers of two are exact.

    ``x = (1 + f) * 2**e`` gives ``2 / (1 + f)`` in (1, 2] by linear segments and the exponent ``-e - 1``. Only the two
    largest subnormal binades have finite reciprocals, and only the two largest binades have subnormal ones, so that
    both normalisations shift by at most two bits. The result is rounded half up by the segment's adder, at its final
    position. ±0 gives ±Inf, ±Inf gives ±0, NaN the canonical NaN.

    Latency 2, one result a clock; the input is not registered, the output is. Golden:
    ``golden.arith.functions.reciprocal``.
    """

    latency = 2

    def circuit(self):
        m = Module()
        fmt = float_format(self.format)
        pipe = Pipeline(m, advance=self.advance)
        m.submodules.lines = lines = LinearSegments(function="reciprocal", format=self.format, n_roundings=3)
        m.d.comb += lines.advance.eq(self.advance)

        # 1. Normalised fraction, table look-up; the exponent field of the result.
        x = float_layout(fmt)(self.x)
        one_place = fmt.max_exponent - 2  # the arguments' exponent field from which results are subnormal
        upper_half = x.fraction[-1]
        subnormal = Signal()
        m.d.comb += subnormal.eq(~x.exponent.any())
        shifted = Signal(fmt.fraction_width)
        m.d.comb += shifted.eq(Mux(upper_half, x.fraction[:-1].shift_left(1), x.fraction[:-2].shift_left(2)))
        m.d.comb += lines.argument.eq(Mux(subnormal, shifted, x.fraction))

        special = Signal()
        tiny = Signal()
        is_nan = Signal()
        power = Signal()
        places = Signal(3)  # right shift of the result, one-hot; none for zero, infinity and NaN
        m.d.comb += [
            special.eq(x.exponent == fmt.max_exponent),
            tiny.eq(subnormal & ~x.fraction[-2:].any()),
            is_nan.eq(special & x.fraction.any()),
            power.eq(~lines.argument.any()),
            places[1].eq(x.exponent == one_place),
            places[2].eq(x.exponent == one_place + 1),
            places[0].eq(~(places[1:].any() | special | tiny)),
        ]
        base = Signal(fmt.exponent_width)
        carries = Signal(2)
        # A power of two has the reciprocal 2 / 1, which carries into the exponent.
        m.d.comb += carries.eq(Cat((subnormal & ~upper_half) ^ power, subnormal & ~upper_half & power))
        m.d.comb += base.eq(one_place - x.exponent)
        field = Signal(fmt.exponent_width)
        with m.If(is_nan | tiny):
            m.d.comb += field.eq(fmt.max_exponent)
        with m.Elif(special | places[2]):
            m.d.comb += field.eq(0)
        with m.Else():
            m.d.comb += field.eq(base + carries)

        sign = pipe.register(x.sign & ~is_nan, name="sign_1")
        field = pipe.register(field, name="field_1")
        places = pipe.register(places, name="places_1")
        is_nan = pipe.register(is_nan, name="is_nan_1")

        # 2. The line, rounded at the result's last place; then the shift.
        m.d.comb += lines.rounding.eq(places)
        value = Signal(fmt.fraction_width + 3)
        m.d.comb += value.eq(Cat(lines.excess[:-1], ~lines.excess[-1], lines.excess[-1]))
        fraction = Signal(fmt.fraction_width)
        moved = [
            value[place + 1 :][: fmt.fraction_width] & places[place].replicate(fmt.fraction_width) for place in range(3)
        ]
        m.d.comb += fraction.eq(moved[0] | moved[1] | moved[2] | is_nan.shift_left(fmt.fraction_width - 1))
        m.d.comb += self.y.eq(pipe.register(Cat(fraction, field, sign), name="y_2"))
        return m
