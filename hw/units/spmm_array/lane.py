"""One lane of an engine: the products of a pass, added exactly under a running maximum exponent."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hw.arith.compressor import Heap
from hw.arith.shifter import LogShifter
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.spmm_array.factor import SpmmFactor
from hw.units.spmm_array.layouts import SpmmLaneParameters, left_layout, status_layout
from hw.units.vector_unit.arithmetic import SPECIALS

__all__ = ["SpmmLane"]


class SpmmLane(Block):
    """Accumulates ``left * value`` as ``golden/arith/accumulator.py`` defines it, a term a clock, without enables.

    A clock without a term is a term whose left factor is 0 and does not take part: it leaves everything as it is. So
    no register has an enable, and what the lane holds is complete after the last term of a pass.

    Only one operand of an addition is shifted, the sum where the term has the larger exponent, else the product. One
    shifter in the loop of the sum serves both.
    """

    Parameters = SpmmLaneParameters
    members_doc = {
        "value": "stage 1: the right factor, a word of the format",
        "left": "stage 2: the left factor and three times its significand",
        "start": "stage 2: the term is the first one of its pass",
        "status": "stage 3: exponent code and specials of the sum",
        "total": "stage 4: the sum",
    }

    @staticmethod
    def members(p):
        return {
            "value": In(p.float_format.width),
            "left": In(left_layout(p)),
            "start": In(1),
            "status": Out(status_layout(p)),
            "total": Out(signed(p.sum_width)),
        }

    latency = 3

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=Const(1, 1))
        m.submodules.factor = factor = SpmmFactor(format=self.format)
        m.d.comb += factor.word.eq(self.value)
        right = pipe.register(factor.factor, name="right_2")
        # No value may have been read before a pass without terms: its sign must not reach the sum, not even times 0.
        sign = (self.left.sign ^ right.sign) & self.left.takes_part
        self._specials(m, right, sign)
        product = pipe.register(self._product(m, right), name="product_3")
        self._sum(m, product, pipe.register(sign, name="sign_3"), self._exponent(m, pipe, right))
        return m

    def _product(self, m, right):
        """Stage 2: digits of two bits of the right factor choose among multiples of the left one."""
        p = self.parameters
        once, triple = self.left.once, self.left.triple
        heap = Heap(m, "heap", p.product_width, inverted=True)
        for low in range(0, p.precision, 2):
            digit = right.significand[low : low + 2]
            if len(digit) == 1:
                row = once & digit.replicate(len(once))
            else:
                is_one, is_two, is_three = digit[0] & ~digit[1], digit[1] & ~digit[0], digit.all()
                row = once & is_one.replicate(len(once))
                row |= Cat(Const(0, 1), once) & is_two.replicate(len(once) + 1)
                row |= triple & is_three.replicate(len(triple))
            partial = Signal(len(row), name=f"partial_{low}")
            m.d.comb += partial.eq(~row)
            heap.add(partial, low)
        product = Signal(p.product_width, name="product")
        m.d.comb += product.eq(heap.total())
        return product

    def _specials(self, m, right, sign):
        left, found = self.left, Signal(SPECIALS, name="found")
        gathered = Signal(SPECIALS, name="gathered", reset_less=True)
        zero_by_infinity = (left.is_inf & ~right.significand[-1]) | (right.is_inf & ~left.once[-1])
        is_inf = left.takes_part & (left.is_inf | right.is_inf)
        m.d.comb += [
            found.nan.eq(left.takes_part & (left.is_nan | right.is_nan | zero_by_infinity)),
            found.positive_infinity.eq(is_inf & ~sign),
            found.negative_infinity.eq(is_inf & sign),
            self.status.specials.eq(gathered),
        ]
        m.d.sync += gathered.eq(found.as_value() | Mux(self.start, 0, gathered))

    def _exponent(self, m, pipe, right):
        """Stage 2: the running maximum exponent, and what is shifted how far in stage 3."""
        p = self.parameters
        width = p.exponent_width
        code, previous = Signal(width, name="code"), Signal(width, name="previous")
        largest = Signal(width, name="largest", reset_less=True)
        difference, grows = Signal(signed(width + 1)), Signal()
        # One less than the distance where it is negative: the product is one bit further right beforehand.
        distance = Signal(width)
        amount_width = min(ceil_log2(p.sum_width - 1), width)
        is_far = Signal()
        m.d.comb += [
            # A zero must not raise the maximum.
            code.eq(Mux(self.left.once[-1] & right.significand[-1], self.left.exponent + right.exponent + 1, 0)),
            previous.eq(Mux(self.start, 0, largest)),
            difference.eq(code - previous),
            grows.eq(~difference[-1]),
            distance.eq(difference[:width] ^ difference[-1].replicate(width)),
            is_far.eq(distance[amount_width:].any()),
            self.status.exponent.eq(largest),
        ]
        m.d.sync += largest.eq(Mux(grows, code, previous))
        control = {
            "amount": distance[:amount_width],
            "grows": grows,
            "moves_sum": grows & ~is_far & ~self.start,
            "keeps_sign": grows & is_far & ~self.start,
            "moves_product": ~grows & ~is_far,
        }
        return {name: pipe.register(value, name=f"{name}_3") for name, value in control.items()}

    def _sum(self, m, product, sign, control):
        """Stage 3: shift one, add the other."""
        p = self.parameters
        width = p.sum_width
        total = Signal(signed(width), reset_less=True)
        signed_product = Cat(
            sign.replicate(p.align_width - p.product_width),
            product ^ sign.replicate(p.product_width),
            sign.replicate(width - p.align_width),
        )
        moving, resting = Signal(width), Signal(width)
        m.submodules.shifter = shifter = LogShifter(width=width, amount_width=len(control["amount"]), arithmetic=True)
        # A sum that is shifted out leaves its sign, a product nothing; the carry in is the two's complement's.
        m.d.comb += [
            moving.eq(
                (total & control["moves_sum"].replicate(width))
                | (Cat(signed_product[1:], sign) & control["moves_product"].replicate(width))
                | (total[-1] & control["keeps_sign"]).replicate(width)
            ),
            resting.eq(Mux(control["grows"], signed_product, total)),
            shifter.value.eq(moving),
            shifter.amount.eq(control["amount"]),
            self.total.eq(total),
        ]
        carry = sign & (control["grows"] | control["moves_product"])
        added = Signal(width + 1)
        m.d.comb += added.eq(Cat(Const(1, 1), shifter.shifted).as_signed() + Cat(carry, resting).as_signed())
        m.d.sync += total.eq(added[1:])
