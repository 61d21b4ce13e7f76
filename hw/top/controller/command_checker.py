"""CommandChecker: whether a command can be executed, and what it touches."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.commands import ErrorCode
from hw.top.command_layout import COMMAND_LAYOUT
from hw.top.controller.command_decoder import CommandDecoder
from hw.top.controller.command_extents import CommandExtents, n_steps
from hw.top.controller.command_reasons import CommandReasons
from hw.top.controller.footprint import fill_footprint, footprint_layout
from hw.top.parameters import CommandLimits, CorePart

__all__ = ["CommandChecker", "checked_state"]


def checked_state(p):
    """State used by the checks: what has been written so far."""
    row_count = range(p.max_tokens + 1)
    return data.StructLayout(
        {
            "mask_rows": data.ArrayLayout(row_count, p.n_masks),
            "mass_rows": row_count,
            "tokens_valid": 1,
            "token_largest": max(1, ceil_log2(p.max_tokens)),
        }
    )


class CommandChecker(CorePart):
    """Finds the first reason to refuse a command, in the order of :class:`golden.spec.commands.ErrorCode`.

    Its logic is made from the command table of :mod:`golden.spec.commands`; so is :mod:`golden.core.checks`, which
    defines the reasons. One clock to decode a command and its sizes, a bit-serial multiplication of its lengths, one
    clock for the ends of its operands, one for the reasons.

    ``command`` and ``state`` are constant from ``start`` to ``done``; the results hold until the next start.
    """

    Parameters = CommandLimits
    members_doc = {
        "start": "begin with the command",
        "command": "what to check",
        "state": "what was written so far",
        "done": "the results are ready",
        "error": "an ErrorCode",
        "footprint": "what the command touches, if it is legal",
    }

    @staticmethod
    def members(p):
        return {
            "start": In(1),
            "command": In(COMMAND_LAYOUT),
            "state": In(checked_state(p)),
            "done": Out(1),
            "error": Out(4),
            "footprint": Out(footprint_layout(p)),
        }

    @property
    def latency(self):
        """Clocks from start to done."""
        return 4 + n_steps(self.parameters)

    def circuit(self):
        m = Module()
        step = Signal(range(self.latency + 1))
        with m.If(self.start):
            m.d.sync += step.eq(1)
        with m.Elif(step != 0):
            m.d.sync += step.eq(Mux(step == self.latency, 0, step + 1))
        m.d.comb += self.done.eq(step == self.latency)
        sizes, decoder = self.parameters, CommandDecoder(m, self.command)
        largest = self.state.token_largest
        extents = CommandExtents(m, sizes, self.command, decoder, largest, is_first_step=step == 1)
        fill_footprint(m, self.footprint, self.command, decoder, extents, largest)
        self._find_error(m, CommandReasons(sizes, self.command, self.state, decoder, extents).reasons())
        return m

    def _find_error(self, m, reasons):
        """The first of the reasons; one clock after the ends of the operands."""
        error = Signal(4, reset_less=True)
        value = ErrorCode.NONE
        for code in sorted(reasons, reverse=True):
            reason = Signal(name=f"refuses_{code.name.lower()}")
            m.d.comb += reason.eq(reasons[code])
            value = Mux(reason, code, value)
        m.d.sync += error.eq(value)
        m.d.comb += self.error.eq(error)
