"""The three combinational stages of the fused multiply-add datapath."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from golden.spec.formats import FP32, float_format
from hw.arith.compressor import FullAdderRow, Heap
from hw.arith.end_around import EndAroundAdder
from hw.arith.fused_layouts import (
    GROUP,
    FusedParameters,
    control_fields,
    n_groups,
    operand_layout,
    product_layout,
    sum_layout,
    window_width,
)
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.multiplier import add_unsigned_product
from hw.arith.shifter import LogShifter
from hw.lib.block import Block

__all__ = ["FusedProduct", "FusedSum", "FusedRound"]


class FusedProduct(Block):
    """Carry-save product, aligned addend, and one row of full adders for both. Combinational.

    The addend is shifted right from the left end of the window by the difference between the exponent of that position
    and its own. If its exponent is larger still, or the product is zero, it stays at the left end: the bits right of it
    then only affect rounding. A subtracted addend is inverted and extended with ones on both sides.
    """

    Parameters = FusedParameters
    members_doc = {
        "a": "multiplicand, see operand_layout",
        "b": "multiplier",
        "c": "addend",
        "product_zero": "whether a or b is zero",
        "widen": "the result is an FP32 word",
        "absolute": "the sign of the result is cleared",
        "product": "the window in carry-save form; limit: how many leading zeros may be shifted out",
    }

    @staticmethod
    def members(p):
        operand = operand_layout(float_format(p.format))
        return {
            "a": In(operand),
            "b": In(operand),
            "c": In(operand),
            "product_zero": In(1),
            **{name: In(1) for name in p.options},
            "product": Out(product_layout(p)),
        }

    def circuit(self):
        m = Module()
        fmt = float_format(self.format)
        p, window = fmt.precision, window_width(fmt)
        product_sign = Signal()
        subtract = Signal()
        m.d.comb += [product_sign.eq(self.a.sign ^ self.b.sign), subtract.eq(product_sign ^ self.c.sign)]

        m.submodules.aligner = aligner = LogShifter(width=window + 1, amount_width=bits_for(window), arithmetic=True)
        amount = Signal(len(aligner.amount))
        third = Cat(self.c.fraction, self.c.hidden)
        lost = Signal(p)
        m.d.comb += [
            amount.eq(self._amount(m, len(amount))),
            aligner.value.eq(Cat(Const(0, window - p), third, Const(0, 1)) ^ subtract.replicate(window + 1)),
            aligner.amount.eq(amount),
            # Whether ones are shifted out of the window: available earlier than from the shifter.
            lost.eq(third & self._at_least(m, amount, range(window - p + 1, window + 1))),
        ]
        addend = aligner.shifted[:-1]

        heap = Heap(m, "product", 2 * p)
        first, second = (Cat(operand.fraction, operand.hidden) for operand in (self.a, self.b))
        add_unsigned_product(m, heap, first, second, "partial")
        rows = _two_rows(m, heap.reduce(2), 2 * p)
        m.submodules.merge = merge = FullAdderRow(width=2 * p)
        m.d.comb += [merge.a.eq(rows[0]), merge.b.eq(rows[1]), merge.c.eq(addend[2 : 2 * p + 2])]
        m.d.comb += [
            self.product.sum.eq(Cat(addend[:2], merge.sum, addend[2 * p + 2 :])),
            self.product.carry.eq(merge.carry),
            self.product.lost.eq(lost.any()),
        ]
        self._specials(m, product_sign, subtract)
        m.d.comb += [self.product[name].eq(getattr(self, name)) for name in self.parameters.options]
        return m

    def _at_least(self, m, amount, thresholds):
        """Whether the amount is at least each threshold; the comparisons of its last bits are shared."""
        last = Signal(8, name="last_at_least")
        m.d.comb += last.eq(Cat(Const(1, 1), *(amount[:3] >= value for value in range(1, 8))))
        upper, reached = amount[3:], []
        for high in range(thresholds[0] >> 3, (thresholds[-1] >> 3) + 1):
            above, equal = Signal(name=f"above_{high}"), Signal(name=f"equal_{high}")
            can_be_above = high < (1 << len(upper)) - 1
            m.d.comb += [above.eq(upper > high if can_be_above else 0), equal.eq(upper == high)]
            reached += [above | (equal & last[value & 7]) for value in thresholds if value >> 3 == high]
        return Cat(reached)

    def _amount(self, m, width):
        fmt, a, b, c = float_format(self.format), self.a, self.b, self.c
        above = fmt.precision + 3 - fmt.bias
        distance = Signal(signed(fmt.exponent_width + 3))
        stay = Signal()
        # -c = ~c + 1; for FP16 no constant is left.
        total = a.exponent + b.exponent + ~c.exponent
        m.d.comb += distance.eq(total + (above + 1) if above + 1 else total)
        m.d.comb += stay.eq(distance[-1] | self.product_zero)
        m.d.comb += self.product.limit.eq(Mux(stay, c.exponent - 1, a.exponent + b.exponent + (above - 1)))
        amount = distance[:width]
        if 2 * (fmt.max_exponent - 1) - 1 + above >> width:
            amount |= distance[width:-1].any().replicate(width)
        return amount & ~stay.replicate(width)

    def _specials(self, m, product_sign, subtract):
        """Inf and NaN override the number; the sign is then correct with the subtraction cleared."""
        fmt = float_format(self.format)
        nan = Signal(3)
        inf = Signal(3)
        for index, operand in enumerate((self.a, self.b, self.c)):
            special = Signal(name=f"special_{index}")
            m.d.comb += [
                special.eq(operand.exponent == fmt.max_exponent),
                nan[index].eq(special & operand.fraction.any()),
                inf[index].eq(special & ~operand.fraction.any()),
            ]
        product_inf = Signal()
        is_nan = Signal()
        is_inf = Signal()
        m.d.comb += [
            product_inf.eq(inf[:2].any()),
            is_nan.eq(nan.any() | (product_inf & (self.product_zero | (inf[2] & subtract)))),
            is_inf.eq(inf.any() & ~is_nan),
            self.product.is_nan.eq(is_nan),
            self.product.is_inf.eq(is_inf),
            self.product.sign.eq(Mux(inf[2], self.c.sign, product_sign) & ~is_nan),
            self.product.subtract.eq(subtract & ~inf.any() & ~is_nan),
        ]


class FusedSum(Block):
    """Magnitude of the sum, normalised in steps of 8 bits within the limit. Combinational."""

    Parameters = FusedParameters
    members_doc = {
        "product": "from FusedProduct",
        "total": "significand with at most 7 leading zeros, unless limited or zero",
        "magnitude": "the product's significand, where the addend is a zero of the product's sign",
    }

    @staticmethod
    def members(p):
        magnitude = {"magnitude": Out(2 * float_format(p.format).precision)} if p.gives_product else {}
        return {"product": In(product_layout(p)), "total": Out(sum_layout(p)), **magnitude}

    def circuit(self):
        m = Module()
        fmt, product, total = float_format(self.format), self.product, self.total
        window = window_width(fmt)
        count = n_groups(fmt)
        m.submodules.adder = adder = EndAroundAdder(width=window)
        m.d.comb += [
            adder.a.eq(product.sum),
            adder.b.eq(product.carry << 3),
            adder.subtract.eq(product.subtract),
            adder.lost.eq(product.lost),
        ]
        if self.gives_product:
            m.d.comb += self.magnitude.eq(adder.magnitude[2:])
        # Groups count from the left. The first group with a one, or with the limit, is moved to the left end.
        n_bits = len(total.significand)
        padded = Cat(Const(0, max(n_bits, 2 * GROUP) + GROUP * count - window), adder.magnitude)
        nonzero = Signal(count)
        bound = Signal(count)
        chosen = Signal(count)
        views, rests = [], []
        for index in range(count):
            rest = padded[: len(padded) - GROUP * index]
            views.append(rest[-n_bits:])
            rests.append(rest[:-n_bits].any())
            at_limit = product.limit[3:] == index
            m.d.comb += nonzero[index].eq(rest[-GROUP:].any())
            m.d.comb += bound[index].eq(at_limit & ~product.widen if self._unbounded else at_limit)
        hit = Signal(count - 1)
        m.d.comb += hit.eq(nonzero | bound)
        m.d.comb += chosen.eq(Cat([~hit[:index].any() & hit[index] for index in range(count - 1)], ~hit.any()))
        m.d.comb += [
            total.significand.eq(_chosen(m, chosen, views, "view")),
            total.lost.eq(_chosen(m, chosen, rests, "rest") | product.lost),
            total.limited.eq((chosen & bound).any()),
            total.group.eq(_chosen(m, chosen, range(count), "group")),
            total.limit.eq(product.limit),
        ]
        # An exact zero is positive unless both addends were negative.
        sign = Mux(product.subtract, (product.sign ^ adder.negative) & nonzero.any(), product.sign)
        m.d.comb += total.sign.eq(sign & ~product.absolute if self.clears_sign else sign)
        m.d.comb += [total[name].eq(product[name]) for name in control_fields(self.parameters)]
        return m

    @property
    def _unbounded(self):
        """Whether FP32 results have a larger exponent range than the sum's own."""
        return self.wide and float_format(self.format).exponent_width < FP32.exponent_width


