"""ProcessingElement: four 2-bit digits times four weights a clock, added to a running sum that can be doubled."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from golden.spec.mixed_precision import GROUP
from golden.spec.parameters import Parameters, integer
from hw.arith.compressor import Heap
from hw.lib.block import Block
from hw.units.mixed_precision_array.layouts import MULTIPLES

__all__ = ["CONTROL", "SELECTS", "ProcessingElement"]

PRODUCT_WIDTH = 12
"""Bits of a group's sum: four times 3 * -128 or 384."""

SELECTS = data.ArrayLayout(3, GROUP)
"""For each lane whether its digit is 1, 2 or 3, one bit each."""

CONTROL = data.StructLayout({"clears": 1, "doubles": 1})
"""Control of the sum: clear it before the addition, or double it (the product is then 0)."""


@dataclass(frozen=True, kw_only=True)
class ElementParameters(Parameters):
    sum_width: int = integer(24, low=PRODUCT_WIDTH + 1, high=32, doc="bits of the sum")


class ProcessingElement(Block):
    """``sum = (clears ? 0 : sum) + (doubles ? sum : product)``, with ``product`` of the digits of the clock before.

    ``product`` is the sum of the selected multiples of all lanes: the multiples of a column's weights are computed once
    for its elements, so a digit only selects one. Nothing stalls: a clock without digits adds zero. A second register
    loads the finished sum (``captures``) or that of the next element (``moves``): a shift register that unloads the
    sums of a column while the next tile is computed. It is DSTAR's processing element (figure 10).
    """

    Parameters = ElementParameters
    members_doc = {
        "selects": "multiple of each lane's weight, selected by its digit",
        "multiples": "of the column's weights",
        "control": "control of the sum, a clock after the selects",
        "captures": "load the finished sum into the output register",
        "moves": "load the next element's output register",
        "next_out": "output register of the next element",
        "out": "output register",
    }

    @staticmethod
    def members(p):
        return {
            "selects": In(SELECTS),
            "multiples": In(MULTIPLES),
            "control": In(CONTROL),
            "captures": In(1),
            "moves": In(1),
            "next_out": In(signed(p.sum_width)),
            "out": Out(signed(p.sum_width)),
        }

    def circuit(self):
        m = Module()
        heap = Heap(m, "heap", PRODUCT_WIDTH)
        for lane in range(GROUP):
            chosen = Signal(signed(10), name=f"partial_{lane}")
            multiples = self.multiples[lane]
            m.d.comb += chosen.eq(
                (multiples.once & self.selects[lane][0].replicate(len(chosen)))
                | (multiples.twice & self.selects[lane][1].replicate(len(chosen)))
                | (multiples.triple & self.selects[lane][2].replicate(len(chosen)))
            )
            heap.add_signed(chosen)
        product = Signal(signed(PRODUCT_WIDTH), reset_less=True)
        m.d.sync += product.eq(heap.total())

        total = Signal(signed(self.sum_width), reset_less=True)
        base = Signal(self.sum_width)
        addend = Signal(self.sum_width)
        m.d.comb += [
            base.eq(total & ~self.control.clears.replicate(self.sum_width)),
            addend.eq(_sign_extended(product, self.sum_width) | total & self.control.doubles.replicate(self.sum_width)),
        ]
        m.d.sync += total.eq(base + addend)
        outgoing = Signal(signed(self.sum_width), reset_less=True)
        with m.If(self.captures | self.moves):
            m.d.sync += outgoing.eq(Mux(self.captures, total, self.next_out))
        m.d.comb += self.out.eq(outgoing)
        return m


def _sign_extended(value, width):
    """The bits of a two's complement value, with copies of its sign above."""
    return Cat(value, value[-1].replicate(width - len(value)))
