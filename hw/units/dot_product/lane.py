"""One lane of the floating-point dot product: an exact product, its exponent, and its place in the window."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

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

    The exponent of a product is the sum of the two exponent fields, those of subnormals read as 1, and so is a
    reference, the exponent to which products are aligned. The lowest reference is the `floor`: a beat that is aligned
    to it keeps every bit of every product.
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
        return 2 + self.spare

    @property
    def unit_exponent(self):
        """The lowest bit of the window counts 2 to the power of this, plus the reference."""
        fmt = self.float_format
        return 2 * (1 - fmt.bias - fmt.fraction_width) - self.floor

    @property
    def exponent_width(self):
        return bits_for(2 * self.float_format.max_exponent)

    @property
    def leading_zeros_width(self):
        """Bits of the number of leading zeros that a product of a normal and a subnormal number may have."""
        return ceil_log2(self.float_format.precision)


@dataclass(frozen=True, kw_only=True)
class LaneParameters(Parameters):
    format: str = choice("fp16", "fp16", "bf16", doc="format of the factors")
    align_width: int = integer(27, low=17, high=40, doc="W")


class LaneDecoder(Block):
    """Significands, exponent and specials of one product. Combinational.

    A product with a subnormal factor has leading zeros. It is not normalised: the alignment shifts it to the left.
    But its size, for the reference, has to be known: its effective exponent is less by the zeros of that factor. With
    two subnormal factors it is below the floor in any case, and so are the few bits that are said of it.
    """

    Parameters = LaneParameters
    members_doc = {
        "query_word": "one factor",
        "key_word": "the other factor",
        "query_significand": "of the one",
        "key_significand": "of the other",
        "sign": "of the product",
        "exponent": "of the product",
        "effective": "exponent of the product with its leading zeros taken away",
        "counts": "whether that may be the reference: not for a zero product",
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
                "exponent": Out(self.window.exponent_width),
                "effective": Out(self.window.exponent_width),
                "counts": Out(1),
                "is_nan": Out(1),
                "is_inf": Out(1),
            }

        super().__init__(parameters, members)

    def circuit(self):
        m = Module()
        fmt, query, key = self.window.float_format, self.query_word, self.key_word
        query_normal = Signal()
        key_normal = Signal()
        m.d.comb += [
            query_normal.eq(query.exponent.any()),
            key_normal.eq(key.exponent.any()),
            self.sign.eq(query.sign ^ key.sign),
            self.query_significand.eq(Cat(query.fraction, query_normal)),
            self.key_significand.eq(Cat(key.fraction, key_normal)),
            self.exponent.eq(
                Cat(query.exponent[0] | ~query_normal, query.exponent[1:])
                + Cat(key.exponent[0] | ~key_normal, key.exponent[1:])
            ),
        ]

        query_fraction, key_fraction = query.fraction.any(), key.fraction.any()
        query_zero = Signal()
        key_zero = Signal()
        m.d.comb += [query_zero.eq(~query_normal & ~query_fraction), key_zero.eq(~key_normal & ~key_fraction)]
        is_subnormal = Signal()
        fraction = Signal(fmt.fraction_width)
        m.submodules.zeros = zeros = LeadingZeroCounter(width=fmt.fraction_width)
        m.d.comb += [
            is_subnormal.eq(~query_normal | ~key_normal),
            fraction.eq(
                query.fraction & (~query_normal).replicate(fmt.fraction_width)
                | key.fraction & (~key_normal).replicate(fmt.fraction_width)
            ),
            zeros.value.eq(fraction),
        ]
        # The hidden zero and those of the fraction: 1 + count = -~count.
        lowered = Signal(signed(self.window.exponent_width + 1))
        width = len(zeros.count)
        m.d.comb += [
            lowered.eq(
                self.exponent + Cat(
                    ~zeros.count & is_subnormal.replicate(width), is_subnormal.replicate(len(lowered) - width)
                )
            ),
            self.effective.eq(lowered),
            self.counts.eq(~lowered[-1] & ~query_zero & ~key_zero),
        ]

        query_special, key_special = query.exponent.all(), key.exponent.all()
        m.d.comb += [
            self.is_inf.eq(query_special | key_special),
            self.is_nan.eq(
                (query_special & (query_fraction | key_zero)) | (key_special & (key_fraction | query_zero))
            ),
        ]
        return m


class LaneAligner(Block):
    """The magnitude of a product at its place in the window, truncated; its bits inverted for a negative product.

    The reference is less than the exponent only where the product has as many leading zeros. The lowest bits of the
    distance, which an adder gives first, shift to the right, and the next one, or a sign, by the distance that is
    left: to the right, not at all, or to the left. The upper bits are compared while the borrow from the lower ones is
    still on its way. Combinational.
    """

    Parameters = LaneParameters
    members_doc = {
        "product": "of the significands",
        "sign": "of the product",
        "exponent": "of the product",
        "reference": "the beat's; any for a zero product",
        "row": "the addend",
    }

    def __init__(self, **parameters):
        def members(p):
            self.window = Window(p.format, p.align_width)
            return {
                "product": In(self.window.product_width),
                "sign": In(1),
                "exponent": In(self.window.exponent_width),
                "reference": In(self.window.exponent_width),
                "row": Out(self.window.width),
            }

        super().__init__(parameters, members)

    def circuit(self):
        m = Module()
        window, width = self.window, self.window.width
        fine, amount_width = window.leading_zeros_width, bits_for(width - 1)
        low = fine
        while width - 1 >> low > 1 or window.exponent_width - low > 3:
            low += 1
        distance = Signal(low)
        borrow = Signal()
        m.d.comb += Cat(distance, borrow).eq(self.reference[:low] - self.exponent[:low])
        # The upper part of the distance: -1, 0, perhaps 1; none of them beyond the window.
        apart = Signal(signed(1 + window.exponent_width - low))
        m.d.comb += apart.eq(self.reference[low:] - self.exponent[low:])
        steps = range(-1, (width - 1 >> low) + 1)
        upper = Signal(len(steps))
        m.d.comb += upper.eq(
            Mux(borrow, Cat(apart == step + 1 for step in steps), Cat(apart == step for step in steps))
        )
        to_left, is_near = upper[0], upper[1:].any() & ~distance[amount_width:].any()

        step = 1 << fine
        m.submodules.shifter = shifter = LogShifter(width=step + width, amount_width=fine)
        m.d.comb += [
            shifter.value.eq(Cat(Const(0, step + window.spare), self.product)),
            shifter.amount.eq(distance[:fine]),
        ]
        finely = shifter.shifted
        if low == fine:
            stays, to_right = upper[1], upper[2:]
        else:
            stays, to_right = is_near & ~distance[fine], is_near & distance[fine]
        coarsely = Signal(width)
        m.d.comb += coarsely.eq(
            finely[:width] & to_left.replicate(width)
            | finely[step:] & stays.replicate(width)
            | finely[2 * step:] & (to_right.any().replicate(width) if len(to_right) else 0)
        )
        coarse_steps = {1 << bit: distance[bit] & ~to_left for bit in range(fine + 1, min(low, amount_width))}
        if low > fine and len(upper) > 2:
            coarse_steps[1 << low] = upper[2]
        for amount, is_taken in coarse_steps.items():
            shifted = Signal(width, name=f"shifted_{amount}")
            m.d.comb += shifted.eq(Mux(is_taken, coarsely >> amount, coarsely))
            coarsely = shifted
        m.d.comb += self.row.eq(coarsely ^ self.sign.replicate(width))
        return m


@dataclass(frozen=True, kw_only=True)
class DotProductLaneParameters(LaneParameters):
    search_stages: int = integer(1, low=1, high=16, doc="clocks from a registered product to the beat's reference")


class DotProductLane(Block):
    """One product: decoded and registered, multiplied while the beat's reference is searched, then aligned to it.

    Timing: specials, effective exponent and whether it counts at once; negative and row 1 + search_stages advances
    after the words, the row combinationally from the reference.
    """

    Parameters = DotProductLaneParameters
    members_doc = {
        "advance": "lock-step enable",
        "query_word": "one factor",
        "key_word": "the other factor",
        "specials": "whether the product is not a number, plus or minus infinity, from the lowest bit",
        "effective": "exponent of the product without its leading zeros",
        "counts": "whether it may be the reference",
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
                "effective": Out(window.exponent_width),
                "counts": Out(1),
                "reference": In(window.exponent_width),
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
            multiplicand_width=len(decoder.query_significand), multiplier_width=len(decoder.key_significand)
        )
        m.submodules.aligner = aligner = LaneAligner(**sizes)
        m.d.comb += [
            decoder.query_word.eq(self.query_word),
            decoder.key_word.eq(self.key_word),
            self.specials.eq(Cat(
                decoder.is_nan, decoder.is_inf & ~decoder.sign, decoder.is_inf & decoder.sign
            )),
            self.effective.eq(decoder.effective),
            self.counts.eq(decoder.counts),
            multiplier.multiplicand.eq(
                pipe.register(decoder.query_significand, name="query", stages=self.search_stages)
            ),
            multiplier.multiplier.eq(pipe.register(decoder.key_significand, name="key", stages=self.search_stages)),
            self.negative.eq(pipe.register(decoder.sign, name="sign", stages=1 + self.search_stages)),
            aligner.product.eq(pipe.register(multiplier.product, name="product")),
            aligner.sign.eq(self.negative),
            aligner.exponent.eq(pipe.register(decoder.exponent, name="exponent", stages=1 + self.search_stages)),
            aligner.reference.eq(self.reference),
            self.row.eq(aligner.row),
        ]
        return m
