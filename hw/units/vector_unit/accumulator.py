"""One lane's accumulator: exact products added under a running maximum exponent."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out

from golden.spec.vector_unit import GUARD_BITS
from hw.arith.fused_layouts import exact_product_layout, operand_layout
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.vector_unit.aligner import BusAligner
from hw.units.vector_unit.arithmetic import SPECIALS, AccumulatorParameters, amount_width, clamp
from hw.units.vector_unit.stages import LANE_SUM_STAGE

__all__ = ["LaneAccumulator"]


class LaneAccumulator(Block):
    """Adds exact products without a floating-point add in the loop; see ``golden/arith/accumulator.py``.

    The products come from the lane's multiplier, :class:`hw.arith.elementwise.ElementwiseLane`, with normalised
    factors. The exponent loop runs two stages ahead of the sum, so that the sum's loop is one shift and one addition.

    Each port's documentation names its pipeline stage, see :mod:`hw.units.vector_unit.stages`.
    """

    Parameters = AccumulatorParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "product_exponent": "stage 1: the sum of the exponents of the factors",
        "product_is_zero": "stage 1: a factor is zero",
        "product": "stage 2: the product",
        "takes_part": "stage 2: the lane is enabled; 0, with a factor of zero, adds nothing",
        "update": "stage 2: add the product to the sum",
        "start": "stage 2: restart the sum",
        "bus_exponent": "stage 5: exponent code to which the sum is aligned",
        "exponent": "stage 3: the sum's exponent code",
        "specials": "stage 5: specials among the terms of the sum",
        "aligned": "stage 6: the sum at that exponent",
    }

    @staticmethod
    def members(p):
        exponent = operand_layout(p.float_format)["exponent"].width + 1
        return {
            "advance": In(1),
            "product_exponent": In(signed(exponent)),
            "product_is_zero": In(1),
            "product": In(exact_product_layout(p.float_format)),
            "takes_part": In(1),
            "update": In(1),
            "start": In(1),
            "bus_exponent": In(p.exponent_width),
            "exponent": Out(p.exponent_width),
            "specials": Out(SPECIALS),
            "aligned": Out(signed(p.aligned_width)),
        }

    latency = LANE_SUM_STAGE + 1

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        # A zero must not raise the maximum.
        code = Signal(self.parameters.exponent_width)
        m.d.comb += code.eq(Mux(self.product_is_zero, 0, self.product_exponent + self.parameters.code_offset))
        code = pipe.register(code, name="code_2")

        product, specials = self.product, Signal(SPECIALS)
        is_inf = Signal()
        m.d.comb += [
            is_inf.eq(self.takes_part & product.is_inf),
            specials.nan.eq(self.takes_part & product.is_nan),
            specials.positive_infinity.eq(is_inf & ~product.sign),
            specials.negative_infinity.eq(is_inf & product.sign),
        ]
        specials = pipe.register(specials, name="specials_4", stages=2)
        term = {name: pipe.register(product[name], name=f"{name}_3") for name in ("magnitude", "sign")}
        exponent, amounts, control = self._exponent(m, pipe, code)
        self._sum(m, pipe, exponent, term, specials, amounts, control)
        return m

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
