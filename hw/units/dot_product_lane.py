"""One lane of the floating-point dot product: exponents of a product, and the product's place in the window."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.shifter import LogShifter
from hw.block import Block
from hw.formats import float_format
from hw.params import Parameters, choice, integer

__all__ = ["Window", "LaneDecoder", "LaneAligner"]


@dataclass(frozen=True)
class Window:
    """The numbers that follow from a format and the width W of the alignment window.

    References (exponents to which a beat or the accumulator is aligned) are counted from the `floor`, the lowest one:
    a beat that is aligned to it keeps every bit of every product.
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
    def headroom(self):
        """How far a product with one subnormal factor may be above its place at the exponent fields' sum."""
        return self.float_format.fraction_width

    @property
    def unit_exponent(self):
        """The lowest bit of the window counts 2 to the power of this at the floor: the smallest product there is."""
        fmt = self.float_format
        return 2 * (1 - fmt.bias - fmt.fraction_width)

    @property
    def reference_width(self):
        return bits_for(2 * self.float_format.max_exponent - self.floor)

    @property
    def scale_shape(self):
        """Of the exponent fields' sum, less the floor and the headroom."""
        fmt = self.float_format
        lowest, highest = 2 - self.floor - self.headroom, 2 * fmt.max_exponent - self.floor - self.headroom
        return signed(1 + max(bits_for(highest), bits_for(-lowest - 1)))


@dataclass(frozen=True, kw_only=True)
class LaneParameters(Parameters):
    format: str = choice("fp16", "fp16", "bf16", doc="format of the factors")
    align_width: int = integer(27, low=17, high=40, doc="W")


class LaneDecoder(Block):
    """Significands, exponents and specials of one product. Combinational.

    The effective exponent is the one that the product of the normalised factors has: with one subnormal factor, the
    leading zeros of that factor count; a product of two subnormals is below the floor in any case, and a zero product
    counts as at the floor.
    """

    Parameters = LaneParameters
    members_doc = {
        "query_word": "one factor",
        "key_word": "the other factor",
        "query_significand": "with the hidden bit on top",
        "key_significand": "with the hidden bit on top",
        "sign": "of the product",
        "scale": "exponent fields' sum, less floor and headroom",
        "reference": "effective exponent above the floor, 0 below it",
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
                "query_significand": Out(fmt.precision),
                "key_significand": Out(fmt.precision),
                "sign": Out(1),
                "scale": Out(self.window.scale_shape),
                "reference": Out(self.window.reference_width),
                "is_nan": Out(1),
                "is_inf": Out(1),
            }

        super().__init__(parameters, members)

    def circuit(self):
        m = Module()
        fmt, window = self.window.float_format, self.window
        fields, normal, special, fractional = {}, {}, {}, {}
        for role in ("query", "key"):
            factor = getattr(self, f"{role}_word")
            normal[role] = Signal(name=f"{role}_normal")
            special[role] = Signal(name=f"{role}_special")
            fractional[role] = Signal(name=f"{role}_fractional")
            m.d.comb += [
                normal[role].eq(factor.exponent.any()),
                special[role].eq(factor.exponent.all()),
                fractional[role].eq(factor.fraction.any()),
                getattr(self, f"{role}_significand").eq(Cat(factor.fraction, normal[role])),
            ]
            # Subnormals have the exponent of the field 1.
            fields[role] = Cat(factor.exponent[0] | ~normal[role], factor.exponent[1:])
        m.d.comb += self.sign.eq(self.query_word.sign ^ self.key_word.sign)
        m.d.comb += self.scale.eq(fields["query"] + fields["key"] - (window.floor + window.headroom))

        mixed = Signal()
        small = Signal(fmt.fraction_width)
        m.d.comb += mixed.eq(normal["query"] ^ normal["key"])
        m.d.comb += small.eq(Mux(normal["query"], self.key_word.fraction, self.query_word.fraction))
        m.submodules.zeros = zeros = LeadingZeroCounter(width=fmt.fraction_width)
        m.d.comb += zeros.value.eq(small)
        zero = Signal()
        m.d.comb += zero.eq(mixed & (small == 0))

        rise = Signal(range(window.headroom + 1))
        effective = Signal(signed(len(self.scale) + 1))
        m.d.comb += rise.eq(Mux(mixed, window.headroom - 1 - zeros.count, window.headroom))
        m.d.comb += effective.eq(self.scale + rise)
        counts = ~(zero | effective[-1])
        m.d.comb += self.reference.eq(effective[:len(self.reference)] & counts.replicate(len(self.reference)))

        m.d.comb += self.is_inf.eq(special["query"] | special["key"])
        m.d.comb += self.is_nan.eq(
            (special["query"] & fractional["query"]) | (special["key"] & fractional["key"]) | (self.is_inf & zero)
        )
        return m


class LaneAligner(Block):
    """The magnitude of a product at its place in the window, truncated; its bits inverted for a negative product.

    Combinational. No bit is lost above the window, since the reference is at least the product's effective exponent.
    """

    Parameters = LaneParameters
    members_doc = {
        "product": "of the significands",
        "sign": "of the product",
        "scale": "as the decoder gave it",
        "reference": "the beat's, above the floor",
        "row": "the addend",
    }

    def __init__(self, **parameters):
        def members(p):
            self.window = Window(p.format, p.align_width)
            return {
                "product": In(self.window.product_width),
                "sign": In(1),
                "scale": In(self.window.scale_shape),
                "reference": In(self.window.reference_width),
                "row": Out(self.window.width),
            }

        super().__init__(parameters, members)

    def circuit(self):
        m = Module()
        window = self.window
        placed_width = window.width + window.headroom
        distance = Signal(len(self.scale))
        m.d.comb += distance.eq(self.reference - self.scale)
        # Amounts too large for the shifter become large enough to leave nothing, by setting their upper bits.
        amount_width = bits_for(placed_width)
        kept = ((1 << amount_width) - placed_width).bit_length() - 1
        far = distance[amount_width:].any()
        amount = Cat(distance[:kept], distance[kept:amount_width] | far.replicate(amount_width - kept))
        m.submodules.shifter = shifter = LogShifter(
            width=placed_width, amount_width=amount_width, result_width=window.width
        )
        m.d.comb += [
            shifter.value.eq(Cat(Const(0, placed_width - window.product_width), self.product)),
            shifter.amount.eq(amount),
            self.row.eq(shifter.shifted ^ self.sign.replicate(window.width)),
        ]
        return m
