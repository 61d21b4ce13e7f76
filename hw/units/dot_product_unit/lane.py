"""One lane of the floating-point dot product: an exact product, its exponent, and its alignment in the window."""

from dataclasses import dataclass
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from golden.spec.dot_product_unit import ALIGNMENT_SLACK_BITS, DEFAULT_ALIGN_WIDTHS, MAX_ALIGN_WIDTH, MIN_ALIGN_WIDTH
from golden.spec.formats import OPERAND_FORMATS, float_format
from golden.spec.parameters import Parameters, choice, integer
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.multiplier import RecodedMultiplier, UnsignedMultiplier
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline

__all__ = ["Window", "LaneDecoder", "LaneDistance", "LaneAligner", "DotProductLane"]

RECODED_FROM = 9
"""Significand width from which on the recoded multiplier is used: shorter ones are fast enough without."""


@dataclass(frozen=True)
class Window:
    """Constants of a format and of the width W of the alignment window.

    The exponent of a product is the sum of the two exponent fields, those of subnormals read as 1. The *reference* is
    the alignment exponent, in the same units. Its slack bits (the lowest ones) are ones, which shortens the search; the
    window is wider by the largest excess. At the smallest alignment exponent every bit of every product is in the
    window.
    """

    format: str
    align_width: int

    @property
    def float_format(self):
        return float_format(self.format)

    @property
    def width(self):
        """Bits of an aligned magnitude."""
        return self.align_width - 1 + self.slack

    @property
    def slack(self):
        """Largest excess of the alignment exponent over the largest effective exponent."""
        return (1 << ALIGNMENT_SLACK_BITS) - 1

    @property
    def product_width(self):
        return 2 * self.float_format.precision

    @property
    def spare(self):
        """Bits of the window below a product at the alignment exponent."""
        return self.width - self.product_width

    @property
    def minimum_exponent(self):
        return (2 + self.spare + 1 & ~self.slack) - 1

    @property
    def unit_exponent(self):
        """The weight of the window's lowest bit is 2**(this + alignment exponent)."""
        fmt = self.float_format
        return 2 * (1 - fmt.bias - fmt.fraction_width) - 2 - self.spare

    @property
    def exponent_width(self):
        return bits_for(2 * self.float_format.max_exponent)

    @property
    def reference_width(self):
        """Bits of an alignment exponent above the slack bits."""
        return self.exponent_width - ALIGNMENT_SLACK_BITS

    @property
    def fine_width(self):
        """Bits of the number of leading zeros of a product of a normal and a subnormal number."""
        return ceil_log2(self.float_format.precision)

    @property
    def far(self):
        """The smallest coarse shift, in units of 2**fine_width, that shifts a product out of the window."""
        return ((self.width - 1) >> self.fine_width) + 1

    @property
    def coarse_width(self):
        """Bits of a coarse shift, from -1 to `far`, modulo a power of two."""
        return bits_for(self.far + 1)


@dataclass(frozen=True, kw_only=True)
class LaneParameters(Parameters):
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, doc="format of the factors")
    align_width: int = integer(
        DEFAULT_ALIGN_WIDTHS[OPERAND_FORMATS[0]], low=MIN_ALIGN_WIDTH, high=MAX_ALIGN_WIDTH, doc="W"
    )


