"""The row multiplier: the factor divided by the sum of the exponentials."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec import softmax_unit as spec
from golden.spec.formats import FP16
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.linear_segments import LinearSegments
from hw.arith.multiplier import TruncatedMultiplier
from hw.arith.shifter import LogShifter
from hw.arith.trees import SumTree
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline
from hw.units.softmax_unit.layouts import MULTIPLIER, POWER

__all__ = ["RowMultiplier"]


@dataclass(frozen=True, kw_only=True)
class RowMultiplierParameters(spec.RowParameters):
    @property
    def sum_width(self):
        """Bits of a row's sum, whose addends are below 1."""
        return spec.SUM_FRACTION + ceil_log2(self.n_banks * self.n_slots)


class RowMultiplier(Block):
    """Sums the powers of a row and multiplies the reciprocal by the factor; never stalls.

    The row's result comes ``latency`` clocks after its last beat. It is undefined if all powers are 0.
    Golden: steps 3 and 4 of :func:`golden.units.softmax_unit.softmax`.
    """

    Parameters = RowMultiplierParameters
    members_doc = {
        "valid": "there is a beat",
        "last": "the beat ends its row",
        "powers": "one of each bank",
        "factor": "with the last beat: FP16 below 2, without sign and the top bit",
        "has_nan": "with the last beat: passed on",
        "row": "the row's multiplier",
        "row_valid": "the row's multiplier is valid",
    }

    @staticmethod
    def members(p):
        return {
            "valid": In(1),
            "last": In(1),
            "powers": In(data.ArrayLayout(POWER, p.n_banks)),
            "factor": In(spec.FACTOR_WIDTH),
            "has_nan": In(1),
            "row": Out(MULTIPLIER),
            "row_valid": Out(1),
        }

    def prepare(self):
        self.tree = SumTree(n_inputs=self.n_banks, width=spec.SUM_FRACTION + 1)

    @property
    def latency(self):
        return self.tree.latency + 7

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=Const(1))
        tree = self.tree
        valid = self.valid
        for stage in range(1, tree.latency + 2):
            valid = pipe.control(valid, name=f"valid_{stage}")
        last = pipe.register(self.last, name="last", stages=tree.latency + 1)
        row_valid = pipe.control(valid & last, name="row_valid_2")
        for stage in range(3, 8):
            row_valid = pipe.control(row_valid, name=f"row_valid_{stage}")
        m.d.comb += self.row_valid.eq(row_valid)

        total = self._sum(m, pipe, valid, last)
        factor = pipe.register(self.factor, name="factor", stages=tree.latency + 2)
        m.d.comb += self.row.has_nan.eq(pipe.register(self.has_nan, name="has_nan", stages=self.latency))
        argument, leading_zeros = self._normalise(m, total)
        significand, negated = self._factor(m, float_layout(FP16)(Cat(factor, Const(0, 2))))
        argument = pipe.register(argument, name="argument_3")
        leading_zeros = pipe.register(leading_zeros, name="leading_zeros_3")
        significand = pipe.register(significand, name="factor_significand", stages=3)
        negated = pipe.register(negated, name="factor_negated_3")

        # The reciprocal's exponent, while its line is looked up and evaluated.
        m.submodules.lines = lines = LinearSegments(function="softmax_reciprocal", fraction_width=spec.FRACTION)
        m.d.comb += [lines.advance.eq(1), lines.argument.eq(argument)]
        exponent = Signal(7)
        m.d.comb += exponent.eq(negated + (self.parameters.sum_width - spec.SUM_FRACTION + 1) - leading_zeros)
        exponent = pipe.register(exponent, name="exponent", stages=2)
        reciprocal = pipe.register(lines.excess[:-1], name="reciprocal_5")

        m.submodules.product = multiplier = TruncatedMultiplier(
            multiplicand_width=spec.FRACTION + 1, multiplier_width=FP16.precision, dropped=0, pipelined=True
        )
        m.d.comb += [
            multiplier.advance.eq(1),
            multiplier.multiplicand.eq(Cat(reciprocal, 1)),
            multiplier.multiplier.eq(significand),
        ]
        product = multiplier.product
        exponent = pipe.register(exponent, name="exponent_6")

        carries = Signal()
        reduced = Signal(len(exponent))
        result = Signal(MULTIPLIER)
        m.d.comb += [
            carries.eq(product[-1]),
            reduced.eq(exponent - carries),
            result.fraction.eq(Mux(carries, product[FP16.precision :], product[FP16.fraction_width :])),
            result.exponent.eq(
                reduced[: spec.WHOLE_WIDTH] | reduced[spec.WHOLE_WIDTH :].any().replicate(spec.WHOLE_WIDTH)
            ),
        ]
        # A factor of 0 has no leading one.
        with m.If(~product[FP16.fraction_width + spec.FRACTION :].any()):
            m.d.comb += result.exponent.eq(spec.ABSENT)
        result = pipe.register(result, name="result_7")
        m.d.comb += [self.row.fraction.eq(result.fraction), self.row.exponent.eq(result.exponent)]
        return m

    def _sum(self, m, pipe, valid, last):
        """The powers in fixed point, added over the banks and then over the beats of a row."""
        m.submodules.tree = tree = self.tree
        m.d.comb += tree.advance.eq(1)
        for bank, power in enumerate(self.powers):
            shifter = m.submodules[f"shifter_{bank}"] = LogShifter(
                width=spec.SUM_FRACTION, amount_width=spec.WHOLE_WIDTH
            )
            below = spec.SUM_FRACTION - spec.FRACTION - 1
            m.d.comb += [
                shifter.value.eq(Cat(Const(0, below), power.fraction, 1)),
                shifter.amount.eq(power.whole),
                tree.addends[bank].eq(pipe.register(shifter.shifted, name=f"shifted_{bank}")),
            ]
        begun = Signal()
        total = Signal(self.parameters.sum_width, reset_less=True)
        with m.If(valid):
            m.d.sync += [begun.eq(~last), total.eq((total & begun.replicate(len(total))) + tree.total.as_unsigned())]
        return total

    def _normalise(self, m, total):
        """The bits below the leading one, which is at least 1/2, and the zeros above it."""
        n_upper = len(total) - spec.SUM_FRACTION
        leading_zeros = Signal(max(1, n_upper.bit_length()))
        value = total[spec.SUM_FRACTION - 1 - spec.RECIPROCAL_ARGUMENT :]
        if n_upper:
            m.submodules.leading_zeros = counter = LeadingZeroCounter(width=n_upper)
            m.submodules.normaliser = shifter = LogShifter(
                width=len(value), amount_width=len(leading_zeros), direction="left"
            )
            m.d.comb += [
                counter.value.eq(total[spec.SUM_FRACTION :]),
                leading_zeros.eq(counter.count),
                shifter.value.eq(value),
                shifter.amount.eq(leading_zeros),
            ]
            value = shifter.shifted
        return value[-1 - spec.RECIPROCAL_ARGUMENT : -1], leading_zeros

    def _factor(self, m, factor):
        """The factor's normalised significand and its negated exponent."""
        hidden = Signal()
        m.d.comb += hidden.eq(factor.exponent.any())
        m.submodules.factor_zeros = counter = LeadingZeroCounter(width=FP16.precision)
        m.submodules.factor_normaliser = shifter = LogShifter(
            width=FP16.precision, amount_width=len(counter.count), direction="left"
        )
        negated = Signal(5)
        m.d.comb += [
            counter.value.eq(Cat(factor.fraction, hidden)),
            shifter.value.eq(counter.value),
            shifter.amount.eq(counter.count),
            negated.eq(FP16.bias - Cat(factor.exponent[0] | ~hidden, factor.exponent[1:]) + counter.count),
        ]
        return shifter.shifted, negated
