"""SlotFinder: the lowest set bit of a bank, and the remaining bits."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.limits import MAX_SLOTS
from golden.spec.parameters import Parameters, integer
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.lib.block import Block

__all__ = ["SlotFinder"]


@dataclass(frozen=True, kw_only=True)
class SlotFinderParameters(Parameters):
    n_slots: int = integer(16, low=1, high=MAX_SLOTS, doc="bits of a bank")


class SlotFinder(Block):
    """``slot`` is the index of the lowest set bit, ``others`` the other bits. Combinational, log2(n_slots) levels."""

    Parameters = SlotFinderParameters
    members_doc = {
        "bits": "any bits",
        "any": "a bit is set",
        "several": "two or more bits are set",
        "slot": "index of the lowest set bit, don't-care if there is none",
        "others": "the bits without it",
    }

    @staticmethod
    def members(p):
        return {
            "bits": In(p.n_slots),
            "any": Out(1),
            "several": Out(1),
            "slot": Out(ceil_log2(p.n_slots)),
            "others": Out(p.n_slots),
        }

    def circuit(self):
        m = Module()
        m.submodules.counter = counter = LeadingZeroCounter(width=self.n_slots)
        m.d.comb += [
            counter.value.eq(self.bits[::-1]),
            self.slot.eq(counter.count[: len(self.slot)]),
            self.others.eq(self.bits & (self.bits - 1)),
        ]
        # Pairs are joined, level by level; `several` must not wait for the borrow chain of `others`.
        ones, more = self.bits, None
        while len(ones) > 1:
            half = len(ones) // 2
            low, high, odd = ones[:half], ones[half : 2 * half], ones[2 * half :]
            either, both = Signal(half, name=f"any_of_{half}"), Signal(half, name=f"several_of_{half}")
            m.d.comb += [either.eq(low | high), both.eq(low & high)]
            if more is not None:
                m.d.comb += both.eq((low & high) | more[:half] | more[half : 2 * half])
            ones = Cat(either, odd)
            more = Cat(both, more[2 * half :] if more is not None else [0] * len(odd))
        m.d.comb += [self.any.eq(ones), self.several.eq(0 if more is None else more)]
        return m
