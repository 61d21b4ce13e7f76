"""Reciprocal square root of a floating-point number, at most one unit in the last place from the exact value."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed

from golden.spec.formats import float_format
from hw.arith.float_function import FloatFunction
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.linear_segments import LinearSegments
from hw.arith.shifter import LogShifter
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline

__all__ = ["ReciprocalRoot"]


class ReciprocalRoot(FloatFunction):
    """``y = 1 / sqrt(x)`` for every x, subnormal arguments included; powers of four are exact.

    ``x = m * 4**h`` with m in [1, 4) gives ``2 / sqrt(m)`` in (1, 2] by linear segments, rounded half up, and the
    exponent ``-h - 1``. No result is subnormal. +Inf gives +0, ±0 gives ±Inf, other negative numbers and NaN give
    the canonical NaN.

    Latency 3, one result a clock; the input is not registered, the output is. Golden:
    ``golden.arith.functions.reciprocal_root``.
    """

    latency = 3

    def circuit(self):
        m = Module()
        fmt = float_format(self.format)
        pipe = Pipeline(m, advance=self.advance)

        # 1. Normalised significand and its exponent.
        x = float_layout(fmt)(self.x)
        subnormal = Signal()
        is_zero = Signal()
        special = Signal()
        m.d.comb += [
            subnormal.eq(~x.exponent.any()),
            is_zero.eq(subnormal & ~x.fraction.any()),
            special.eq(x.exponent.all()),
        ]
        m.submodules.zeros = zeros = LeadingZeroCounter(width=fmt.fraction_width)
        m.submodules.normalise = normalise = LogShifter(
            width=fmt.fraction_width, amount_width=len(zeros.count), direction="left", small_steps_first=False
        )
        m.d.comb += [zeros.value.eq(x.fraction), normalise.value.eq(x.fraction), normalise.amount.eq(zeros.count)]
        fraction = Signal(fmt.fraction_width)
        exponent = Signal(signed(fmt.exponent_width + 1))
        m.d.comb += [
            fraction.eq(Mux(subnormal, normalise.shifted.shift_left(1)[: fmt.fraction_width], x.fraction)),
            exponent.eq(Mux(subnormal, -zeros.count, x.exponent)),
        ]
        is_nan = Signal()
        m.d.comb += is_nan.eq((special & x.fraction.any()) | (x.sign & ~is_zero))
        # The bias is odd: even exponent fields are odd exponents, whose significands are in [2, 4).
        argument = pipe.register(Cat(fraction, ~exponent[0]), name="argument_1")
        half = pipe.register(exponent[1:].as_signed(), name="half_1")
        is_nan = pipe.register(is_nan, name="is_nan_1")
        is_zero = pipe.register(is_zero, name="is_zero_1")
        special = pipe.register(special, name="special_1")
        sign = pipe.register(x.sign, name="sign_1")

        # 2. The look-up; half the exponent, negated.
        m.submodules.lines = lines = LinearSegments(function="reciprocal_root", format=self.format)
        m.d.comb += [lines.advance.eq(self.advance), lines.argument.eq(argument), lines.rounding.eq(1)]
        below_two = Signal()
        m.d.comb += below_two.eq(~argument[-1] & argument.any())
        field = Signal(fmt.exponent_width)
        with m.If(is_nan | is_zero):
            m.d.comb += field.eq(fmt.max_exponent)
        with m.Elif(special):
            m.d.comb += field.eq(0)
        with m.Else():
            # A power of four has the root 2 / 1, which carries into the exponent.
            m.d.comb += field.eq(3 * (fmt.bias + 1) // 2 - 2 - half - below_two)
        field = pipe.register(field, name="field_2")
        cleared = pipe.register(is_nan | is_zero | special, name="cleared_2")
        is_nan = pipe.register(is_nan, name="is_nan_2")
        sign = pipe.register(sign & is_zero, name="sign_2")

        # 3. The line.
        fraction = Mux(cleared, is_nan.shift_left(fmt.fraction_width - 1), lines.excess[1:-1])
        m.d.comb += self.y.eq(pipe.register(Cat(fraction, field, sign), name="y_3"))
        return m
