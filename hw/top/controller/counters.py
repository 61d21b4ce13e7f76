"""The core's counters."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from golden.spec.counters import COUNTER_WIDTH, COUNTERS
from hw.lib.block import Block

__all__ = ["COUNTERS", "COUNTER_WIDTH", "CoreCounters"]

_STEP = signed(18)
"""What is added in one clock: at most the keys of a command, or that less the scores of a clock, which may be more."""


class CoreCounters(Block):
    """One register a counter, incremented by the step of the clock before, or cleared. Counters wrap around.

    Steps arrive late in their clock, so they and ``clear`` are registered first.
    """

    members_doc = {"steps": "what to add to each counter", "clear": "set all to zero", "totals": "the counters"}

    @staticmethod
    def members(p):
        return {
            "steps": In(data.StructLayout(dict.fromkeys(COUNTERS, _STEP))),
            "clear": In(1),
            "totals": Out(data.ArrayLayout(COUNTER_WIDTH, len(COUNTERS))),
        }

    def circuit(self):
        m = Module()
        totals = [Signal(COUNTER_WIDTH, name=name) for name in COUNTERS]
        clear = Signal(name="clear_now")
        m.d.sync += clear.eq(self.clear)
        for index, total in enumerate(totals):
            step = Signal(_STEP, name=f"{total.name}_now")
            m.d.sync += [step.eq(self.steps[total.name]), total.eq(total + step)]
            m.d.comb += self.totals[index].eq(total)
        with m.If(clear):
            m.d.sync += [total.eq(0) for total in totals]
        return m
