"""Multipliers made of an AND array and a heap of full adders."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from hw.arith.compressor import Heap
from hw.block import Block
from hw.params import Parameters, integer

__all__ = ["UnsignedMultiplier", "add_unsigned_product", "add_signed_product", "signed_product_constant"]


def add_unsigned_product(m, heap, multiplicand, multiplier, name):
    """Put the partial products of two unsigned values into a heap, those of the multiplier's last bits last."""
    for index in range(len(multiplier)):
        row = Signal(len(multiplicand), name=f"{name}_{index}")
        m.d.comb += row.eq(multiplicand & multiplier[index].replicate(len(multiplicand)))
        heap.add(row, index)


def add_signed_product(m, heap, multiplicand, multiplier, name):
    """Put the partial products of two two's complement values into a heap (Baugh and Wooley's array)."""
    top, last = len(multiplicand) - 1, len(multiplier) - 1
    for index in range(len(multiplier)):
        row = Signal(len(multiplicand), name=f"{name}_{index}")
        bits = multiplicand & multiplier[index].replicate(len(multiplicand))
        # The terms with exactly one sign bit count negatively: -x = ~x - 1, the -1 goes into the constant.
        m.d.comb += row.eq(Cat(bits[:top], ~bits[top]) if index < last else Cat(~bits[:top], bits[top]))
        heap.add(row, index)
    heap.add_constant(signed_product_constant(len(multiplicand), len(multiplier)))


def signed_product_constant(multiplicand_width, multiplier_width):
    """What the array of a signed product, some of whose bits are inverted, has to be corrected by."""
    top, last = multiplicand_width - 1, multiplier_width - 1
    return -(((1 << last) - 1) << top) - (((1 << top) - 1) << last)


@dataclass(frozen=True, kw_only=True)
class MultiplierParameters(Parameters):
    multiplicand_width: int = integer(11, low=1, high=64, doc="bits of the multiplicand")
    multiplier_width: int = integer(11, low=1, high=64, doc="bits of the multiplier, one partial product each")


class UnsignedMultiplier(Block):
    """``product = multiplicand * multiplier``, unsigned and exact. Combinational.

    The top bits of both operands may come late (the hidden bit of a significand): their partial products enter the
    heap last.
    """

    Parameters = MultiplierParameters
    members_doc = {
        "multiplicand": "unsigned",
        "multiplier": "unsigned",
        "product": "unsigned, as wide as both operands together",
    }

    def __init__(self, **parameters):
        super().__init__(parameters, lambda p: {
            "multiplicand": In(p.multiplicand_width),
            "multiplier": In(p.multiplier_width),
            "product": Out(p.multiplicand_width + p.multiplier_width),
        })

    def circuit(self):
        m = Module()
        heap = Heap(m, "heap", len(self.product))
        add_unsigned_product(m, heap, self.multiplicand, self.multiplier, "partial")
        m.d.comb += self.product.eq(heap.total())
        return m