class LaneDecoder(Block):
    """Significands, exponent and specials of one product. Combinational.

    A product with a subnormal factor has leading zeros. It is not normalised: the alignment shifts it left. Its
    effective exponent, for the search, is reduced by the leading zeros of that factor. With two subnormal factors the
    product is always below the smallest alignment exponent, and its effective exponent is only an upper bound.
    """

    Parameters = LaneParameters
    members_doc = {
        "query_word": "one factor",
        "key_word": "the other factor",
        "query_significand": "of query_word",
        "key_significand": "of key_word",
        "sign": "of the product",
        "exponent": "of the product",
        "effective": "exponent of the product minus its leading zeros",
        "is_candidate": "candidate for the alignment exponent: not a zero product",
        "is_nan": "the product is not a number",
        "is_inf": "a factor is infinite",
    }

    def members(self, p):
        self.window = Window(p.format, p.align_width)
        fmt = self.window.float_format
        return {
            "query_word": In(float_layout(fmt)),
            "key_word": In(float_layout(fmt)),
            "query_significand": Out(fmt.precision),
            "key_significand": Out(fmt.precision),
            "sign": Out(1),
            "exponent": Out(self.window.exponent_width),
            "effective": Out(self.window.exponent_width),
            "is_candidate": Out(1),
            "is_nan": Out(1),
            "is_inf": Out(1),
        }

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

        # Of two subnormal factors, the common leading zeros of both fractions: the product is below the minimum anyway.
        is_subnormal = Signal()
        fraction = Signal(fmt.fraction_width)
        is_zero = Signal()
        m.submodules.zeros = zeros = LeadingZeroCounter(width=fmt.fraction_width)
        m.d.comb += [
            is_subnormal.eq(~query_normal | ~key_normal),
            fraction.eq(
                query.fraction & (~query_normal).replicate(fmt.fraction_width)
                | key.fraction & (~key_normal).replicate(fmt.fraction_width)
            ),
            zeros.value.eq(fraction),
            is_zero.eq(is_subnormal & ~fraction.any()),
        ]
        # The hidden bit and the zeros of the fraction: 1 + count = -~count.
        lowered = Signal(signed(self.window.exponent_width + 1))
        width = len(zeros.count)
        m.d.comb += [
            lowered.eq(
                self.exponent
                + Cat(~zeros.count & is_subnormal.replicate(width), is_subnormal.replicate(len(lowered) - width))
            ),
            self.effective.eq(lowered),
            self.is_candidate.eq(~lowered[-1] & ~is_zero),
        ]

        # If a factor is special, this is the fraction of the other one.
        query_special, key_special = query.exponent.all(), key.exponent.all()
        m.d.comb += [
            self.is_inf.eq(query_special | key_special),
            self.is_nan.eq(
                query_special & query.fraction.any() | key_special & key.fraction.any() | self.is_inf & is_zero
            ),
        ]
        return m


class LaneDistance(Block):
    """Right shift of a product to the alignment exponent, as a fine and a coarse part. Combinational.

    The shift is ``fine + coarse * 2**fine_width``. It is negative, ``coarse = -1``, only for a product with at least
    that many leading zeros; a shift beyond the window is ``coarse = far``. The slack bits of the alignment exponent are
    ones, so no borrow comes from them.
    """

    Parameters = LaneParameters
    members_doc = {
        "exponent": "of the product",
        "reference": "alignment exponent of the beat, without the slack bits; don't-care for a zero product",
        "fine": "low bits of the shift",
        "coarse": "its high bits, saturated",
    }

    def members(self, p):
        self.window = Window(p.format, p.align_width)
        return {
            "exponent": In(self.window.exponent_width),
            "reference": In(self.window.reference_width),
            "fine": Out(self.window.fine_width),
            "coarse": Out(self.window.coarse_width),
        }

    def circuit(self):
        m = Module()
        window = self.window
        places = Signal(signed(window.reference_width + 1))
        upper = places[window.fine_width - ALIGNMENT_SLACK_BITS :].as_signed()
        m.d.comb += [
            places.eq(self.reference - self.exponent[ALIGNMENT_SLACK_BITS:]),
            self.fine.eq(Cat(~self.exponent[:ALIGNMENT_SLACK_BITS], places)),
            self.coarse.eq(Mux(upper >= window.far, window.far, upper)),
        ]
        return m


class LaneAligner(Block):
    """The aligned magnitude of a product in the window, truncated; bits inverted for a negative product.

    The fine part shifts right; the coarse part shifts right, not at all, or left. Combinational.
    """

    Parameters = LaneParameters
    members_doc = {
        "product": "of the significands",
        "sign": "of the product",
        "fine": "see LaneDistance",
        "coarse": "see LaneDistance",
        "row": "the addend",
    }

    def members(self, p):
        self.window = Window(p.format, p.align_width)
        return {
            "product": In(self.window.product_width),
            "sign": In(1),
            "fine": In(self.window.fine_width),
            "coarse": In(self.window.coarse_width),
            "row": Out(self.window.width),
        }

    def circuit(self):
        m = Module()
        window, width = self.window, self.window.width
        step = 1 << window.fine_width
        m.submodules.shifter = shifter = LogShifter(width=step + width, amount_width=window.fine_width)
        m.d.comb += [shifter.value.eq(Cat(Const(0, step + window.spare), self.product)), shifter.amount.eq(self.fine)]
        terms = []
        for coarse in range(-1, window.far):
            is_taken = Signal(name=f"coarse_is_{coarse}" if coarse >= 0 else "to_left")
            term = Signal(width, name=f"term_{coarse + 1}")
            m.d.comb += is_taken.eq(self.coarse == coarse % (1 << window.coarse_width))
            m.d.comb += term.eq(shifter.shifted[(coarse + 1) * step :] & is_taken.replicate(width))
            terms.append(term)
        magnitude = Signal(width)
        m.d.comb += magnitude.eq(reduce(or_, terms))
        m.d.comb += self.row.eq(magnitude ^ self.sign.replicate(width))
        return m


