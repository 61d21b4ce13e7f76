"""Exponential of a floating-point number, at most one unit in the last place from the exact value."""

from amaranth.hdl import Cat, Module, Signal

from golden.spec.formats import FORMATS, float_format
from golden.spec.functions import exponential_tables
from hw.arith.compressor import Heap
from hw.arith.float_function import FloatFunction
from hw.arith.linear_segments import LinearSegments
from hw.arith.shifter import LogShifter
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline

__all__ = ["Exponential"]


class Exponential(FloatFunction):
    """``y = e**x`` for every x, monotone, subnormal results rounded and not flushed.

    ``|x| * log2(e)`` is computed in fixed point from a few shifted significands, truncated. For negative x it is
    inverted bitwise, which is one last place too small; the segments are fitted to the mean of both errors. The integer
    part gives the exponent, the fraction f gives ``2**f`` by linear segments, shifted right for subnormal results and
    rounded half up. |x| of about half an ulp of 1 and less gives 1,
    -Inf gives 0, NaN the canonical NaN, too large x Inf.

    Latency 4, one result a clock; the input is not registered, the output is. Golden:
    ``golden.arith.functions.exponential``.
    """

    latency = 4

    def prepare(self):
        self.tables = exponential_tables(FORMATS[self.format])

    def circuit(self):
        m = Module()
        fmt, tables = float_format(self.format), self.tables
        pipe = Pipeline(m, advance=self.advance)

        # 1. The significand times log2(e). The shift distances are 0 to 15: smaller numbers count as 0.
        x = float_layout(fmt)(self.x)
        lowest = fmt.bias + tables.top_exponent - 15
        near = Signal()
        far = Signal()
        is_nan = Signal()
        distance = Signal(4)
        m.d.comb += [
            near.eq(x.exponent >= lowest),
            far.eq(x.exponent > lowest + 15),
            is_nan.eq(x.exponent.all() & x.fraction.any()),
            distance.eq(lowest + 15 - x.exponent[:4]),
        ]
        product = pipe.register(self._times_log2e(m, Cat(x.fraction, 1)), name="product_1")
        distance = pipe.register(distance, name="distance_1")
        near = pipe.register(near, name="near_1")
        far = pipe.register(far, name="far_1")
        is_nan = pipe.register(is_nan, name="is_nan_1")
        sign = pipe.register(x.sign, name="sign_1")

        # 2. Integer and fraction of the base-two exponent; table look-up with the fraction.
        fraction_width = tables.power.argument_width
        m.submodules.align = align = LogShifter(width=fraction_width + tables.top_exponent + 2, amount_width=4)
        fixed = Signal(len(align.shifted))
        m.d.comb += [
            align.value.eq(product.shift_left(len(fixed) - len(product))),
            align.amount.eq(distance),
            fixed.eq((align.shifted & near.replicate(len(fixed))) ^ sign.replicate(len(fixed))),
        ]
        m.submodules.lines = lines = LinearSegments(function="power_of_two", format=self.format)
        m.d.comb += [lines.advance.eq(self.advance), lines.argument.eq(fixed[:fraction_width]), lines.rounding.eq(0)]
        whole = Signal(len(fixed) - fraction_width)
        m.d.comb += whole.eq(fixed[fraction_width:])
        field, right = self._exponent(m, fmt, whole, sign, far, is_nan)
        field = pipe.register(field, name="field_2")
        right = pipe.register(right, name="right_2")
        is_nan = pipe.register(is_nan, name="is_nan_2")

        # 3. The line.
        power = pipe.register(lines.excess[:-1], name="power_3")
        field = pipe.register(field, name="field_3")
        right = pipe.register(right, name="right_3")
        is_nan = pipe.register(is_nan, name="is_nan_3")

        # 4. Right shift of subnormal results; rounding, which may carry into the exponent.
        m.submodules.denormalise = denormalise = LogShifter(width=fmt.fraction_width + 2, amount_width=4)
        m.d.comb += [denormalise.value.eq(Cat(power, 1)), denormalise.amount.eq(right)]
        rounded = Signal(fmt.width - 1)
        m.d.comb += rounded.eq(Cat(denormalise.shifted[1:-1], field) + denormalise.shifted[0])
        y = Cat(
            rounded[: fmt.fraction_width - 1],
            rounded[fmt.fraction_width - 1] | is_nan,
            rounded[fmt.fraction_width :],
            0,
        )
        m.d.comb += self.y.eq(pipe.register(y, name="y_4"))
        return m

    def _times_log2e(self, m, significand):
        """The significand times log2(e), in [0, 4), by the addends of the golden model."""
        fmt, tables = float_format(self.format), self.tables
        heap = Heap(m, "log2e", 2 + tables.product_fraction + tables.guard)
        heap.add_constant(tables.product_bias)
        for digit, shift in tables.addends(fmt.fraction_width):
            addend, left = significand[max(0, -shift) :], max(0, shift)
            if digit > 0:
                heap.add(addend, left)
            else:  # -a = ~a - (2**width - 1)
                inverted = Signal(len(addend), name=f"inverted_{left}")
                m.d.comb += inverted.eq(~addend)
                heap.add(inverted, left)
                heap.add_constant(-((1 << len(addend)) - 1) << left)
        return heap.total()[tables.guard :]

    def _exponent(self, m, fmt, whole, sign, far, is_nan):
        """The result's exponent field and the right shift of its significand.

        `whole` is the exponent's magnitude, inverted where it is negative. Infinity and NaN get the largest field;
        like zero they are shifted right until the fraction is 0.
        """
        field = Signal(fmt.exponent_width)
        right = Signal(4)
        magnitude = Signal(len(whole))
        least = fmt.bias - 1  # the magnitude of negative exponents from which results are subnormal
        subnormal = Signal()
        gone = Signal()
        overflow = Signal()
        m.d.comb += [
            magnitude.eq(whole ^ sign.replicate(len(whole))),
            subnormal.eq(magnitude >= least),
            gone.eq(far | (magnitude >= least + 15)),
            overflow.eq(~sign & (far | (magnitude > fmt.bias))),
        ]
        with m.If(overflow | is_nan):
            m.d.comb += [field.eq(fmt.max_exponent), right.eq(15)]
        with m.Elif(sign & gone):
            m.d.comb += [field.eq(0), right.eq(15)]
        with m.Elif(sign & subnormal):
            m.d.comb += [field.eq(0), right.eq(magnitude[:4] - (least - 1))]
        with m.Else():
            m.d.comb += [field.eq(whole + fmt.bias), right.eq(0)]
        return field, right
