"""One lane's accumulator: exact products added under a running maximum exponent, and a running maximum."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from golden.spec.vector_unit import GUARD_BITS
from hw.arith.multiplier import UnsignedMultiplier
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.formats import float_layout
from hw.lib.pipeline import Pipeline
from hw.units.vector_unit.aligner import BusAligner
from hw.units.vector_unit.arithmetic import SPECIALS, AccumulatorParameters, amount_width, clamp
from hw.units.vector_unit.factor import Factor
from hw.units.vector_unit.stages import SUM_STAGE

__all__ = ["LaneAccumulator"]


class LaneAccumulator(Block):
    """Adds products ``left * right`` without a floating-point add in the loop; see ``golden/arith/accumulator.py``.

    ``right`` is the command's word or the bank's row, ``left`` the same word (squares) or a factor broadcast by the
    engine. The exponent loop runs two stages ahead of the sum, so that the sum's loop is one shift and one addition.
    The running maximum is a key that orders words: 0 none, 1 NaN, then -Inf to +Inf.

    Each port's documentation names its pipeline stage, see :mod:`hw.units.vector_unit.stages`.
    """

    Parameters = AccumulatorParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "word": "stage 0: the command's word",
        "row": "stage 1: the word from the bank",
        "from_row": "stage 1: right factor from the bank",
        "takes_part": "stage 1: the lane is enabled; 0 adds nothing",
        "is_square": "stage 1: the left factor is the right one",
        "coefficient": "stage 1: the left factor otherwise",
        "maximum_update": "stage 1: update the maximum with the word",
        "maximum_start": "stage 1: restart the maximum",
        "update": "stage 2: add the product to the sum",
        "start": "stage 2: restart the sum",
        "bus_exponent": "stage 5: exponent code to which the sum is aligned",
        "maximum_key": "stage 2: the maximum's key",
        "exponent": "stage 3: the sum's exponent code",
        "specials": "stage 5: specials among the terms of the sum",
        "aligned": "stage 6: the sum at that exponent",
    }

    @staticmethod
    def members(p):
        return {
            "advance": In(1),
            "word": In(p.float_format.width),
            "row": In(p.float_format.width),
            "from_row": In(1),
            "takes_part": In(1),
            "is_square": In(1),
            "coefficient": In(p.factor_layout),
            "maximum_update": In(1),
            "maximum_start": In(1),
            "update": In(1),
            "start": In(1),
            "bus_exponent": In(p.exponent_width),
            "maximum_key": Out(p.float_format.width),
            "exponent": Out(p.exponent_width),
            "specials": Out(SPECIALS),
            "aligned": Out(signed(p.aligned_width)),
        }

    latency = SUM_STAGE

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        word = pipe.register(self.word, name="word_1")
        self._maximum(m, pipe, word)
        code, product, specials = self._product(m, pipe, word)
        exponent, amounts, control = self._exponent(m, pipe, code)
        self._sum(m, pipe, exponent, product, specials, amounts, control)
        return m

    def _maximum(self, m, pipe, word):
        fmt = self.parameters.float_format
        parts = float_layout(fmt)(word)
        is_nan = Signal()
        ordered = Signal(fmt.width)
        key = Signal(fmt.width)
        m.d.comb += [
            is_nan.eq((parts.exponent == fmt.max_exponent) & parts.fraction.any()),
            ordered.eq(Mux(parts.sign, ~word, word | 1 << (fmt.width - 1))),
            key.eq(Mux(is_nan, 1, ordered) & self.takes_part.replicate(fmt.width)),
        ]
        largest = Signal(fmt.width, reset_less=True)
        best = Signal(fmt.width)
        m.d.comb += best.eq(Mux(self.maximum_start | (largest < key), key, largest))
        with m.If(self.advance & self.maximum_update):
            m.d.sync += largest.eq(best)
        m.d.comb += self.maximum_key.eq(largest)

    def _product(self, m, pipe, word):
        """Stages 1 and 2: choose and normalise the factors, multiply; the product's exponent code is not registered."""
        p = self.parameters
        m.submodules.right_factor = factor = Factor(format=p.format)
        m.d.comb += factor.word.eq(Mux(self.from_row, self.row, word) & self.takes_part.replicate(p.float_format.width))
        right = pipe.register(factor.factor, name="right_2")
        takes_part = pipe.register(self.takes_part, name="takes_part_2")
        left = Signal(p.factor_layout)
        m.d.comb += left.eq(Mux(self.is_square, factor.factor, self.coefficient))
        # Each lane has a copy: one signal for all lanes would arrive too late for the product.
        left = pipe.register(left, name="left_2")

        m.submodules.product = multiplier = UnsignedMultiplier(
            multiplicand_width=p.precision, multiplier_width=p.precision
        )
        m.d.comb += [multiplier.multiplicand.eq(left.significand), multiplier.multiplier.eq(right.significand)]
        is_zero = Signal()
        is_inf = Signal()
        is_nan = Signal()
        sign = Signal()
        code = Signal(p.exponent_width)
        specials = Signal(SPECIALS)
        m.d.comb += [
            is_zero.eq(left.is_zero | right.is_zero),
            sign.eq(left.sign ^ right.sign),
            # A zero must not raise the maximum.
            code.eq(Mux(is_zero, 0, left.exponent + right.exponent + 1)),
            is_inf.eq(left.is_inf | right.is_inf),
            is_nan.eq(left.is_nan | right.is_nan | (is_inf & is_zero)),
            specials.nan.eq(takes_part & is_nan),
            specials.positive_infinity.eq(takes_part & is_inf & ~sign),
            specials.negative_infinity.eq(takes_part & is_inf & sign),
        ]
        product = {
            "magnitude": pipe.register(multiplier.product, name="magnitude_3"),
            "sign": pipe.register(sign, name="sign_3"),
        }
        return code, product, pipe.register(specials, name="specials_4", stages=2)

    def _exponent(self, m, pipe, code):
        """Stage 2: the running maximum exponent, and the shifts of sum and product that align them to it."""
        p = self.parameters
        largest = Signal(p.exponent_width, reset_less=True)
        previous = Signal(p.exponent_width)
        difference = Signal(signed(p.exponent_width + 1))
        grows = Signal()
        m.d.comb += [previous.eq(Mux(self.start, 0, largest)), difference.eq(code - previous), grows.eq(difference > 0)]
        with m.If(self.advance & self.update):
            m.d.sync += largest.eq(Mux(grows, code, previous))
        m.d.comb += self.exponent.eq(largest)

        sum_amount = Signal(amount_width(p.sum_width, p.exponent_width))
        product_amount = Signal(amount_width(p.align_width, p.exponent_width))
        rise = Signal(p.exponent_width)
        fall = Signal(p.exponent_width)
        m.d.comb += [
            rise.eq(difference),
            fall.eq(-difference),
            sum_amount.eq(Mux(grows, clamp(rise, len(sum_amount)), 0)),
            product_amount.eq(Mux(grows, 0, clamp(fall, len(product_amount)))),
        ]
        amounts = {
            "sum": pipe.register(sum_amount, name="sum_amount_4", stages=2),
            "product": pipe.register(product_amount, name="product_amount_3"),
        }
        control = {
            "start": pipe.register(self.start, name="start_4", stages=2),
            "update": pipe.register(self.update, name="update_4", stages=2),
        }
        return pipe.register(largest, name="exponent_5", stages=2), amounts, control

    def _sum(self, m, pipe, exponent, product, specials, amounts, control):
        """Stages 3 to 5: align the product, add it, align the sum to the bus exponent."""
        p = self.parameters
        m.submodules.product_shifter = product_shifter = LogShifter(
            width=p.align_width, amount_width=len(amounts["product"])
        )
        addend = Signal(signed(p.align_width + 1))
        m.d.comb += [
            product_shifter.value.eq(Cat(Const(0, p.align_width - p.product_width), product["magnitude"])),
            product_shifter.amount.eq(amounts["product"]),
            addend.eq(Cat(product_shifter.shifted, Const(0, 1)) ^ product["sign"].replicate(p.align_width + 1)),
        ]
        addend = pipe.register(addend, name="addend_4")
        carry = pipe.register(product["sign"], name="carry_4")

        total = Signal(signed(p.sum_width), reset_less=True)
        moved = Signal(signed(p.sum_width))
        m.submodules.sum_shifter = sum_shifter = LogShifter(
            width=p.sum_width, amount_width=len(amounts["sum"]), arithmetic=True
        )
        gathered = Signal(SPECIALS, reset_less=True)
        m.d.comb += [
            sum_shifter.value.eq(total),
            sum_shifter.amount.eq(amounts["sum"]),
            moved.eq(Mux(control["start"], 0, sum_shifter.shifted)),
        ]
        # The carry in enters the adder through one more bit below.
        added = Signal(p.sum_width + 1)
        m.d.comb += added.eq(Cat(Const(1, 1), moved).as_signed() + Cat(carry, addend).as_signed())
        with m.If(self.advance & control["update"]):
            m.d.sync += total.eq(added[1:])
            m.d.sync += gathered.eq(specials.as_value() | Mux(control["start"], 0, gathered))
        m.d.comb += self.specials.eq(gathered)

        m.submodules.bus_aligner = aligner = BusAligner(width=p.aligned_width, exponent_width=p.exponent_width)
        m.d.comb += [
            aligner.value.eq(Cat(Const(0, GUARD_BITS), total)),
            aligner.exponent.eq(exponent),
            aligner.reference.eq(self.bus_exponent),
            self.aligned.eq(pipe.register(aligner.aligned, name="aligned_6")),
        ]