@dataclass(frozen=True, kw_only=True)
class DotProductLaneParameters(LaneParameters):
    search_stages: int = integer(
        1, low=1, high=16, doc="clocks from registered words to the registered alignment exponent"
    )


class DotProductLane(Block):
    """One product: decoded and registered, multiplied during the search of the beat's alignment exponent, then aligned.

    Timing: specials, effective and is_candidate are combinational, negative comes search_stages advances after the
    words, the row one later. The reference is an input one advance before the row.
    """

    Parameters = DotProductLaneParameters
    members_doc = {
        "advance": "lock-step enable",
        "query_word": "one factor",
        "key_word": "the other factor",
        "specials": "whether the product is not a number, plus or minus infinity, from the lowest bit",
        "effective": "exponent of the product minus its leading zeros",
        "is_candidate": "candidate for the alignment exponent",
        "reference": "alignment exponent of the beat, without the slack bits",
        "negative": "sign of the product",
        "row": "aligned magnitude, inverted if negative",
    }

    @staticmethod
    def members(p):
        window = Window(p.format, p.align_width)
        return {
            "advance": In(1),
            "query_word": In(window.float_format.width),
            "key_word": In(window.float_format.width),
            "specials": Out(3),
            "effective": Out(window.exponent_width),
            "is_candidate": Out(1),
            "reference": In(window.reference_width),
            "negative": Out(1),
            "row": Out(window.width),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        sizes = {"format": self.format, "align_width": self.align_width}
        m.submodules.decoder = decoder = LaneDecoder(**sizes)
        widths = {
            "multiplicand_width": len(decoder.query_significand),
            "multiplier_width": len(decoder.key_significand),
        }
        factor_stages = self.search_stages
        if len(decoder.query_significand) < RECODED_FROM:
            m.submodules.multiplier = multiplier = UnsignedMultiplier(**widths)
        else:
            # The multiplier's registers are the last ones of the factors.
            m.submodules.multiplier = multiplier = RecodedMultiplier(**widths)
            m.d.comb += multiplier.advance.eq(self.advance)
            factor_stages -= 1
        m.submodules.distance = distance = LaneDistance(**sizes)
        m.submodules.aligner = aligner = LaneAligner(**sizes)
        m.d.comb += [
            decoder.query_word.eq(self.query_word),
            decoder.key_word.eq(self.key_word),
            self.specials.eq(Cat(decoder.is_nan, decoder.is_inf & ~decoder.sign, decoder.is_inf & decoder.sign)),
            self.effective.eq(decoder.effective),
            self.is_candidate.eq(decoder.is_candidate),
            multiplier.multiplicand.eq(pipe.register(decoder.query_significand, name="query", stages=factor_stages)),
            multiplier.multiplier.eq(pipe.register(decoder.key_significand, name="key", stages=factor_stages)),
            self.negative.eq(pipe.register(decoder.sign, name="sign", stages=self.search_stages)),
            aligner.product.eq(pipe.register(multiplier.product, name="product")),
            aligner.sign.eq(pipe.register(self.negative, name="product_sign")),
            distance.exponent.eq(pipe.register(decoder.exponent, name="exponent", stages=self.search_stages)),
            distance.reference.eq(self.reference),
            aligner.fine.eq(pipe.register(distance.fine, name="fine")),
            aligner.coarse.eq(pipe.register(distance.coarse, name="coarse")),
            self.row.eq(aligner.row),
        ]
        return m
