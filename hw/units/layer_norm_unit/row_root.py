"""Multiplier of a row's deviations: the reciprocal root of their mean square plus epsilon."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from golden.spec import layer_norm_unit as spec
from golden.spec.formats import FP16
from hw.arith.compressor import Heap
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.linear_segments import LinearSegments
from hw.arith.multiplier import TruncatedMultiplier, add_square
from hw.arith.shifter import LogShifter
from hw.arith.trees import SumTree
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.layer_norm_unit.layouts import DEVIATION, EPSILON, ROOT, RowLanesParameters
from hw.units.layer_norm_unit.square_lane import SquareLane

__all__ = ["RowRoot"]

_LEAST_SQUARES = 5
"""For rows with a range the sum of the squares is at least (nearly) 2**-this."""
_MOST_ZEROS = 3
"""Largest number of leading zeros of the larger addend of the variance, counted from the top of the sum."""
_ADDEND_WIDTH = spec.EPSILON.fraction_width + 1 + spec.SPREAD_FRACTION + 2
_EXPONENT = signed(9)
_ALIGN_WIDTH = bits_for(spec.VARIANCE_WIDTH)


class RowRoot(Block):
    """Sums the squares of a row's deviations and takes the reciprocal root of their mean plus epsilon; never stalls.

    The row's result comes ``latency`` clocks after its last beat. Golden: steps 3 and 4 of
    :func:`golden.units.layer_norm_unit.normalise`.
    """

    Parameters = RowLanesParameters
    members_doc = {
        "valid": "there is a beat",
        "last": "the beat ends its row",
        "deviations": "0 where there is no element",
        "count": "with the last beat: the row's number of elements",
        "octave": "with the last beat: exponent of the row's number of elements",
        "scale": "with the last beat: of the row",
        "has_special": "with the last beat: passed on",
        "epsilon": "constant",
        "row": "the row's root",
        "row_valid": "the row's root is valid",
    }

    @staticmethod
    def members(p):
        return {
            "valid": In(1),
            "last": In(1),
            "deviations": In(data.ArrayLayout(DEVIATION, p.n_lanes)),
            **{name: In(p.statistic.members[name]) for name in ("count", "octave", "scale", "has_special")},
            "epsilon": In(EPSILON),
            "row": Out(ROOT),
            "row_valid": Out(1),
        }

    def prepare(self):
        self.tree = SumTree(n_inputs=self.n_lanes, width=spec.SQUARE_FRACTION + 1)

    @property
    def latency(self):
        return self.tree.latency + 13

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=Const(1))
        n_stages = SquareLane.latency + self.tree.latency
        valid = self.valid
        for stage in range(1, n_stages + 1):
            valid = pipe.control(valid, name=f"valid_{stage}")
        last = pipe.register(self.last, name="last", stages=n_stages)
        row_valid = valid & last
        for stage in range(n_stages + 1, self.latency + 1):
            row_valid = pipe.control(row_valid, name=f"row_valid_{stage}")
        m.d.comb += [
            self.row_valid.eq(row_valid),
            self.row.has_special.eq(pipe.register(self.has_special, name="special_late", stages=self.latency)),
        ]
        total = self._sum(m, pipe, valid, last)
        # With the sum: the other values of its row.
        count = Signal(self.parameters.count)
        m.d.comb += [count.count.eq(self.count), count.octave.eq(self.octave)]
        count = pipe.register(count, name="count_0", stages=n_stages + 1)
        scale = pipe.register(self.scale, name="scale_0", stages=n_stages + 1)
        variance, variance_exponent = self._variance(m, pipe, total, count)
        addend, addend_exponent = self._addend(m, pipe, count, scale)
        self._root(m, pipe, variance, variance_exponent, addend, addend_exponent, count.octave)
        return m

    def _sum(self, m, pipe, valid, last):
        """The squares in fixed point, added over the lanes and then over the beats of a row."""
        m.submodules.tree = tree = self.tree
        m.d.comb += tree.advance.eq(1)
        for index, deviation in enumerate(self.deviations):
            m.submodules[f"square_{index}"] = lane = SquareLane()
            m.d.comb += [lane.deviation.eq(deviation), tree.addends[index].eq(lane.square)]
        begun = Signal()
        total = Signal(self.parameters.squares_width, reset_less=True)
        with m.If(valid):
            m.d.sync += [begun.eq(~last), total.eq(Mux(begun, total, 0) + tree.total.as_unsigned())]
        return total

    def _variance(self, m, pipe, total, count):
        """4. The mean square times the number of elements' power of two: ``(word, exponent)``, 5 clocks later."""
        above = ceil_log2(self.n_elements)  # the fraction
        m.submodules.zeros = zeros = LeadingZeroCounter(width=above + _LEAST_SQUARES)
        m.d.comb += zeros.value.eq(total[-zeros.width :])
        total = pipe.register(total[-zeros.width - spec.SUM_WIDTH :], name="total_1")
        places = pipe.register(zeros.count, name="zeros_1")
        m.submodules.normalise = normalise = LogShifter(width=len(total), amount_width=len(places), direction="left")
        m.d.comb += [normalise.value.eq(total), normalise.amount.eq(places)]
        significand = pipe.register(normalise.shifted[-spec.SUM_WIDTH :], name="significand_2")
        # For a sum of 0 it is smaller than epsilon's, for its row has the smallest scale.
        exponent = Signal(_EXPONENT)
        m.d.comb += exponent.eq(above - spec.VARIANCE_WIDTH - places)
        exponent = pipe.register(exponent, name="exponent_4", stages=3)

        m.submodules.reciprocal = lines = LinearSegments(
            function="layer_norm_reciprocal", fraction_width=spec.RECIPROCAL_FRACTION
        )
        m.d.comb += [
            lines.advance.eq(1),
            lines.argument.eq(count.count << spec.COUNT_FRACTION - self.parameters.count_fraction),
        ]
        reciprocal = pipe.register(lines.excess[:-1], name="reciprocal_2")
        m.submodules.product = product = TruncatedMultiplier(
            multiplicand_width=spec.SUM_WIDTH, multiplier_width=spec.RECIPROCAL_FRACTION + 1, dropped=0, pipelined=True
        )
        m.d.comb += [
            product.advance.eq(1),
            product.multiplicand.eq(significand),
            product.multiplier.eq(Cat(reciprocal, 1)),
        ]
        return pipe.register(product.product[-spec.VARIANCE_WIDTH :], name="variance_4"), exponent

    def _addend(self, m, pipe, count, scale):
        """Epsilon in the same units, as many clocks later."""
        fraction = 2 * self.parameters.count_fraction
        heap = Heap(m, "spread", fraction + 2)
        add_square(m, heap, Cat(count.count, 1), "spread_partial")
        spread = pipe.register(heap.total()[max(0, fraction - spec.SPREAD_FRACTION) :], name="spread_1")
        m.submodules.addend = product = TruncatedMultiplier(
            multiplicand_width=len(spread), multiplier_width=spec.EPSILON.fraction_width + 1, dropped=0, pipelined=True
        )
        m.d.comb += [
            product.advance.eq(1),
            product.multiplicand.eq(spread),
            product.multiplier.eq(Cat(self.epsilon.fraction, 1)),
        ]
        addend = pipe.register(product.product[-spec.VARIANCE_WIDTH :], name="addend_4", stages=2)
        exponent = Signal(_EXPONENT)
        smallest = 1 - FP16.bias - FP16.fraction_width
        unit = (
            _ADDEND_WIDTH
            - spec.VARIANCE_WIDTH
            - spec.EPSILON.bias
            - spec.EPSILON.fraction_width
            - spec.SPREAD_FRACTION
            - 2 * (1 + smallest)
        )
        m.d.comb += exponent.eq(self.epsilon.exponent + count.octave - (scale << 1) + unit)
        return addend, pipe.register(exponent, name="addend_exponent_4", stages=4)

    def _root(self, m, pipe, variance, variance_exponent, addend, addend_exponent, octave):
        """5 to 10. Both added, normalised; the line of the reciprocal root."""
        difference = Signal(signed(_EXPONENT.width + 1))
        swap = Signal()
        distance = Signal(_EXPONENT.width)
        m.d.comb += [
            difference.eq(variance_exponent - addend_exponent),
            swap.eq(difference < 0),
            distance.eq(Mux(swap, -difference, difference)),
        ]
        exponent = pipe.register(Mux(swap, addend_exponent, variance_exponent), name="exponent_5")
        larger = pipe.register(Mux(swap, addend, variance), name="larger_5")
        smaller = pipe.register(Mux(swap, variance, addend), name="smaller_5")
        amount = pipe.register(
            distance[:_ALIGN_WIDTH] | distance[_ALIGN_WIDTH:].any().replicate(_ALIGN_WIDTH), name="amount_5"
        )

        m.submodules.align = align = LogShifter(width=spec.VARIANCE_WIDTH, amount_width=_ALIGN_WIDTH)
        m.d.comb += [align.value.eq(smaller), align.amount.eq(amount)]
        total = Signal(spec.VARIANCE_WIDTH + 1)
        larger = pipe.register(larger, name="larger_6")
        m.d.comb += total.eq(larger + pipe.register(align.shifted, name="smaller_6"))
        total = pipe.register(total, name="total_7")
        exponent = pipe.register(exponent, name="exponent_7", stages=2)

        m.submodules.total_zeros = zeros = LeadingZeroCounter(width=_MOST_ZEROS)
        used = _MOST_ZEROS + 1 + spec.ROOT_ARGUMENT
        m.submodules.total_normalise = normalise = LogShifter(
            width=used, amount_width=len(zeros.count), direction="left"
        )
        octave = pipe.register(octave, name="octave_7", stages=7)
        half = Signal(_EXPONENT)
        m.d.comb += [
            zeros.value.eq(total[-_MOST_ZEROS:]),
            normalise.value.eq(total[-used:]),
            normalise.amount.eq(zeros.count),
            half.eq(exponent + (len(total) - 1) - octave - zeros.count),
        ]
        argument = pipe.register(normalise.shifted[-1 - spec.ROOT_ARGUMENT : -1], name="argument_8")
        half = pipe.register(half, name="half_8")

        m.submodules.root = lines = LinearSegments(function="layer_norm_root", fraction_width=spec.ROOT_FRACTION)
        m.d.comb += [
            lines.advance.eq(1),
            lines.argument.eq(Cat(argument, half[0])),
            self.row.fraction.eq(pipe.register(lines.excess[:-1], name="fraction_10")),
            self.row.exponent.eq(pipe.register((half >> 1)[: len(self.row.exponent)], name="exponent_10", stages=2)),
        ]
