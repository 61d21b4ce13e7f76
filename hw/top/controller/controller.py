"""Controller: checks commands in order and starts each on its unit as soon as its hazards are resolved."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.commands import COMMANDS, FLAGS, ErrorCode, Opcode, Unit
from golden.spec.operands import MaskRows, MassRows
from hw.top.command_layout import COMMAND_LAYOUT
from hw.top.controller.chaining import REUSED, ChainingChecker, users_of
from hw.top.controller.command_checker import CommandChecker, checked_state
from hw.top.controller.command_decoder import CommandDecoder, any_term
from hw.top.parameters import CommandLimits, CorePart

__all__ = ["Controller", "Unit"]


def _forms_of(unit):
    """The rows of the command table that a unit executes."""
    return [form for form in COMMANDS if form.unit == unit]


class Controller(CorePart):
    """Issues each command to its unit: at once if it can join the chain of running commands, else when all are done.

    So the results are those of one command after the other. Each unit has one command at a time, which stays on its
    output until ``done``. A unit in a chain may read row k when ``limit`` > k: the number of rows that the command
    before it has done, until that command is complete.

    A command that is refused sets ``error`` and ``error_command``, its number counted from reset; running commands
    complete, and all later ones are taken and dropped until a legal CLEAR.
    """

    Parameters = CommandLimits
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
        "executes": "a command starts or, like CLEAR, is executed immediately",
        "skipped_rows": "rows skipped by the token list, for the command that starts",
        "error": "the ErrorCode of the command that was refused, 0 while there is none",
        "error_command": "its number, counted from reset",
    }

    @staticmethod
    def members(p):
        n = len(Unit)
        rows = range(p.max_tokens + 1)
        return {
            "commands": In(stream.Signature(COMMAND_LAYOUT)),
            "start": Out(n),
            "command": Out(data.ArrayLayout(COMMAND_LAYOUT, n)),
            "n_active": Out(data.ArrayLayout(rows, n)),
            "limit": Out(data.ArrayLayout(rows, n)),
            "rows_done": In(data.ArrayLayout(rows, n)),
            "done": In(n),
            "tokens_valid": In(1),
            "token_count": In(rows),
            "token_largest": In(max(1, ceil_log2(p.max_tokens))),
            "tokens_ascending": In(1),
            "busy": Out(n),
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
        m.submodules.chain = chain = ChainingChecker()
        state = self._written_state(m)

        # The command being checked and then waiting for issue; don't-care while no beat is valid.
        command = Signal(COMMAND_LAYOUT, reset_less=True)
        decoder = CommandDecoder(m, command)
        number = Signal(32)
        error, error_command = Signal(4), Signal(32)
        unit = Signal(range(len(Unit)))
        m.d.comb += unit.eq(decoder.choose([(_forms_of(owner), owner) for owner in Unit]))
        is_clear = decoder.is_opcode(Opcode.CLEAR)
        issue, joins = Signal(), Signal()
        busy = Array(Signal(name=f"{owner.name.lower()}_is_busy") for owner in Unit)
        all_idle = Signal()
        m.d.comb += [
            all_idle.eq(~Cat(*busy).any()),
            joins.eq(chain.fits & ~all_idle & ~busy[unit] & ~busy[Unit.LOAD_STORE]),
            checker.command.eq(command),
            checker.state.eq(state),
            chain.command.eq(command),
            *(
                getattr(chain, name).eq(getattr(checker, name))
                for name in ("source_extent", "source_2_extent", "destination_extent")
            ),
            chain.tokens_ascending.eq(self.tokens_ascending),
            *(getattr(chain, f"{memory}_in_use").eq(self._is_in_use(busy, memory)) for memory in REUSED),
            chain.begin.eq(issue & all_idle),
            chain.join.eq(issue & ~all_idle),
            self.error.eq(error),
            self.error_command.eq(error_command),
        ]
        with m.FSM():
            with m.State("TAKE"):
                m.d.comb += self.commands.ready.eq(1)
                m.d.sync += command.eq(self.commands.payload)
                with m.If(self.commands.valid):
                    m.d.sync += number.eq(number + 1)
                    with m.If((error == 0) | (self.commands.payload.opcode == Opcode.CLEAR)):
                        m.next = "LOOK"
            with m.State("LOOK"):
                # The token list is valid when the command that fills it is done.
                with m.If(~busy[Unit.LOAD_STORE]):
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
                m.d.comb += issue.eq(Mux(is_clear, all_idle, all_idle | joins))
                with m.If(issue):
                    m.next = "TAKE"
            m.d.comb += self.is_idle.eq(all_idle)

        with m.If(issue & is_clear):
            m.d.sync += error.eq(0)
        m.d.comb += [self.clear_counters.eq(issue & is_clear & (command.function == 1)), self.executes.eq(issue)]
        self._start_units(m, command, issue & ~is_clear, unit, busy)
        self._update_state(m, command, issue, decoder)
        return m

    def _is_in_use(self, busy, memory):
        """Whether a running unit uses a memory that another command may write."""
        terms = []
        for unit in Unit:
            forms = [form for form in users_of(memory) if form.unit == unit]
            if forms:
                opcodes = dict.fromkeys(form.opcode for form in forms)
                is_all = len(opcodes) == len({form.opcode for form in _forms_of(unit)})
                is_user = any_term(self.command[unit].opcode == opcode for opcode in opcodes)
                terms.append(busy[unit] if is_all else busy[unit] & is_user)
        return any_term(terms)

    def _written_state(self, m):
        """What has been written: counts of valid mask rows and retained masses; LoadStore has the token list."""
        state = Signal(checked_state(self.parameters), name="state")
        self._mask_rows = [Signal(range(self.max_tokens + 1), name=f"mask_{i}_rows") for i in range(self.n_masks)]
        self._mass_rows = Signal(range(self.max_tokens + 1), name="mass_rows")
        m.d.comb += [
            *(state.mask_rows[index].eq(rows) for index, rows in enumerate(self._mask_rows)),
            state.mass_rows.eq(self._mass_rows),
            state.tokens_valid.eq(self.tokens_valid),
            state.token_count.eq(self.token_count),
            state.token_largest.eq(self.token_largest),
        ]
        return state

    def _update_state(self, m, command, issue, decoder):
        """Update the valid rows of masks and retained mass at issue; their users wait for completion."""

        def update(rows, operands, is_chosen):
            """A transfer replaces all rows; any other command keeps the rows beyond its own."""
            moved, made = (
                decoder.uses([(form, operand) for form, operand in operands if form.is_transfer == is_transfer])
                for is_transfer in (True, False)
            )
            with m.If(issue & is_chosen & (moved | (made & (command.n_rows > rows)))):
                m.d.sync += rows.eq(command.n_rows)

        masks, retained = (
            [(form, item) for form in COMMANDS for item in form.writes if isinstance(item, kind)]
            for kind in (MaskRows, MassRows)
        )
        for index, rows in enumerate(self._mask_rows):
            for name in dict.fromkeys(operand.number for _, operand in masks):
                written = [(form, operand) for form, operand in masks if operand.number == name]
                update(rows, written, command[name] == index)
        update(self._mass_rows, retained, 1)

    def _start_units(self, m, command, issue, unit, busy):
        last_unit = Signal(range(len(Unit)))  # the unit of the command before
        with m.If(issue):
            m.d.sync += last_unit.eq(unit)
        is_gated = (command.flags & FLAGS["gated"]).any()
        has_rows = Signal()
        m.d.comb += has_rows.eq(unit != Unit.LOAD_STORE)
        n_active = Mux(is_gated, self.token_count, command.n_rows)
        with m.If(issue & has_rows & is_gated):
            m.d.comb += self.skipped_rows.eq(command.n_rows - self.token_count)
        done = Array(self.done[index] for index in Unit)
        rows_done = Array(self.rows_done[index] for index in Unit)
        for index in Unit:
            begins = Signal(name=f"begins_{index.name.lower()}")
            follows = Signal(name=f"follows_{index.name.lower()}")
            leader = Signal(range(len(Unit)), name=f"leader_of_{index.name.lower()}")
            own = Signal(COMMAND_LAYOUT, name=f"command_of_{index.name.lower()}")
            active = Signal(range(self.max_tokens + 1), name=f"rows_of_{index.name.lower()}")
            start = Signal(name=f"start_{index.name.lower()}")
            m.d.comb += [
                begins.eq(issue & (unit == index)),
                self.command[index].eq(own),
                self.n_active[index].eq(active),
                self.limit[index].eq(Mux(follows, rows_done[leader], active)),
                self.start[index].eq(start),
                self.busy[index].eq(busy[index]),
            ]
            m.d.sync += start.eq(begins)
            with m.If(done[leader]):
                m.d.sync += follows.eq(0)
            with m.If(begins):
                m.d.sync += [
                    own.eq(command),
                    active.eq(n_active),
                    leader.eq(last_unit),
                    follows.eq(busy[last_unit] & ~done[last_unit]),
                ]
            with m.If(begins):
                m.d.sync += busy[index].eq(1)
            with m.Elif(self.done[index]):
                m.d.sync += busy[index].eq(0)
