"""Products modulo a power of two: by a constant in few additions, and of two variables."""

from dataclasses import dataclass
from functools import cache

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.parameters import Parameters, integer
from hw.arith.compressor import Heap
from hw.lib.block import Block

__all__ = ["ConstantModularMultiplier", "ModularMultiplier", "signed_digits"]


_SUBTRACTION_COST = 2
"""Cost of the constant of a subtracted addend, in bits of an addend."""


def signed_digits(multiplier, width):
    """``multiplier`` modulo ``2**width`` as a sum of signed powers of two: ``[(exponent, +1 or -1)]``.

    Of all such sums the one with the fewest bits to be added, where a power 2**e has width - e.
    """

    @cache
    def cheapest(rest, exponent):
        rest %= 1 << (width - exponent)
        if not rest:
            return 0, ()
        if rest % 2 == 0:
            return cheapest(rest // 2, exponent + 1)
        options = []
        for sign, extra in ((1, 0), (-1, _SUBTRACTION_COST)):
            cost, digits = cheapest((rest - sign) // 2, exponent + 1)
            options.append((cost + width - exponent + extra, ((exponent, sign), *digits)))
        return min(options, key=lambda option: option[0])

    return list(cheapest(multiplier, 0)[1])


@dataclass(frozen=True, kw_only=True)
class ConstantModularMultiplierParameters(Parameters):
    width: int = integer(8, low=1, high=64, doc="bits of the operand and of the product")
    multiplier: int = integer(1, low=0, high=(1 << 64) - 1, doc="the constant")


class ConstantModularMultiplier(Block):
    """``product = (multiplicand * multiplier) mod 2**width``, by shifting and adding. Combinational.

    One addend for each signed power of two of the constant, truncated to the bits below ``2**width``; carry-save adders
    reduce them to two rows, which one adder sums.
    """

    Parameters = ConstantModularMultiplierParameters
    members_doc = {"multiplicand": "unsigned", "product": "unsigned, modulo 2**width"}

    @staticmethod
    def members(p):
        return {"multiplicand": In(p.width), "product": Out(p.width)}

    def circuit(self):
        m = Module()
        heap = Heap(m, "heap", self.width)
        negated = Signal(self.width)
        m.d.comb += negated.eq(~self.multiplicand)
        for exponent, sign in signed_digits(self.multiplier, self.width):
            if sign > 0:
                heap.add(self.multiplicand[: self.width - exponent], exponent)
            else:
                # -x = ~x + 1: the ones of all subtractions are merged into one constant.
                heap.add(negated[: self.width - exponent], exponent)
                heap.add_constant(1 << exponent)
        m.d.comb += self.product.eq(heap.total())
        return m


@dataclass(frozen=True, kw_only=True)
class ModularMultiplierParameters(Parameters):
    width: int = integer(8, low=1, high=64, doc="bits of both operands and of the product")


class ModularMultiplier(Block):
    """``product = (multiplicand * multiplier) mod 2**width``: the lower triangle of an AND array. Combinational."""

    Parameters = ModularMultiplierParameters
    members_doc = {"multiplicand": "unsigned", "multiplier": "unsigned", "product": "unsigned, modulo 2**width"}

    @staticmethod
    def members(p):
        return {"multiplicand": In(p.width), "multiplier": In(p.width), "product": Out(p.width)}

    def circuit(self):
        m = Module()
        heap = Heap(m, "heap", self.width)
        for exponent in range(self.width):
            n_bits = self.width - exponent
            partial = Signal(n_bits, name=f"partial_{exponent}")
            m.d.comb += partial.eq(self.multiplicand[:n_bits] & self.multiplier[exponent].replicate(n_bits))
            heap.add(partial, exponent)
        m.d.comb += self.product.eq(heap.total())
        return m