class FusedRound(Block):
    """Final normalisation within a group, and one rounding to a word. Combinational."""

    Parameters = FusedParameters
    members_doc = {
        "total": "from FusedSum",
        "result": "the word; with wide 32 bits: a word of the format with zeros above, or an FP32 word",
    }

    @staticmethod
    def members(p):
        return {"total": In(sum_layout(p)), "result": Out(FP32.width if p.wide else float_format(p.format).width)}

    def circuit(self):
        m = Module()
        fmt, total = float_format(self.format), self.total
        # A one at the limit ends the count there.
        head = Signal(GROUP - 1)
        stop = Signal(GROUP)
        m.d.comb += stop.eq(((1 << (GROUP - 1)) >> total.limit[:3]) & total.limited.replicate(GROUP))
        m.d.comb += head.eq((total.significand[-GROUP:] | stop)[1:])
        m.submodules.counter = counter = LeadingZeroCounter(width=GROUP - 1)
        m.submodules.shifter = shifter = LogShifter(width=len(total.significand), amount_width=3, direction="left")
        m.d.comb += [counter.value.eq(head), shifter.value.eq(total.significand), shifter.amount.eq(counter.count)]
        shifted = shifter.shifted
        fraction, hidden = shifted[GROUP:-1], shifted[-1]
        exponent = Signal.like(total.limit)
        m.d.comb += exponent.eq(total.limit + 1 - Cat(counter.count, total.group))
        field = exponent[: fmt.exponent_width] & hidden.replicate(fmt.exponent_width)
        up = Signal()
        m.d.comb += up.eq(shifted[GROUP - 1] & (shifted[: GROUP - 1].any() | total.lost | shifted[GROUP]))
        rounded = Signal(fmt.width - 1)
        magnitude = Signal(fmt.width - 1)
        overflow = Signal()
        m.d.comb += [
            rounded.eq(Cat(fraction, field) + up),
            overflow.eq(hidden & (exponent >= fmt.max_exponent)),
            magnitude.eq(Mux(total.is_nan, fmt.nan, Mux(total.is_inf | overflow, fmt.infinity, rounded))),
            self.result.eq(Cat(magnitude, total.sign)),
        ]
        if self.wide:
            with m.If(total.widen):
                m.d.comb += self.result.eq(self._widened(m, fmt, magnitude, fraction, hidden, exponent))
        return m

    def _widened(self, m, fmt, magnitude, fraction, hidden, exponent):
        total, below = self.total, FP32.fraction_width - fmt.fraction_width
        if fmt.exponent_width == FP32.exponent_width:
            return Cat(Const(0, below), magnitude, total.sign)
        field = Signal(FP32.exponent_width)
        wide_fraction = Signal(fmt.fraction_width)
        special = total.is_nan | total.is_inf
        with m.If(special):
            m.d.comb += [field.eq(FP32.max_exponent), wide_fraction.eq(total.is_nan << (fmt.fraction_width - 1))]
        with m.Elif(hidden):
            m.d.comb += [field.eq(exponent + (FP32.bias - fmt.bias)), wide_fraction.eq(fraction)]
        return Cat(Const(0, below), wide_fraction, field, total.sign)


def _two_rows(m, runs, width):
    """The rows of a heap of height 2 as two addends."""
    bits = [[Const(0, 1)] * width for _ in range(2)]
    filled = [0] * width
    for offset, value in runs:
        for at, bit in enumerate(value, start=offset):
            bits[filled[at]][at] = bit
            filled[at] += 1
    rows = [Signal(width, name=f"product_row_{depth}") for depth in range(2)]
    m.d.comb += [row.eq(Cat(row_bits)) for row, row_bits in zip(rows, bits, strict=True)]
    return rows


def _chosen(m, chosen, values, name):
    """The value whose bit in the one-hot ``chosen`` is set."""
    terms = []
    for index, value in enumerate(values):
        value = value if not isinstance(value, int) else Const(value, bits_for(len(chosen) - 1))
        term = Signal(len(value), name=f"{name}_{index}")
        m.d.comb += term.eq(value & chosen[index].replicate(len(value)))
        terms.append(term)
    while len(terms) > 1:
        terms = [left | right for left, right in zip(terms[::2], terms[1::2], strict=False)] + terms[len(terms) & ~1 :]
    return terms[0]
