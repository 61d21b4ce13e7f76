"""One bank's exponential of the distance from the row's maximum."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from golden.spec import softmax_unit as spec
from golden.spec.formats import FP16
from hw.arith.linear_segments import LinearSegments
from hw.arith.multiplier import TruncatedMultiplier
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline
from hw.units.softmax_unit.layouts import POWER, SCALE

__all__ = ["ScoreFrame", "PowerLane", "FRAME"]

_UNIT = FP16.bias + FP16.fraction_width + spec.SCALE.bias - spec.FRAME_FRACTION
"""Sum of a score's and the scale's exponent fields where a significand's last bit is the frame's."""
_HIGHEST = FP16.max_exponent - 1 + (1 << spec.SCALE.exponent_width) - 1
_MAGNITUDE_WIDTH = FP16.precision + _HIGHEST - _UNIT

FRAME = signed(_MAGNITUDE_WIDTH + 1)


class ScoreFrame(Block):
    """A score times the scale's power of two in fixed point, rounded down; 1 unit lower if negative. Combinational.

    The value of an infinity is arbitrary, but equal for equal infinities.
    """

    members_doc = {"score": "FP16", "scale_exponent": "the scale's exponent field", "framed": "fixed point"}

    @staticmethod
    def members(p):
        return {"score": In(FP16.width), "scale_exponent": In(spec.SCALE.exponent_width), "framed": Out(FRAME)}

    def circuit(self):
        m = Module()
        score = float_layout(FP16)(self.score)
        hidden = Signal()
        exponent = Signal(FP16.exponent_width)
        m.d.comb += [hidden.eq(score.exponent.any()), exponent.eq(Cat(score.exponent[0] | ~hidden, score.exponent[1:]))]
        m.submodules.shifter = shifter = LogShifter(width=_MAGNITUDE_WIDTH, amount_width=_HIGHEST.bit_length())
        below = _MAGNITUDE_WIDTH - FP16.precision
        m.d.comb += [
            shifter.value.eq(Cat(Const(0, below), score.fraction, hidden)),
            shifter.amount.eq(_HIGHEST - (exponent + self.scale_exponent)),
            self.framed.eq(Cat(shifter.shifted, Const(0, 1)) ^ score.sign.replicate(FRAME.width)),
        ]
        return m


class PowerLane(Block):
    """``2**-(scale * (maximum - score))``, 0 for scores that are not enabled or too far from the maximum.

    Of infinite scores only those equal to the maximum give a power, and none if that is -Inf. Golden: steps 1 and 2 of
    :func:`golden.units.softmax_unit.softmax`.
    """

    members_doc = {
        "advance": "lock-step enable of the registers",
        "score": "FP16",
        "enable": "whether the score is an element of the row",
        "maximum": "the row's largest score in the frame, one advance after the score",
        "maximum_is_infinite": "the maximum is +Inf; with the score",
        "scale": "constant",
        "power": "`latency` advances after the score",
    }
    latency = 6

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "score": In(FP16.width),
            "enable": In(1),
            "maximum": In(FRAME),
            "maximum_is_infinite": In(1),
            "scale": In(SCALE),
            "power": Out(POWER),
        }

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)

        # 1. Into the frame.
        m.submodules.frame = frame = ScoreFrame()
        positive = Signal()
        negative = Signal()
        absent = Signal()
        m.d.comb += [
            frame.score.eq(self.score),
            frame.scale_exponent.eq(self.scale.exponent),
            positive.eq(self.score == FP16.infinity),
            negative.eq(self.score == (FP16.infinity | 1 << (FP16.width - 1))),
            absent.eq(~self.enable | negative | (self.maximum_is_infinite & ~positive)),
        ]
        framed = pipe.register(frame.framed, name="framed_1")
        absent = pipe.register(absent, name="absent_1")

        # 2. The distance from the maximum; not negative where it is used.
        difference = Signal(FRAME.width)
        m.d.comb += difference.eq(self.maximum - framed)
        n_low = spec.FRAME_FRACTION + spec.WHOLE_WIDTH
        absent = pipe.register(absent, name="absent_2")
        beyond = pipe.register(difference[n_low:], name="beyond_2")
        difference = pipe.register(difference[:n_low], name="difference_2")

        # 3 and 4. The exponent to base two.
        m.submodules.multiplier = multiplier = TruncatedMultiplier(
            multiplicand_width=n_low,
            multiplier_width=spec.SCALE.fraction_width + 1,
            dropped=spec.EXPONENT_DROPPED,
            centre=spec.EXPONENT_CENTRE,
            pipelined=True,
        )
        m.d.comb += [
            multiplier.advance.eq(self.advance),
            multiplier.multiplicand.eq(difference),
            multiplier.multiplier.eq(Cat(self.scale.fraction, 1)),
        ]
        exponent = pipe.register(multiplier.product[spec.EXPONENT_GUARD :], name="exponent_4")
        far = pipe.register(absent | beyond.any(), name="far_4", stages=2)

        # 5 and 6. The line of the fraction's complement: the table, then its evaluation.
        whole = Signal(spec.WHOLE_WIDTH)
        fraction, upper = exponent[: spec.EXPONENT_FRACTION], exponent[spec.EXPONENT_FRACTION :]
        m.d.comb += whole.eq(Mux(far | upper[spec.WHOLE_WIDTH :].any(), spec.ABSENT, upper))
        m.submodules.lines = lines = LinearSegments(function="softmax_power", fraction_width=spec.FRACTION)
        m.d.comb += [
            lines.advance.eq(self.advance),
            lines.argument.eq(~fraction),
            self.power.whole.eq(pipe.register(whole, name="whole", stages=2)),
            self.power.fraction.eq(pipe.register(lines.excess[:-1], name="fraction_6")),
        ]
        return m
