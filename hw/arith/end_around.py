"""End-around-carry adder: sum, or magnitude of a difference, in one carry-propagate addition."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.parameters import Parameters, integer
from hw.lib.block import Block

__all__ = ["EndAroundAdder"]


@dataclass(frozen=True, kw_only=True)
class EndAroundAdderParameters(Parameters):
    width: int = integer(37, low=2, high=256, doc="bits of both operands")


class EndAroundAdder(Block):
    """``magnitude = a + b``, or with ``subtract`` the magnitude of ``a - x`` where ``b`` is ``~x`` (in any split of the
    two operands whose sum is ``a + ~x``). Combinational.

    A carry out means that the difference is positive: it is added at the low end (``-x = ~x + 1``). Without a carry out
    the sum is ``~(x - a)`` and is inverted. A prefix tree computes the carries without and with a carry in, so the
    carry out only passes one row of gates.
    """

    Parameters = EndAroundAdderParameters
    members_doc = {
        "a": "first operand",
        "b": "second operand",
        "subtract": "whether the sum is a difference",
        "lost": "whether x has ones below: then a positive difference is rounded down, without the carry in",
        "magnitude": "the result",
        "negative": "with subtract: whether the difference is negative or zero",
    }

    @staticmethod
    def members(p):
        return {
            "a": In(p.width),
            "b": In(p.width),
            "subtract": In(1),
            "lost": In(1),
            "magnitude": Out(p.width),
            "negative": Out(1),
        }

    def circuit(self):
        m = Module()
        half = Signal(self.width)
        generate = Signal(self.width)
        propagate = Signal(self.width)
        m.d.comb += [half.eq(self.a ^ self.b), generate.eq(self.a & self.b), propagate.eq(self.a | self.b)]
        generate, propagate = prefix_tree(m, generate, propagate)
        carry_in = Signal()
        invert = Signal()
        m.d.comb += [
            self.negative.eq(~generate[-1]),
            carry_in.eq(self.subtract & generate[-1] & ~self.lost),
            invert.eq(self.subtract & ~generate[-1]),
        ]
        # An inverted sum has no carry in: both cases are selected in one row of gates, before the last XOR.
        carries = Signal(self.width)
        m.d.comb += carries.eq(
            Mux(
                carry_in,
                Cat(Const(1, 1), (generate | propagate)[:-1]),
                Cat(Const(0, 1), generate[:-1]) ^ invert.replicate(self.width),
            )
        )
        m.d.comb += self.magnitude.eq(half ^ carries)
        return m


def prefix_tree(m, generate, propagate):
    """Carry out of every bit (no carry in), and whether a carry in propagates through it: Sklansky's tree."""
    width, span = len(generate), 1
    while span < width:
        next_generate = Signal(width, name=f"generate_{2 * span}")
        next_propagate = Signal(width, name=f"propagate_{2 * span}")
        # Every second block of ``span`` bits takes in the last bit of the block below it.
        upper = [index & span for index in range(width)]
        below = [(index & -span) - 1 for index in range(width)]
        g = Cat(generate[at] if is_upper else 0 for is_upper, at in zip(upper, below, strict=True))
        p = Cat(propagate[at] if is_upper else 1 for is_upper, at in zip(upper, below, strict=True))
        m.d.comb += next_generate.eq(generate | (propagate & g))
        m.d.comb += next_propagate.eq(propagate & p)
        generate, propagate, span = next_generate, next_propagate, 2 * span
    return generate, propagate
