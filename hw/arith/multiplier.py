"""Multipliers: an array of partial products and a bit heap."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.parameters import Parameters, flag, integer
from hw.arith.compressor import FullAdderRow, HalfAdderRow, Heap
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline

__all__ = [
    "UnsignedMultiplier",
    "RecodedMultiplier",
    "TruncatedMultiplier",
    "add_unsigned_product",
    "add_signed_product",
    "add_square",
    "signed_product_constant",
]


def add_unsigned_product(m, heap, multiplicand, multiplier, name):
    """Add the partial products of two unsigned values to a heap."""
    for index in range(len(multiplier)):
        row = Signal(len(multiplicand), name=f"{name}_{index}")
        bits = multiplicand & multiplier[index].replicate(len(multiplicand))
        m.d.comb += row.eq(~bits if heap.inverted else bits)
        heap.add(row, index)


def add_square(m, heap, value, name):
    """Add the partial products of a square to a heap: each pair of bits once, doubled."""
    for index in range(len(value)):
        heap.add(value[index], 2 * index)
        rest = len(value) - index - 1
        if rest:
            row = Signal(rest, name=f"{name}_{index}")
            m.d.comb += row.eq(value[index + 1 :] & value[index].replicate(rest))
            heap.add(row, 2 * index + 2)


def add_signed_product(m, heap, multiplicand, multiplier, name):
    """Add the partial products of two two's complement values to a heap (Baugh-Wooley array)."""
    top, last = len(multiplicand) - 1, len(multiplier) - 1
    for index in range(len(multiplier)):
        row = Signal(len(multiplicand), name=f"{name}_{index}")
        bits = multiplicand & multiplier[index].replicate(len(multiplicand))
        # The terms with exactly one sign bit count negatively: -x = ~x - 1, the -1 goes into the constant.
        signed_bits = Cat(bits[:top], ~bits[top]) if index < last else Cat(~bits[:top], bits[top])
        m.d.comb += row.eq(~signed_bits if heap.inverted else signed_bits)
        heap.add(row, index)
    heap.add_constant(signed_product_constant(len(multiplicand), len(multiplier)))


def signed_product_constant(multiplicand_width, multiplier_width):
    """The correction constant of the Baugh-Wooley array of a signed product."""
    top, last = multiplicand_width - 1, multiplier_width - 1
    return -(((1 << last) - 1) << top) - (((1 << top) - 1) << last)


@dataclass(frozen=True, kw_only=True)
class MultiplierParameters(Parameters):
    multiplicand_width: int = integer(11, low=1, high=64, doc="bits of the multiplicand")
    multiplier_width: int = integer(11, low=1, high=64, doc="bits of the multiplier, one partial product each")


class UnsignedMultiplier(Block):
    """``product = multiplicand * multiplier``, unsigned and exact. Combinational.

    The top bits of both operands may arrive late (the hidden bit of a significand): their partial products enter the
    heap last.
    """

    role = "multiplier"
    Parameters = MultiplierParameters
    members_doc = {
        "multiplicand": "unsigned",
        "multiplier": "unsigned",
        "product": "unsigned, as wide as both operands together",
    }

    @staticmethod
    def members(p):
        return {
            "multiplicand": In(p.multiplicand_width),
            "multiplier": In(p.multiplier_width),
            "product": Out(p.multiplicand_width + p.multiplier_width),
        }

    def circuit(self):
        m = Module()
        heap = Heap(m, "heap", len(self.product), inverted=True)
        add_unsigned_product(m, heap, self.multiplicand, self.multiplier, "partial")
        m.d.comb += self.product.eq(heap.total())
        return m

    def circuit_for(self, target):
        return _plain_product(self) if target == "fpga" else self.circuit()


@dataclass(frozen=True, kw_only=True)
class RecodedMultiplierParameters(MultiplierParameters):
    registered: bool = flag(True, doc="whether there is a register row after the recoding")


