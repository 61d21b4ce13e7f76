"""Floating point the slow way, on integers that hold every bit: circuits that are easy to see through."""

from amaranth.hdl import Cat, Const, Mux, Signal

__all__ = ["Number", "convert", "exact_integer", "multiply_add", "rounded"]


class Number:
    """A word taken apart: ``(-1)**sign * significand * 2**places`` units of the smallest subnormal."""

    def __init__(self, fmt, word):
        fraction, field = word[: fmt.fraction_width], word[fmt.fraction_width : -1]
        special = field == fmt.max_exponent
        self.sign = word[-1]
        self.is_nan = special & (fraction != 0)
        self.is_inf = special & (fraction == 0)
        self.is_zero = (field == 0) & (fraction == 0)
        self.significand = Cat(fraction, field != 0)
        self.places = Mux(field == 0, 0, field - 1)[: fmt.exponent_width]


def exact_integer(m, fmt, number, name):
    """The magnitude in units of the smallest subnormal, as one long integer."""
    integer = Signal(fmt.precision + fmt.max_exponent - 2, name=f"{name}_integer")
    m.d.comb += integer.eq(number.significand << number.places)
    return integer


def multiply_add(m, fmt, a, b, c, name="reference"):
    """``a * b + c`` of three words in long integers, rounded once; canonical NaN; an exact zero as IEEE 754 has it."""
    x, y, z = (Number(fmt, word) for word in (a, b, c))
    # The product counts in units of the smallest subnormal squared.
    below = fmt.bias + fmt.fraction_width - 1
    addend = exact_integer(m, fmt, z, f"{name}_c") << below
    product = Signal(2 * (fmt.precision + fmt.max_exponent - 2), name=f"{name}_product")
    m.d.comb += product.eq((x.significand * y.significand) << (x.places + y.places))
    sign = x.sign ^ y.sign
    width = max(len(product), len(addend)) + 2
    total = Signal(width, name=f"{name}_total")
    magnitude = Signal(width, name=f"{name}_magnitude")
    m.d.comb += [
        total.eq(Mux(sign, -product, product) + Mux(z.sign, -addend, addend)),
        magnitude.eq(Mux(total[-1], -total, total)),
    ]
    infinite = x.is_inf | y.is_inf
    is_nan = x.is_nan | y.is_nan | z.is_nan | (infinite & (x.is_zero | y.is_zero))
    is_nan = is_nan | (infinite & z.is_inf & (sign != z.sign))
    result_sign = Mux(infinite, sign, Mux(z.is_inf, z.sign, Mux(magnitude == 0, sign & z.sign, total[-1])))
    return _word(fmt, is_nan, infinite | z.is_inf, result_sign, rounded(m, fmt, magnitude, below, name))


def convert(m, source, target, word, name="reference"):
    """A word of one format as a word of another one, rounded once; canonical NaN."""
    number = Number(source, word)
    integer = exact_integer(m, source, number, name)
    below = source.bias + source.fraction_width - target.bias - target.fraction_width
    if below < 0:
        integer, below = integer << -below, 0
    return _word(target, number.is_nan, number.is_inf, number.sign, rounded(m, target, integer, below, name))


def _word(fmt, is_nan, is_inf, sign, magnitude):
    return Mux(is_nan, fmt.nan, Cat(Mux(is_inf, fmt.infinity, magnitude), sign))


def rounded(m, fmt, integer, below, name):
    """The word (without sign) nearest to ``integer * 2**-below`` units of the smallest subnormal, ties to even.

    Each exponent field has its own place to round; the field whose numbers enclose the integer is the right one.
    """
    word = Signal(fmt.width - 1, name=f"{name}_rounded")
    m.d.comb += word.eq(fmt.infinity)
    padded = Cat(integer, Const(0, max(0, below + fmt.max_exponent + fmt.precision - len(integer))))
    rest = Const(0, 1)  # whether there is a one below the half of the last place
    for field in range(1, fmt.max_exponent):
        last = below + field - 1  # the bit of the integer that is the last one of the word
        top = last + fmt.fraction_width
        kept, half = padded[last : top + 1], padded[last - 1] if last else Const(0, 1)
        passed = Signal(name=f"{name}_rest_{field}")
        more = padded[max(0, last - 2) : max(0, last - 1)] if field > 1 else padded[: max(0, last - 1)]
        m.d.comb += passed.eq(rest | more.any())
        rest = passed
        up = half & (rest | kept[0])
        encloses = padded[top + 1 :] == 0
        # The hidden one of normal numbers adds 1 to the field, and so may the rounding.
        with m.If(encloses & (padded[top] if field > 1 else 1)):
            m.d.comb += word.eq(kept + up + ((field - 1) << fmt.fraction_width))
    return word
