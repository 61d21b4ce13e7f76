"""TransferController: executes LOAD and STORE, a beat a clock."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from golden.spec.mixed_precision_core import Code, Memory, MixedPrecisionCoreParameters
from hw.lib.block import Block
from hw.units.mixed_precision_core.layouts import COMMAND, place_of

__all__ = ["TransferController"]


class TransferController(Block):
    """Counts the beats of a command and says where each goes to or comes from.

    What is read stays in the memory's read register until the beat is taken; a beat of outputs that waits keeps the
    other readers of that memory from reading.
    """

    Parameters = MixedPrecisionCoreParameters
    members_doc = {
        "start": "begin with the command",
        "command": "constant from start to done",
        "load": "load stream",
        "store": "store stream, without data",
        "memory": "which memory",
        "writes": "write the beat of the load stream to the memory",
        "write_blocked": "the memory of outputs cannot be written",
        "reads": "read the memory; the word goes to the store stream",
        "read_blocked": "the memory of outputs must not be read",
        "holds_output": "a beat of outputs waits",
        "row": "number of the beat in the command",
        "channel": "the channel that is read or written",
        "output_address": "the beat of outputs that is read or written",
        "done": "the last beat moves",
    }

    @staticmethod
    def members(p):
        return {
            "start": In(1),
            "command": In(COMMAND),
            "load": In(stream.Signature(p.beat_width)),
            "store": Out(stream.Signature(data.StructLayout({"last": 1}))),
            "memory": Out(bits_for(max(Memory))),
            "writes": Out(1),
            "write_blocked": In(1),
            "reads": Out(1),
            "read_blocked": In(1),
            "holds_output": Out(1),
            "row": Out(16),
            "channel": Out(16),
            "output_address": Out(bits_for(max(1, p.n_tiles * p.tile_beats - 1))),
            "done": Out(1),
        }

    def circuit(self):
        m = Module()
        p, command = self.parameters, self.command
        is_running, is_store, is_outputs, is_last = (
            Signal(name=name) for name in ("is_running", "is_store", "is_outputs", "is_last")
        )
        is_offered, offers_last = Signal(), Signal()
        takes = Signal()
        place, needed = Signal(16), Signal(16)
        m.d.comb += [
            is_store.eq(command.opcode == Code.STORE),
            self.memory.eq(command.function),
            is_outputs.eq(self.memory == Memory.OUTPUTS),
            place.eq(Mux(is_store, command.source, command.destination)),
            self.channel.eq(place + self.row),
            self.output_address.eq(place_of(place[: bits_for(max(1, p.n_tiles - 1))], p.tile_beats, self.row)),
            is_last.eq(self.row + 1 == needed),
        ]
        with m.If(is_outputs):
            m.d.comb += needed.eq(p.tile_beats)
        with m.Elif(self.memory == Memory.SCALES):
            m.d.comb += needed.eq(1)
        with m.Else():
            m.d.comb += needed.eq(command.count)
        m.d.comb += [
            self.load.ready.eq(is_running & ~is_store & ~(is_outputs & self.write_blocked)),
            self.writes.eq(self.load.valid & self.load.ready),
            takes.eq(self.store.valid & self.store.ready),
            self.reads.eq(is_running & is_store & (~is_offered | takes) & ~(is_outputs & self.read_blocked)),
            self.store.valid.eq(is_offered),
            self.store.payload.last.eq(offers_last),
            self.holds_output.eq(is_offered & is_outputs & ~takes),
            self.done.eq(Mux(is_store, takes & offers_last, self.writes & is_last)),
        ]
        moves = Signal()
        m.d.comb += moves.eq(self.writes | self.reads)
        m.d.sync += [
            is_offered.eq(self.reads | (is_offered & ~takes)),
            is_running.eq((is_running | self.start) & ~(moves & is_last)),
        ]
        with m.If(self.start):
            m.d.sync += self.row.eq(0)
        with m.Elif(moves):
            m.d.sync += self.row.eq(self.row + 1)
        with m.If(self.reads):
            m.d.sync += offers_last.eq(is_last)
        return m
