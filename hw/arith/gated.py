"""The shared circuit of GELU and SiLU."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.utils import ceil_log2

from golden.spec.formats import float_format
from golden.spec.functions import GELU_FRACTION, GELU_OCTAVES, GELU_TAIL_INDEX_WIDTH
from hw.arith.compressor import Heap
from hw.arith.float_function import FloatFunction
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.multiplier import add_unsigned_product
from hw.arith.shifter import LogShifter
from hw.arith.tables import look_up
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline

__all__ = ["GatedFunction"]


class GatedFunction(FloatFunction):
    """``y = x * gate(x)`` of GELU and SiLU, whose gates rise from 0 to 1 and are 1/2 at 0; see :class:`Gelu`.

    Latency 3, one result a clock; the input is not registered, the output is.
    """

    latency = 3
    even: tuple
    """Lines of the octaves below 2."""
    rest: tuple
    """Lines of the octaves from 2 on, in units of 2."""
    tail: tuple = ()
    """Constants of the octave after these."""

    def circuit(self):
        m = Module()
        fmt = float_format(self.format)
        pipe = Pipeline(m, advance=self.advance)

        # 1. The line, and the value that it is added to or subtracted from.
        x = float_layout(fmt)(self.x)
        is_nan = Signal()
        large = Signal()
        small = Signal()  # half of x is subnormal
        negative = Signal()
        m.d.comb += [
            is_nan.eq(x.exponent.all() & x.fraction.any()),
            large.eq(x.exponent[-1]),
            small.eq(~x.exponent[1:].any()),
            negative.eq(x.sign & ~is_nan),
        ]
        intercept, slope, offset = self._line(m, x, large, negative)
        significand = Signal(fmt.precision)
        base = Signal(GELU_FRACTION + 1)  # m, m / 2 or 0
        subtract = Signal()
        exponent = Signal(fmt.exponent_width)
        m.d.comb += [
            significand.eq(Mux(is_nan, 3 << (fmt.fraction_width - 1), Cat(x.fraction, x.exponent.any()))),
            base.eq(Mux(large, Mux(negative, 0, significand << 1), significand) << (GELU_FRACTION - fmt.precision)),
            subtract.eq(large ^ negative),
            exponent.eq(Mux(large & negative, fmt.bias + 1, x.exponent)),
        ]
        intercept = pipe.register(intercept, name="intercept_1")
        slope = pipe.register(slope, name="slope_1")
        offset = pipe.register(offset, name="offset_1")
        upper = pipe.register(
            base[GELU_FRACTION - fmt.precision :] ^ subtract.replicate(fmt.precision + 1), name="base_1"
        )
        subtract = pipe.register(subtract, name="subtract_1")
        exponent = pipe.register(exponent, name="exponent_1")
        small = pipe.register(small, name="small_1")
        sign = pipe.register(negative, name="sign_1")

        # 2. The line evaluated, and the subtraction.
        below = self.rest[0].slope_shift
        heap = Heap(m, "heap", GELU_FRACTION + 1 + below)
        heap.add(Cat(subtract.replicate(GELU_FRACTION - fmt.precision), upper), below)
        heap.add(intercept, below)
        add_unsigned_product(m, heap, slope, offset, "partial")
        total = Signal(GELU_FRACTION + 1)
        m.d.comb += total.eq(heap.total()[below:] ^ subtract.replicate(GELU_FRACTION + 1))
        total = pipe.register(total, name="total_2")
        exponent = pipe.register(exponent, name="exponent_2")
        small = pipe.register(small, name="small_2")
        sign = pipe.register(sign, name="sign_2")

        # 3. Normalisation, limited by the smallest exponent; rounding.
        m.submodules.zeros = zeros = LeadingZeroCounter(width=min(GELU_FRACTION + 1, fmt.bias))
        m.submodules.normalise = normalise = LogShifter(
            width=GELU_FRACTION + 1, amount_width=len(zeros.count), direction="left", small_steps_first=False
        )
        places = Signal(len(zeros.count))
        field = Signal(fmt.exponent_width)
        found = Signal()
        m.d.comb += [
            zeros.value.eq(total[-zeros.width :]),
            places.eq(zeros.count & ~small.replicate(len(places))),
            normalise.value.eq(total),
            normalise.amount.eq(places),
            found.eq(total[-zeros.width :].any()),
            # Without the hidden one, which adds 1.
            field.eq((exponent - 1 - places) & (found & ~small).replicate(len(field))),
        ]
        shifted = normalise.shifted[GELU_FRACTION - fmt.precision :]
        rounded = Signal(fmt.width - 1)
        m.d.comb += rounded.eq(Cat(Const(0, fmt.fraction_width), field) + shifted[1:] + shifted[0])
        m.d.comb += self.y.eq(pipe.register(Cat(rounded, sign), name="y_3"))
        return m

    def _line(self, m, x, large, negative):
        """Intercept, slope and offset, from the tables of the octaves below 2, from 2 on, and of constants above."""
        even, rest, n_rest = self.even, self.rest, len(self.rest)
        octave = x.exponent[: ceil_log2(GELU_OCTAVES)]  # all ones for arguments from 1 to 2
        is_even = Signal()
        is_rest = Signal()
        is_tail = Signal()
        m.d.comb += [
            is_even.eq(x.exponent[len(octave) :] == (1 << len(x.exponent) - len(octave) - 1) - 1),
            is_rest.eq(large & (x.exponent[:-1] < n_rest)),
            is_tail.eq(large & (x.exponent[:-1] == n_rest) if self.tail else 0),
        ]
        steps = [*self.tail, *[0] * ((1 << GELU_TAIL_INDEX_WIDTH) - len(self.tail))]
        even_index_width = max(table.index_width for table in even)
        words = {}
        even_index = Cat(x.fraction[-even_index_width:], octave)
        rest_octave = x.exponent[: ceil_log2(n_rest)]  # the octave from 2 to 4 is 0
        rest_index = Cat(x.fraction[-rest[0].index_width :], rest_octave)
        for name, chosen, index, values in (
            ("even_intercepts", is_even, even_index, _spread(even, "intercepts", even_index_width)),
            ("even_slopes", is_even, even_index, _spread(even, "slopes", even_index_width)),
            ("rest_intercepts", is_rest, rest_index, _filled(rest, "intercepts")),
            ("rest_slopes", is_rest, rest_index, _filled(rest, "slopes")),
            ("tail", is_tail, x.fraction[-GELU_TAIL_INDEX_WIDTH:], steps),
        ):
            word = look_up(m, name, index, values, max(values).bit_length())
            words[name] = word & chosen.replicate(len(word))
        # To the scale of positive arguments.
        places = Signal(len(rest_octave))
        m.d.comb += places.eq(rest_octave & (~negative).replicate(len(places)))
        for name in ("rest_intercepts", "rest_slopes") if n_rest > 1 else ():
            scaled = Signal(len(words[name]), name=f"{name}_scaled")
            m.d.comb += scaled.eq(words[name] >> places)
            words[name] = scaled
        intercept = words["even_intercepts"] | words["rest_intercepts"] | words["tail"]
        slope = words["even_slopes"] | words["rest_slopes"]

        # Shorter lines have shorter offsets; those that fall are counted down.
        width = max(table.offset_width for table in even)
        masks = [(1 << table.offset_width) - 1 for table in (*even[-2:], rest[0])]
        offset = Signal(width)
        m.d.comb += offset.eq(
            (x.fraction[:width] ^ large.replicate(width)) & Mux(large, masks[2], Mux(octave.all(), masks[1], masks[0]))
        )
        return intercept, slope, offset


def _spread(tables, role, index_width):
    """The entries of all octaves, repeated to be equally many of each, after zeros for the lowest octaves."""
    values = [
        value for table in tables for value in getattr(table, role) for _ in range(1 << index_width - table.index_width)
    ]
    return [0] * ((1 << ceil_log2(GELU_OCTAVES) + index_width) - len(values)) + values


def _filled(tables, role):
    """The entries of all octaves, and zeros up to a power of two."""
    values = [value for table in tables for value in getattr(table, role)]
    return values + [0] * ((1 << ceil_log2(len(values))) - len(values))
