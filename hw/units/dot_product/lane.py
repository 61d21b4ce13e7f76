"""One lane of the floating-point dot product: an exact product, its exponent, and its place in the window."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.multiplier import UnsignedMultiplier
from hw.arith.shifter import LogShifter
from hw.block import Block
from hw.formats import float_format
from hw.params import Parameters, choice, integer
from hw.pipeline import Pipeline

__all__ = ["Window", "LaneDecoder", "LaneAligner", "DotProductLane"]


@dataclass(frozen=True)
class Window:
    """The numbers that follow from a format and the width W of the alignment window.

    Exponents of products and references (the exponents to which a beat or the accumulator is aligned) are counted
    from the `floor`, the lowest reference: a beat that is aligned to it keeps every bit of every product.
    """

    format: str
    align_width: int

    @property
    def float_format(self):
        return float_format(self.format)

    @property
    def width(self):
        """Bits of an aligned magnitude."""
        return self.align_width - 1

    @property
    def product_width(self):
        return 2 * self.float_format.precision

    @property
    def spare(self):
        """Bits of the window below a product at the reference."""
        return self.width - self.product_width

    @property
    def floor(self):
        """The lowest reference, as the sum of two exponent fields."""
        return 2 + self.spare

    @property
    def unit_exponent(self):
        """The lowest bit of the window counts 2 to the power of this at the floor: the smallest product there is."""
        fmt = self.float_format
        return 2 * (1 - fmt.bias - fmt.fraction_width)

    @property
    def reference_width(self):
        return bits_for(2 * self.float_format.max_exponent - self.floor)

    @property
    def exponent_shape(self):
        """Of a product's exponent, counted from the floor like a reference; below it for small products."""
        lowest = 2 - self.float_format.fraction_width - self.floor
        return signed(1 + max(self.reference_width, bits_for(-lowest - 1)))


@dataclass(frozen=True, kw_only=True)
class LaneParameters(Parameters):
    format: str = choice("fp16", "fp16", "bf16", doc="format of the factors")
    align_width: int = integer(27, low=17, high=40, doc="W")


class LaneDecoder(Block):
    """Significands, exponent and specials of one product. Combinational.

    Where one factor is subnormal it is normalised, so that the exponent tells the size of every product that counts:
    a product of two subnormals is below the floor in any case. Factors may come out exchanged.
    """

    Parameters = LaneParameters
    members_doc = {
        "query_word": "one factor",
        "key_word": "the other factor",
        "larger": "significand of a factor, the normal one if only one is",
        "smaller": "significand of the other factor",
        "sign": "of the product",
        "exponent": "of the product; negative for a zero product",
        "is_nan": "the product is not a number",
        "is_inf": "a factor is infinite",
    }

    def __init__(self, **parameters):
        def members(p):
            self.window = Window(p.format, p.align_width)
            fmt = self.window.float_format
            return {
                "query_word": In(fmt.layout),
                "key_word": In(fmt.layout),
                "larger": Out(fmt.precision),
                "smaller": Out(fmt.precision),
                "sign": Out(1),
                "exponent": Out(self.window.exponent_shape),
                "is_nan": Out(1),
                "is_inf": Out(1),
            }

        super().__init__(parameters, members)

    def circuit(self):
        m = Module()
        fmt, query, key = self.window.float_format, self.query_word, self.key_word
        query_normal = Signal()
        key_normal = Signal()
        m.d.comb += [query_normal.eq(query.exponent.any()), key_normal.eq(key.exponent.any())]
        m.d.comb += self.sign.eq(query.sign ^ key.sign)

        # If exactly one factor is normal, it is the larger one.
        swap = ~query_normal
        larger = Signal(fmt.layout)
        smaller = Signal(fmt.layout)
        m.d.comb += [larger.eq(Mux(swap, key, query)), smaller.eq(Mux(swap, query, key))]
        larger_normal = Signal()
        smaller_normal = Signal()
        m.d.comb += [larger_normal.eq(query_normal | key_normal), smaller_normal.eq(query_normal & key_normal)]
        m.d.comb += self.larger.eq(Cat(larger.fraction, larger_normal))

        significand = Signal(fmt.precision)
        m.d.comb += significand.eq(Cat(smaller.fraction, smaller_normal))
        m.submodules.zeros = zeros = LeadingZeroCounter(width=fmt.precision)
        m.submodules.normaliser = normaliser = LogShifter(
            width=fmt.precision, amount_width=len(zeros.count), direction="left", small_steps_first=False
        )
        m.d.comb += [
            zeros.value.eq(significand),
            normaliser.value.eq(significand),
            normaliser.amount.eq(zeros.count),
            self.smaller.eq(normaliser.shifted),
        ]

        # Subnormals have the exponent of the field 1.
        larger_exponent = Cat(larger.exponent[0] | ~larger_normal, larger.exponent[1:])
        smaller_exponent = Signal(signed(fmt.exponent_width + 1))
        m.d.comb += smaller_exponent.eq(Mux(smaller_normal, smaller.exponent, 1 - zeros.count))
        exponent = Signal.like(self.exponent)
        m.d.comb += exponent.eq(larger_exponent + smaller_exponent - self.window.floor)
        zero = Signal()
        m.d.comb += zero.eq(significand == 0)
        m.d.comb += self.exponent.eq(Cat(exponent[:-1], exponent[-1] | zero))

        query_special, key_special = query.exponent.all(), key.exponent.all()
        m.d.comb += self.is_inf.eq(query_special | key_special)
        m.d.comb += self.is_nan.eq(
            (query_special & query.fraction.any()) | (key_special & key.fraction.any()) | (self.is_inf & zero)
        )
        return m


