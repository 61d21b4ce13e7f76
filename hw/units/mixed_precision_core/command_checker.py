"""CommandChecker: whether a command can be executed, which unit executes it, and what it uses. Combinational."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.formats import FP16
from golden.spec.mixed_precision import FINEST_EXPONENTS
from golden.spec.mixed_precision_core import COMMANDS, FLAGS, Code, Error, Memory, MixedPrecisionCoreParameters, Unit
from hw.lib.block import Block
from hw.units.mixed_precision_core.layouts import BUFFER_WIDTH, COMMAND, locks_layout

__all__ = ["CommandChecker"]


class CommandChecker(Block):
    """Every condition is made from the table of commands in :mod:`golden.spec.mixed_precision_core`."""

    Parameters = MixedPrecisionCoreParameters
    members_doc = {
        "command": "the command",
        "written": "buffers into which something was quantised",
        "error": "the first reason to refuse it, 0 if there is none",
        "unit": "the unit that executes it, one bit",
        "locks": "what it uses",
    }

    @staticmethod
    def members(p):
        return {
            "command": In(COMMAND),
            "written": In(1 << BUFFER_WIDTH),
            "error": Out(range(max(Error) + 1)),
            "unit": Out(len(Unit)),
            "locks": Out(locks_layout(p)),
        }

    def circuit(self):
        m = Module()
        command = self.command
        rows = []
        for index, form in enumerate(COMMANDS):
            match = Signal(name=f"is_row_{index}")
            is_function = 1 if form.function is None else command.function == form.function
            m.d.comb += match.eq((command.opcode == form.code) & is_function)
            rows.append((match, form))
        is_known = Cat(command.opcode == code for code in Code).any()
        no_function = ~Cat(match for match, _ in rows).any()
        reasons = {
            Error.BUFFER_MISSING: self._where(
                rows, lambda form: form.code == Code.MULTIPLY and ~self.written.bit_select(command.buffer, 1)
            ),
            Error.PRECISION: self._where(rows, lambda form: form.is_loop and self._bad_precision()),
            Error.RANGE: self._where(rows, self._bad_range),
            Error.SIZE: self._where(rows, self._bad_size),
            Error.UNKNOWN_FUNCTION: no_function | self._where(rows, self._bad_flags),
            Error.UNKNOWN_OPCODE: ~is_known,
        }
        for reason, holds in reasons.items():  # the last one that holds wins: it is the first in order
            with m.If(holds):
                m.d.comb += self.error.eq(reason)
        m.d.comb += self.unit.eq(Cat(self._where(rows, lambda form, unit=unit: form.unit == unit) for unit in Unit))
        self._lock(m, rows)
        return m

    @staticmethod
    def _where(rows, condition):
        """Whether the command is of a row for which a condition holds; a condition may be a constant of the row."""
        terms = []
        for match, form in rows:
            holds = condition(form)
            if holds is True:
                terms.append(match)
            elif holds is not False:
                terms.append(match & holds)
        return Cat(terms).any() if terms else 0

    def _bad_flags(self, form):
        legal = sum(FLAGS[name] for name in form.flags)
        return (self.command.flags & ~legal & 0xFF).any()

    def _bad_size(self, form):
        command, terms = self.command, []
        if form.largest_count is not None:
            terms += [command.count == 0, command.count > getattr(self.parameters, form.largest_count)]
        low = ceil_log2(self.parameters.n_output_lanes)
        terms += [command[item.base][:low].any() for item in (*form.reads, *form.writes) if item.aligned and low]
        return Cat(terms).any() if terms else False

    def _bad_range(self, form):
        terms = []
        for item in (*form.reads, *form.writes):
            length = item.length
            if isinstance(length, str):
                length = self.command[length] if length == "count" else getattr(self.parameters, length)
            depth = getattr(self.parameters, item.depth)
            terms.append(self.command[item.base] + length > depth)
        return Cat(terms).any() if terms else False

    def _bad_precision(self):
        command = self.command
        low, high = FINEST_EXPONENTS
        is_normal = (command.threshold >= 1 << FP16.fraction_width) & (command.threshold < FP16.infinity)
        return ~is_normal | (command.finest_exponent < low) | (command.finest_exponent > high)

    def _lock(self, m, rows):
        """What the command uses, from the memories of its row."""
        command, locks = self.command, self.locks
        for memory in ("activations", "references", "buffers", "regions", "outputs"):
            m.d.comb += locks[memory].eq(self._where(rows, lambda form, memory=memory: bool(form.of_memory(memory))))
        reads_outputs = self._where(
            rows, lambda form: form.code == Code.ACTIVATE or form.code == Code.STORE and form.function == Memory.OUTPUTS
        )
        m.d.comb += [
            locks.output_port.eq(reads_outputs),
            locks.buffer.eq(command.buffer),
            locks.region.eq(command.region),
            locks.tile.eq(Mux(reads_outputs, command.source, command.destination)),
        ]
