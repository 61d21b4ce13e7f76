"""Logarithmic shifters."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.parameters import Parameters, choice, flag, integer
from hw.lib.block import Block

__all__ = ["LogShifter"]


@dataclass(frozen=True, kw_only=True)
class LogShifterParameters(Parameters):
    width: int = integer(32, low=1, high=4096, doc="bits of the value")
    amount_width: int = integer(5, low=1, high=16, doc="bits of the shift amount; any amount is legal")
    result_width: int | None = integer(
        None, low=1, high=4096, doc="low bits of the result that are output (right shifts); none: all"
    )
    direction: str = choice("right", "right", "left", doc="right towards the least significant bit, or left")
    sticky: bool = flag(False, doc="whether to give the OR of the bits that were shifted out (right shifts)")
    arithmetic: bool = flag(False, doc="whether to fill with the sign bit (right shifts)")
    small_steps_first: bool = flag(True, doc="whether the amount's low bits, which an adder produces first, act first")

    def check(self):
        if self.direction == "left" and (self.sticky or self.arithmetic or self.result_width is not None):
            self.refuse("direction", "right with sticky, arithmetic or result_width")
        if self.result_width is not None and (self.arithmetic or self.result_width > self.width):
            self.refuse("result_width", "none with arithmetic, and at most width")


class LogShifter(Block):
    """``shifted = value >> amount`` or ``value << amount`` (modulo ``2**width``), one multiplexer row an amount bit.

    With ``result_width`` the caller promises that the bits of the result above it are zero: rows that only feed them
    are left out. Combinational.
    """

    Parameters = LogShifterParameters
    members_doc = {
        "value": "what is shifted",
        "amount": "unsigned; amounts of the width or more leave only fill bits",
        "shifted": "the result",
        "lost": "with sticky: whether a one was shifted out, else 0",
    }

    @staticmethod
    def members(p):
        return {
            "value": In(p.width),
            "amount": In(p.amount_width),
            "shifted": Out(p.width if p.result_width is None else p.result_width),
            "lost": Out(1),
        }

    def circuit(self):
        m = Module()
        left = self.direction == "left"
        current = self.value[::-1] if left else self.value
        fill = self.value[-1] if self.arithmetic else Const(0, 1)
        steps = list(range(self.amount_width))
        if not self.small_steps_first:
            steps.reverse()
        lost = []
        for done, step in enumerate(steps, start=1):
            distance = min(1 << step, self.width)
            # Bits that cannot reach the result are not built.
            reach = len(self.shifted) + sum(1 << later for later in steps[done:])
            width = min(self.width, reach)
            moved = Cat(current[distance:], fill.replicate(distance))
            row = Signal(width, name=f"row_{1 << step}")
            m.d.comb += row.eq(Mux(self.amount[step], moved[:width], current[:width]))
            if self.sticky:
                dropped = Signal(name=f"lost_{1 << step}")
                m.d.comb += dropped.eq(self.amount[step] & current[:distance].any())
                lost.append(dropped)
            current = Cat(row, Const(0, self.width - width)) if width < self.width else row
        m.d.comb += self.shifted.eq(current[::-1] if left else current)
        m.d.comb += self.lost.eq(Cat(lost).any() if lost else 0)
        return m
