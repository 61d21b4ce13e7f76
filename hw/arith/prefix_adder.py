"""A parallel-prefix adder whose tree survives area-oriented restructuring before technology mapping."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.parameters import Parameters, integer
from hw.lib.block import Block

__all__ = ["PrefixAdder"]

_GROUP = 2
"""Bits of a group at the leaves of the tree; within a group the carry ripples."""
_KEEP = {"keep": 1}


@dataclass(frozen=True, kw_only=True)
class PrefixAdderParameters(Parameters):
    width: int = integer(45, low=1, high=256, doc="bits of both operands and of the sum")


class PrefixAdder(Block):
    """``sum = a + b`` modulo ``2**width`` by a tree of carries (Sklansky's, over pairs of bits). Combinational.

    Synthesis that restructures logic for area without regard to delay turns any tree into a carry chain, which has
    fewer gates. The nodes of this tree are nets with the attribute ``keep``: they must exist, so a chain beside them
    saves nothing. Every second level holds complements, as the gates produce them, so that a kept net costs no
    inverter.

    The flow of this repository, which does not restructure so, and FPGAs, which have carry chains, replace it by ``+``
    (the role "adder").
    """

    role = "adder"
    Parameters = PrefixAdderParameters
    members_doc = {"a": "first operand", "b": "second operand", "sum": "without the carry out"}

    @staticmethod
    def members(p):
        return {"a": In(p.width), "b": In(p.width), "sum": Out(p.width)}

    def circuit(self):
        m = Module()
        generate, propagate, half = (
            Signal(self.width, name=name) for name in ("generate_bit", "propagate_bit", "half")
        )
        m.d.comb += [generate.eq(self.a & self.b), propagate.eq(self.a | self.b), half.eq(self.a ^ self.b)]
        # The carry out of the last group is not used.
        lows = range(0, self.width - _GROUP, _GROUP)
        carries = _tree(
            m,
            [generate[low + 1] | propagate[low + 1] & generate[low] for low in lows],
            [propagate[low : low + _GROUP].all() for low in lows],
        )
        for low, carry in zip(range(0, self.width, _GROUP), [Const(0, 1), *carries], strict=True):
            m.d.comb += self.sum[low].eq(half[low] ^ carry)
            if low + 1 < self.width:
                m.d.comb += self.sum[low + 1].eq(half[low + 1] ^ (generate[low] | propagate[low] & carry))
        return m

    def circuit_for(self, target):
        if target != "fpga":
            return self.circuit()
        m = Module()
        m.d.comb += self.sum.eq(self.a + self.b)
        return m


def _tree(m, generate, propagate):
    """The carry out of every group, from the generate and propagate bits of the groups."""
    count, span = len(generate), 1
    # Generate and propagate of the block that ends at each group; the complements first.
    generate = _level(m, "generate_group", dict(enumerate(generate)), True)
    propagate = _level(m, "propagate_group", dict(enumerate(propagate)), True)
    is_complement = True
    while span < count:
        is_complement = not is_complement
        # Every second block of ``span`` groups is merged with the block below it; the lowest one does not propagate.
        below = {index: (index & -span) - 1 for index in range(count) if index & span}
        made = {index: generate[index] | propagate[index] & generate[at] for index, at in below.items()}
        passed = {index: propagate[index] & propagate[at] for index, at in below.items() if at >= span}
        generate |= _level(m, f"generate_{2 * span}", made, is_complement, attrs=_KEEP)
        propagate |= _level(m, f"propagate_{2 * span}", passed, is_complement, attrs=_KEEP)
        span *= 2
    return generate.values()


def _level(m, name, nodes, is_complement, **options):
    """The nodes of one level, by group, as bits of a net that holds them or their complements."""
    if not nodes:
        return {}
    net = Signal(len(nodes), name=name, **options)
    values = Cat(nodes.values())
    m.d.comb += net.eq(~values if is_complement else values)
    return {index: ~bit if is_complement else bit for index, bit in zip(nodes, net, strict=True)}