class RecodedMultiplier(Block):
    """``product = multiplicand * multiplier``, unsigned and exact, one advance after the operands.

    Radix-4 recoding without signs: before the registers the multiplier is split into digits of two bits, each of which
    selects 0, 1, 2 or 3 times the multiplicand; the triple is computed there, too. That halves the rows to add after
    the registers and saves two levels of full adders (11 bits: three). An odd top bit is a digit of its own.
    Combinational if not registered.
    """

    role = "multiplier"
    Parameters = RecodedMultiplierParameters
    members_doc = UnsignedMultiplier.members_doc
    _ADVANCE_DOC = {"advance": "lock-step enable of the registers"}

    @staticmethod
    def members(p):
        return {
            **({"advance": In(1)} if p.registered else {}),
            "multiplicand": In(p.multiplicand_width),
            "multiplier": In(p.multiplier_width),
            "product": Out(p.multiplicand_width + p.multiplier_width),
        }

    def prepare(self):
        if self.registered:
            self.members_doc = self._ADVANCE_DOC | self.members_doc

    @property
    def latency(self):
        return int(self.registered)

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance) if self.registered else None

        def keep(value, name):
            return pipe.register(value, name=name) if self.registered else value

        once = keep(self.multiplicand, "once")
        if self.multiplier_width > 1:
            triple = Cat(once[0], keep(_triple(m, self.multiplicand), "triple"))
        heap = Heap(m, "heap", len(self.product), inverted=True)
        for low in range(0, self.multiplier_width, 2):
            digit = self.multiplier[low : low + 2]
            if len(digit) == 1:
                (is_one,) = keep(digit, "selects_top")
                chosen = once & is_one.replicate(len(once))
            else:
                selects = Cat(digit[0] & ~digit[1], digit[1] & ~digit[0], digit.all())
                selects = keep(selects, f"selects_{low}")
                multiples = (once, Cat(Const(0, 1), once), triple)
                chosen = Const(0, 1)
                for is_chosen, multiple in zip(selects, multiples, strict=True):
                    chosen |= multiple & is_chosen.replicate(len(multiple))
            row = Signal(len(chosen), name=f"partial_{low}")
            m.d.comb += row.eq(~chosen)
            heap.add(row, low)
        m.d.comb += self.product.eq(heap.total())
        return m

    def circuit_for(self, target):
        return _plain_product(self, self.registered) if target == "fpga" else self.circuit()


def _plain_product(block, registered=False):
    """One multiplication, which FPGA synthesis maps to DSP blocks; registers, if any, are at its inputs."""
    m = Module()
    first, second = block.multiplicand, block.multiplier
    if registered:
        pipe = Pipeline(m, advance=block.advance)
        first, second = pipe.register(first, name="first"), pipe.register(second, name="second")
    m.d.comb += block.product.eq(first * second)
    return m


def _triple(m, value):
    """Three times a value without the lowest bit, which equals the value's: a ripple chain."""
    total, carry = [], []
    for index in range(1, len(value) + 1):
        addends = [*value[index : index + 1], value[index - 1], *carry]
        if len(addends) == 1:
            total += addends
            continue
        adder = m.submodules[f"triple_{index}"] = (FullAdderRow if len(addends) == 3 else HalfAdderRow)(width=1)
        m.d.comb += [getattr(adder, port).eq(addend) for port, addend in zip("abc", addends, strict=False)]
        total.append(adder.sum)
        carry = [adder.carry]
    return Cat(*total, *carry)


@dataclass(frozen=True, kw_only=True)
class TruncatedMultiplierParameters(MultiplierParameters):
    dropped: int = integer(8, low=0, high=64, doc="low columns that are omitted")
    centre: int = integer(0, low=0, high=64, doc="compensation constant, in units of the lowest remaining column")
    pipelined: bool = flag(False, doc="whether there is a register row before the addition")

    def check(self):
        if self.dropped >= min(self.multiplicand_width, self.multiplier_width):
            self.refuse("dropped", "less than the width of either operand")


class TruncatedMultiplier(Block):
    """About ``multiplicand * multiplier >> dropped``: the array without its ``dropped`` low columns.

    Each of the first ``dropped`` rows loses less than 1 unit of the result. Combinational, or one advance later.
    """

    Parameters = TruncatedMultiplierParameters
    members_doc = UnsignedMultiplier.members_doc | {"product": "unsigned"}
    _ADVANCE_DOC = {"advance": "lock-step enable of the registers"}

    @staticmethod
    def members(p):
        return {
            **({"advance": In(1)} if p.pipelined else {}),
            "multiplicand": In(p.multiplicand_width),
            "multiplier": In(p.multiplier_width),
            "product": Out(p.multiplicand_width + p.multiplier_width - p.dropped),
        }

    def prepare(self):
        if self.pipelined:
            self.members_doc = self._ADVANCE_DOC | self.members_doc

    def circuit(self):
        m = Module()
        heap = Heap(m, "heap", len(self.product))
        heap.add_constant(self.centre)
        for index in range(self.multiplier_width):
            remaining = self.multiplicand[max(0, self.dropped - index) :]
            row = Signal(len(remaining), name=f"partial_{index}")
            m.d.comb += row.eq(remaining & self.multiplier[index].replicate(len(remaining)))
            heap.add(row, max(0, index - self.dropped))
        if self.pipelined:
            pipe = Pipeline(m, advance=self.advance)
            rows = heap.reduce()
            heap = Heap(m, "sum", len(self.product))
            heap.add_rows(
                [(offset, pipe.register(row, name=f"row_{index}")) for index, (offset, row) in enumerate(rows)]
            )
        m.d.comb += self.product.eq(heap.total())
        return m
