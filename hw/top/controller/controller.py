"""Controller: checks commands in order and hands them to the scoreboard, which starts them."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.commands import COMMANDS, ErrorCode, Memory, Opcode, Unit
from golden.spec.operands import MaskRows, MassRows, TokenList
from hw.top.command_layout import COMMAND_LAYOUT
from hw.top.controller.command_checker import CommandChecker, checked_state
from hw.top.controller.command_decoder import CommandDecoder
from hw.top.controller.scoreboard import Scoreboard
from hw.top.parameters import CommandLimits, CorePart, InFlight

__all__ = ["Controller", "Unit"]


@dataclass(frozen=True, kw_only=True)
class ControllerParameters(InFlight, CommandLimits):
    pass


class Controller(CorePart):
    """Results are those of one command after the other; :class:`~hw.top.controller.scoreboard.Scoreboard` says when
    each starts.

    A command that is refused sets ``error`` and ``error_command``, its number counted from reset; those before it
    complete, and all later ones are taken and dropped until a legal CLEAR. CLEAR, and STORE of the counters, wait until
    all commands before them are done, and those after them wait for their end. The check of a command with a token list
    waits until the list is complete.
    """

    Parameters = ControllerParameters
    members_doc = {
        "commands": "what to do, in order",
        "start": "start of a unit's command, one bit a unit",
        "command": "each unit's command",
        "n_active": "rows that it processes",
        "limit": "rows whose inputs are valid",
        "rows_done": "rows that each unit has completed of its command",
        "done": "a unit's command is complete, one bit a unit",
        "tokens_valid": "there is a token list",
        "token_count": "its entries",
        "token_largest": "its largest entry",
        "tokens_ascending": "its entries are strictly ascending",
        "busy": "running units, one bit a unit",
        "is_idle": "no command is running or pending",
        "clear_counters": "set the counters to zero",
        "executes": "a command is handed to the scoreboard or, like CLEAR, is executed immediately",
        "skipped_rows": "rows skipped by the token list, for that command",
        "error": "the ErrorCode of the command that was refused, 0 while there is none",
        "error_command": "its number, counted from reset",
        "completed": "a command is done, each in one clock of its own; CLEAR is not reported",
    }

    @staticmethod
    def members(p):
        scoreboard = Scoreboard.for_core(p).signature.members
        rows = range(p.max_tokens + 1)
        names = ("start", "command", "n_active", "limit", "rows_done", "done", "busy", "completed")
        return {
            "commands": In(stream.Signature(COMMAND_LAYOUT)),
            **{name: scoreboard[name] for name in names},
            "tokens_valid": In(1),
            "token_count": In(rows),
            "token_largest": In(max(1, ceil_log2(p.max_tokens))),
            "tokens_ascending": In(1),
            "is_idle": Out(1),
            "clear_counters": Out(1),
            "executes": Out(1),
            "skipped_rows": Out(rows),
            "error": Out(4),
            "error_command": Out(32),
        }

    def circuit(self):
        m = Module()
        m.submodules.checker = checker = CommandChecker.for_core(self.parameters)
        m.submodules.scoreboard = scoreboard = Scoreboard.for_core(self.parameters)
        # The command that is checked and then waits for an entry; don't-care while no beat is valid.
        command = Signal(COMMAND_LAYOUT, reset_less=True)
        decoder = CommandDecoder(m, command)
        number = Signal(32)
        error, error_command = Signal(4), Signal(32)
        is_clear, is_barrier, uses_tokens = Signal(), Signal(), Signal()
        executes = Signal()
        checked = scoreboard.checked
        m.d.comb += [
            is_clear.eq(decoder.is_opcode(Opcode.CLEAR)),
            is_barrier.eq(is_clear | (decoder.is_opcode(Opcode.STORE) & decoder.is_function(Memory.COUNTERS))),
            uses_tokens.eq(decoder.has_flag("gated") | decoder.uses(_reads(TokenList))),
            checker.command.eq(command),
            checker.state.eq(self._written_state(m)),
            checked.payload.command.eq(command),
            checked.payload.number.eq(number - 1),
            checked.payload.footprint.eq(checker.footprint),
            scoreboard.is_ascending.eq(self.tokens_ascending),
            self.error.eq(error),
            self.error_command.eq(error_command),
            self.executes.eq(executes),
        ]
        for name in ("start", "command", "n_active", "limit", "busy", "completed"):
            m.d.comb += getattr(self, name).eq(getattr(scoreboard, name))
        m.d.comb += [scoreboard.rows_done.eq(self.rows_done), scoreboard.done.eq(self.done)]

        ends_barrier = Signal()  # nothing may start before this command is done
        with m.FSM():
            with m.State("TAKE"):
                m.d.comb += self.commands.ready.eq(~ends_barrier | scoreboard.is_empty)
                m.d.sync += command.eq(self.commands.payload)
                with m.If(self.commands.ready):
                    m.d.sync += ends_barrier.eq(0)
                with m.If(self.commands.valid & self.commands.ready):
                    m.d.sync += number.eq(number + 1)
                    with m.If((error == 0) | (self.commands.payload.opcode == Opcode.CLEAR)):
                        m.next = "LOOK"
            with m.State("LOOK"):
                # The token list is valid when the command that fills it is done.
                with m.If(~uses_tokens | ~scoreboard.writes_tokens):
                    m.d.comb += checker.start.eq(1)
                    m.next = "CHECK"
            with m.State("CHECK"):
                with m.If(checker.done):
                    m.next = "WAIT"
                    with m.If(checker.error != ErrorCode.NONE):
                        m.next = "TAKE"
                        with m.If(error == 0):
                            m.d.sync += [error.eq(checker.error), error_command.eq(number - 1)]
            with m.State("WAIT"):
                may_go = Signal()
                m.d.comb += [
                    may_go.eq(~is_barrier | scoreboard.is_empty),
                    checked.valid.eq(may_go & ~is_clear),
                    executes.eq(Mux(is_clear, may_go, checked.valid & checked.ready)),
                ]
                with m.If(executes):
                    m.d.sync += ends_barrier.eq(is_barrier & ~is_clear)
                    m.next = "TAKE"
        m.d.comb += [
            self.is_idle.eq(scoreboard.is_empty),
            self.clear_counters.eq(executes & is_clear & (command.function == 1)),
        ]
        with m.If(executes & is_clear):
            m.d.sync += error.eq(0)
        self._choose_rows(m, command, decoder, executes, checked.payload.n_active)
        self._update_state(m, command, executes, decoder)
        return m

    def _choose_rows(self, m, command, decoder, executes, n_active):
        """The rows that a command processes: its own, or entries of the token list, as many as there are."""
        left = Signal(range(self.max_tokens + 1), name="tokens_left")
        gated = decoder.has_flag("gated")
        m.d.comb += [
            left.eq(Mux(command.first_row < self.token_count, self.token_count - command.first_row, 0)),
            n_active.eq(Mux(gated & (left < command.n_rows), left, command.n_rows)),
            self.skipped_rows.eq(Mux(executes & gated, command.n_rows - n_active, 0)),
        ]

    def _written_state(self, m):
        """What has been written: counts of valid mask rows and retained masses; the load unit has the token list."""
        state = Signal(checked_state(self.parameters), name="state")
        self._mask_rows = [Signal(range(self.max_tokens + 1), name=f"mask_{i}_rows") for i in range(self.n_masks)]
        self._mass_rows = Signal(range(self.max_tokens + 1), name="mass_rows")
        m.d.comb += [
            *(state.mask_rows[index].eq(rows) for index, rows in enumerate(self._mask_rows)),
            state.mass_rows.eq(self._mass_rows),
            state.tokens_valid.eq(self.tokens_valid),
            state.token_largest.eq(self.token_largest),
        ]
        return state

    def _update_state(self, m, command, executes, decoder):
        """Update the valid rows of masks and retained mass in program order; their users wait for completion."""
        end = Signal(17, name="end_of_rows")
        m.d.comb += end.eq(command.first_row + command.n_rows)

        def update(rows, operands, is_chosen):
            """A transfer from row 0 on replaces all rows; any other command keeps the rows beyond its own."""
            moved, made = (
                decoder.uses([(form, operand) for form, operand in operands if form.is_transfer == is_transfer])
                for is_transfer in (True, False)
            )
            is_more = (end > rows) & ~decoder.has_flag("gated")
            with m.If(executes & is_chosen & ((moved & (command.first_row == 0)) | ((moved | made) & is_more))):
                m.d.sync += rows.eq(end)

        masks, retained = (
            [(form, item) for form in COMMANDS for item in form.writes if isinstance(item, kind)]
            for kind in (MaskRows, MassRows)
        )
        for index, rows in enumerate(self._mask_rows):
            for name in dict.fromkeys(operand.number for _, operand in masks):
                written = [(form, operand) for form, operand in masks if operand.number == name]
                update(rows, written, command[name] == index)
        update(self._mass_rows, retained, 1)


def _reads(kind):
    """``(form, operand)`` of a class that is read."""
    return [(form, operand) for form in COMMANDS for operand in form.reads if isinstance(operand, kind)]