class LaneAligner(Block):
    """The magnitude of a product at its place in the window, truncated; its bits inverted for a negative product.

    Combinational.
    """

    Parameters = LaneParameters
    members_doc = {
        "product": "of the significands",
        "sign": "of the product",
        "exponent": "of the product; any for a zero product",
        "reference": "the beat's, at least the exponent",
        "row": "the addend",
    }

    def __init__(self, **parameters):
        def members(p):
            self.window = Window(p.format, p.align_width)
            return {
                "product": In(self.window.product_width),
                "sign": In(1),
                "exponent": In(self.window.exponent_shape),
                "reference": In(self.window.reference_width),
                "row": Out(self.window.width),
            }

        super().__init__(parameters, members)

    def circuit(self):
        m = Module()
        width = self.window.width
        distance = Signal(len(self.exponent))
        m.d.comb += distance.eq(self.reference - self.exponent)
        # Amounts too large for the shifter become large enough to leave nothing, by setting their upper bits.
        amount_width = bits_for(width)
        kept = ((1 << amount_width) - width).bit_length() - 1
        far = distance[amount_width:].any()
        amount = Cat(distance[:kept], distance[kept:amount_width] | far.replicate(amount_width - kept))
        m.submodules.shifter = shifter = LogShifter(width=width, amount_width=amount_width)
        m.d.comb += [
            shifter.value.eq(Cat(Const(0, self.window.spare), self.product)),
            shifter.amount.eq(amount),
            self.row.eq(shifter.shifted ^ self.sign.replicate(width)),
        ]
        return m


@dataclass(frozen=True, kw_only=True)
class DotProductLaneParameters(LaneParameters):
    search_stages: int = integer(1, low=1, high=16, doc="clocks from a product's exponent to the beat's reference")


class DotProductLane(Block):
    """One product: decoded and registered, multiplied while the beat's reference is searched, then aligned to it.

    Timing: specials at once, the exponent one advance after the words, negative and row 1 + search_stages after them,
    combinationally from the reference.
    """

    Parameters = DotProductLaneParameters
    members_doc = {
        "advance": "lock-step enable",
        "query_word": "one factor",
        "key_word": "the other factor",
        "specials": "whether the product is not a number, plus or minus infinity, from the lowest bit",
        "exponent": "of the product, counted from the floor",
        "reference": "the beat's",
        "negative": "sign of the product",
        "row": "aligned magnitude, inverted if negative",
    }

    def __init__(self, **parameters):
        def members(p):
            window = Window(p.format, p.align_width)
            return {
                "advance": In(1),
                "query_word": In(window.float_format.width),
                "key_word": In(window.float_format.width),
                "specials": Out(3),
                "exponent": Out(window.exponent_shape),
                "reference": In(window.reference_width),
                "negative": Out(1),
                "row": Out(window.width),
            }

        super().__init__(parameters, members)

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        sizes = {"format": self.format, "align_width": self.align_width}
        m.submodules.decoder = decoder = LaneDecoder(**sizes)
        m.submodules.multiplier = multiplier = UnsignedMultiplier(
            multiplicand_width=len(decoder.larger), multiplier_width=len(decoder.smaller)
        )
        m.submodules.aligner = aligner = LaneAligner(**sizes)
        exponent = pipe.register(decoder.exponent, name="exponent_1")
        m.d.comb += [
            decoder.query_word.eq(self.query_word),
            decoder.key_word.eq(self.key_word),
            self.specials.eq(Cat(
                decoder.is_nan, decoder.is_inf & ~decoder.sign, decoder.is_inf & decoder.sign
            )),
            self.exponent.eq(exponent),
            multiplier.multiplicand.eq(pipe.register(decoder.larger, name="larger", stages=self.search_stages)),
            multiplier.multiplier.eq(pipe.register(decoder.smaller, name="smaller", stages=self.search_stages)),
            self.negative.eq(pipe.register(decoder.sign, name="sign", stages=1 + self.search_stages)),
            aligner.product.eq(pipe.register(multiplier.product, name="product")),
            aligner.sign.eq(self.negative),
            aligner.exponent.eq(pipe.register(exponent, name="exponent_later", stages=self.search_stages)),
            aligner.reference.eq(self.reference),
            self.row.eq(aligner.row),
        ]
        return m
