"""CommandIssuer: takes commands in order, and starts each when nothing that is under way uses what it uses."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.mixed_precision_core import COMMAND_WIDTH, Code, Error, MixedPrecisionCoreParameters, Unit
from hw.lib.block import Block
from hw.lib.stream import RegisterSlice
from hw.units.mixed_precision_core.command_checker import CommandChecker
from hw.units.mixed_precision_core.layouts import BUFFER_WIDTH, COMMAND, locks_layout

__all__ = ["CommandIssuer"]


class CommandIssuer(Block):
    """A command waits until its unit is free and no command under way uses the same memory, buffer, region or tile.

    Two commands of the quantiser can be under way, of which the first only writes its buffer, and two multiplications,
    of which the first only writes its outputs. They may use the same tile and region: the array keeps them in order.
    A refused command sets ``error`` until CLEAR; what follows is dropped until then. CLEAR waits until nothing is under
    way.
    """

    Parameters = MixedPrecisionCoreParameters
    members_doc = {
        "commands": "commands in order",
        "start": "of each unit, in the first clock of its command",
        "command": "of each unit, constant while it is busy",
        "done": "of each unit, its command ends in this clock; of quantiser and array: it is handed over",
        "built": "the buffer of a quantised tile is written",
        "drained": "the outputs of a multiplication are written",
        "clears": "CLEAR is executed in this clock",
        "busy": "units at work",
        "error": "why a command was refused",
        "error_command": "which one, counted from reset; valid while error is not 0",
    }

    @staticmethod
    def members(p):
        return {
            "commands": In(stream.Signature(COMMAND)),
            "start": Out(len(Unit)),
            "command": Out(data.ArrayLayout(COMMAND, len(Unit))),
            "done": In(len(Unit)),
            "built": In(1),
            "drained": In(1),
            "clears": Out(1),
            "busy": Out(len(Unit)),
            "error": Out(range(max(Error) + 1)),
            "error_command": Out(32),
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        m.submodules.head = head = RegisterSlice(width=COMMAND_WIDTH)
        m.submodules.checker = checker = CommandChecker(**p.to_dict())
        m.d.comb += [
            head.source.payload.eq(self.commands.payload),
            head.source.valid.eq(self.commands.valid),
            self.commands.ready.eq(head.source.ready),
            checker.command.eq(head.sink.payload),
        ]
        command = checker.command
        active = Signal(len(Unit))
        held = [Signal(locks_layout(p), name=f"locks_{unit.name.lower()}", reset_less=True) for unit in Unit]
        builds = self._tail(m, "built", Unit.QUANTISER, held, self.built, ("buffers", "buffer"))
        # The scales of the region and the tile are in use until the outputs are written.
        drains = self._tail(m, "drained", Unit.ARRAY, held, self.drained, ("regions", "region", "outputs", "tile"))
        waits, is_idle = Signal(), Signal()
        m.d.comb += [
            waits.eq(
                Cat(active[unit] & (checker.unit[unit] | _meet(checker.locks, held[unit])) for unit in Unit).any()
                | (builds.is_active & _meet(checker.locks, builds.locks))
                | (drains.is_active & ~checker.unit[Unit.ARRAY] & _meet(checker.locks, drains.locks))
            ),
            is_idle.eq(~active.any() & ~builds.is_active & ~drains.is_active),
            self.busy.eq(active | (builds.is_active << Unit.QUANTISER) | (drains.is_active << Unit.ARRAY)),
        ]
        is_legal, is_clear, starts = Signal(), Signal(), Signal()
        is_stopped = self.error != Error.NONE
        m.d.comb += [
            is_legal.eq(checker.error == Error.NONE),
            is_clear.eq(is_legal & (command.opcode == Code.CLEAR)),
            self.clears.eq(head.sink.valid & is_clear & is_idle),
            starts.eq(head.sink.valid & is_legal & ~is_clear & ~is_stopped & ~waits),
            head.sink.ready.eq(Mux(is_clear, is_idle, ~is_legal | is_stopped | ~waits)),
        ]
        self._refuse(m, head.sink, checker.error, is_stopped)

        written = Signal(1 << BUFFER_WIDTH)
        m.d.comb += checker.written.eq(written)
        with m.If(starts & checker.unit[Unit.QUANTISER]):
            m.d.sync += written.bit_select(command.buffer, 1).eq(1)
        for unit in Unit:
            begins = Signal(name=f"begins_{unit.name.lower()}")
            m.d.comb += begins.eq(starts & checker.unit[unit])
            m.d.sync += [self.start[unit].eq(begins), active[unit].eq((active[unit] & ~self.done[unit]) | begins)]
            with m.If(begins):
                m.d.sync += [self.command[unit].eq(command), held[unit].eq(checker.locks)]
        return m

    def _tail(self, m, name, unit, held, ends, kept):
        """A command that its unit has handed over, and what it still uses."""
        tail = _Tail(name, self.parameters)
        m.d.sync += tail.is_active.eq((tail.is_active & ~ends) | self.done[unit])
        with m.If(self.done[unit]):
            m.d.sync += [tail.locks[field].eq(held[unit][field]) for field in kept]
        return tail

    def _refuse(self, m, head, error, is_stopped):
        """The error and the number of its command."""
        number = Signal(32)
        with m.If(head.valid & head.ready):
            m.d.sync += number.eq(number + 1)
        with m.If(self.clears):
            m.d.sync += self.error.eq(Error.NONE)
        with m.Elif(head.valid & ~is_stopped & (error != Error.NONE)):
            m.d.sync += [self.error.eq(error), self.error_command.eq(number)]


class _Tail:
    """A command that was handed over: whether there is one, and its locks, of which those never set are none."""

    def __init__(self, name, p):
        self.is_active = Signal(name=f"is_{name}")
        self.locks = Signal(locks_layout(p), name=f"locks_{name}")


def _meet(one, other):
    """Whether two commands use the same."""
    return (
        (one.activations & other.activations)
        | (one.references & other.references)
        | (one.output_port & other.output_port)
        | (one.buffers & other.buffers & (one.buffer == other.buffer))
        | (one.regions & other.regions & (one.region == other.region))
        | (one.outputs & other.outputs & (one.tile == other.tile))
    )
