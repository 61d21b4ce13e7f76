"""Rounding of the accumulator: normalised once, rounded to FP32 and to the input format."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from golden.spec.formats import FP32, OPERAND_FORMATS, float_format
from golden.spec.parameters import Parameters, choice, flag, integer
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.rounding import RoundPack
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline

__all__ = ["ScoreRounder"]


@dataclass(frozen=True, kw_only=True)
class ScoreRounderParameters(Parameters):
    format: str = choice(OPERAND_FORMATS[0], *OPERAND_FORMATS, doc="format of the narrow word")
    width: int = integer(47, low=2, high=96, doc="bits of the sum")
    reference_width: int = integer(6, low=1, high=16, doc="bits of the sum's alignment exponent")
    unit_exponent: int = integer(-50, low=-400, high=0, doc="log2 of the sum's unit at alignment exponent 0")
    wide: bool = flag(True, doc="whether the sum is also rounded to FP32")

    @property
    def targets(self):
        """``{name: format}`` of the words."""
        return ({"wide": FP32} if self.wide else {}) | {"narrow": float_format(self.format)}


class ScoreRounder(Block):
    """``sum * 2**(reference + unit_exponent)``, rounded to nearest, ties to even, to one format or two at once.

    A negative sum x is rounded without negating it: its magnitude is ``~x + 1``. The bits of x are shifted, with zeros
    shifted in; if all bits below the rounding bit are zero, the +1 carries into the rounding bit, else it is absorbed
    below. So the magnitude's upper bits are the complements of the sum's, and only the bits below decide whether 1 is
    added, see :func:`_halves`. A carry out of the rounding covers sums that are powers of two.

    Timing: words come ``latency`` advances after the sum.
    """

    Parameters = ScoreRounderParameters
    latency = 2
    members_doc = {
        "advance": "lock-step enable",
        "sum": "two's complement",
        "reference": "alignment exponent of the sum",
        "is_nan": "a term is NaN",
        "plus_inf": "a term is plus infinity",
        "minus_inf": "a term is minus infinity",
        "wide_word": "FP32",
        "narrow_word": "the format",
    }

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "sum": In(signed(p.width)),
            "reference": In(p.reference_width),
            "is_nan": In(1),
            "plus_inf": In(1),
            "minus_inf": In(1),
            **{f"{name}_word": Out(target.width) for name, target in p.targets.items()},
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        fmt, targets = float_format(self.format), self.parameters.targets
        precision = max(target.precision for target in targets.values())

        # Stage 1: normalise (to the leading zero of a negative sum), all bits below the last rounding bit in one sticky
        # bit.
        width = self.width - 1
        negative, bits = self.sum[-1], self.sum[:-1]
        m.submodules.zeros = zeros = LeadingZeroCounter(width=width)
        m.d.comb += zeros.value.eq(bits ^ negative.replicate(width))
        significand = pipe.register(_normalise(m, bits, zeros.count, precision + 2), name="significand")
        is_inf = self.plus_inf | self.minus_inf
        negative = pipe.register(negative, name="negative")
        sign = pipe.register(Mux(is_inf, self.minus_inf, self.sum[-1]), name="sign")
        is_inf = pipe.register(is_inf, name="is_inf_1")
        is_nan = pipe.register(self.is_nan | (self.plus_inf & self.minus_inf), name="is_nan_1")
        # A sum of FP16 products is normal in FP32; BF16 has FP32's exponents, so that both results share one shift.
        shared = fmt.exponent_width == FP32.exponent_width
        folded = significand if shared else _fold(significand, fmt.precision + 2)
        # Biased exponents; the first addition is parallel to the leading-zero count.
        highest = self.unit_exponent + width - 1 + FP32.bias
        base = Signal(signed(2 + max(bits_for(abs(highest)), self.reference_width, len(zeros.count))))
        exponent, narrow_exponent, below = (Signal.like(base, name=name) for name in ("exponent", "narrow", "below"))
        m.d.comb += [
            base.eq(self.reference + highest),
            exponent.eq(base - zeros.count),
            narrow_exponent.eq(exponent - (FP32.bias - fmt.bias)),
            below.eq(narrow_exponent - 2),
        ]
        exponents = {}
        biased = {"wide": exponent, "narrow": narrow_exponent}
        for name, target in targets.items():
            value = biased[name]
            # Negative exponents are not used, and large ones only have to stay large.
            is_large = ~value[-1] & value[target.exponent_width : -1].any()
            limited = Cat(value[: target.exponent_width], is_large)
            exponents[name] = Cat(pipe.register(limited, name=f"{name}_exponent_1"), Const(0, 1))
        # Right shift that makes the biased exponent 1: 1 - exponent = ~(exponent - 2).
        amount_width = bits_for(len(folded))
        amount = Signal(amount_width)
        m.d.comb += amount.eq(
            (~below[:amount_width] | (~below[amount_width:]).any().replicate(amount_width))
            & below[-1].replicate(amount_width)
        )
        amount = pipe.register(amount, name="distance")

        # Stage 2: subnormals, rounding. Zeros of the magnitude are shifted in.
        m.submodules.subnormal = subnormal = LogShifter(
            width=len(folded) + 1, amount_width=len(amount), sticky=True, arithmetic=True
        )
        m.d.comb += [subnormal.value.eq(Cat(folded, negative)), subnormal.amount.eq(amount)]
        values = {"narrow": (subnormal.shifted[:-1], subnormal.lost)}
        values["wide"] = values["narrow"] if shared else (significand, 0)
        for name, target in targets.items():
            value, lost = values[name]
            upper, half, rest = _halves(value, lost, negative, target.precision)
            m.submodules[f"round_{name}"] = pack = RoundPack(
                format=target.name, width=target.precision + 1, exponent_width=len(exponents[name])
            )
            m.d.comb += [
                pack.sign.eq(sign),
                pack.is_inf.eq(is_inf),
                pack.is_nan.eq(is_nan),
                pack.exponent.eq(exponents[name]),
                pack.significand.eq(Cat(half, upper)),
                pack.sticky.eq(rest),
                getattr(self, f"{name}_word").eq(pipe.register(pack.word, name=f"{name}_2")),
            ]
        return m


def _halves(value, lost, negative, precision):
    """The magnitude's upper bits, and equivalent rounding and sticky bits for all bits below.

    ``value`` are a sum's bits, ``lost`` whether there is a one below them. Let h be the rounding bit of the
    complements. With a one below, the magnitude's rounding bit is h and its sticky bit is set: 1 is added if h is set.
    Without one, the magnitude (complement plus 1) has the rounding bit ~h, sticky bit 0, and a carry if h was set: then
    1 is added, else it is a tie.
    """
    below = len(value) - precision - 1
    upper = value[below:] ^ negative.replicate(precision + 1)
    has_rest = value[:below].any() | lost
    return upper[1:], upper[0] | negative & ~has_rest, has_rest | negative & upper[0]


def _normalise(m, bits, count, width):
    """The upper bits of ``bits`` shifted left by ``count``, with all ones below ORed into the lowest bit.

    Bits that the remaining shift steps cannot move into the upper ones are merged into the sticky bit.
    """
    current, lost = bits, []
    for step in reversed(range(len(count))):
        row = Signal(len(current), name=f"normalised_{1 << step}")
        m.d.comb += row.eq(Mux(count[step], current << (1 << step), current))
        n_left = min(len(row), width - 1 + (1 << step) - 1)
        lost.append(row[: len(row) - n_left].any())
        current = row[len(row) - n_left :]
    missing = width - 1 - len(current)
    return Cat(Cat(lost).any(), Const(0, max(0, missing)), current)


def _fold(value, width):
    """The top ``width`` bits; all lower bits are ORed into the lowest of them."""
    excess = len(value) - width
    if excess <= 0:
        return Cat(Const(0, -excess), value)
    return Cat(value[: excess + 1].any(), value[excess + 1 :])
