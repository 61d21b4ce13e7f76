"""Delays the beats of a row until a statistic of the whole row is available."""

from dataclasses import dataclass

from amaranth.hdl import Module
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.parameters import Parameters, integer
from hw.lib.block import Block
from hw.lib.stream import StreamQueue

__all__ = ["RowBuffer"]


@dataclass(frozen=True, kw_only=True)
class RowBufferParameters(Parameters):
    width: int = integer(16, low=1, high=(1 << 16) - 1, doc="bits of a beat")
    statistic_width: int = integer(16, low=1, high=1024, doc="bits of the statistic")
    depth: int = integer(4, low=3, high=1 << 16, doc="beats held")

    @property
    def beat(self):
        return data.StructLayout({"beat": self.width, "last": 1})

    @property
    def row(self):
        return data.StructLayout({"beat": self.width, "last": 1, "statistic": self.statistic_width})


class RowBuffer(Block):
    """Outputs the beats of a row once the row's ``statistic`` has arrived, each with that statistic.

    Statistics come in the order of the rows and are always accepted: there are never more of them than buffered beats,
    since each row has at least one beat that waits for its own.

    While the sink is ready only beats of incomplete rows remain: a buffer for the beats of a row and those that arrive
    until its statistic is used, two clocks after it came, never stalls the source.
    """

    Parameters = RowBufferParameters
    members_doc = {
        "source": "beats of rows, the last one of a row marked",
        "statistic": "statistic of the next row",
        "statistic_valid": "there is a statistic",
        "row": "the same beats, each with its row's statistic",
    }
    latency = 2
    """Clocks from a row's statistic to its first beat."""

    @staticmethod
    def members(p):
        return {
            "source": In(stream.Signature(p.beat)),
            "statistic": In(p.statistic_width),
            "statistic_valid": In(1),
            "row": Out(stream.Signature(p.row)),
        }

    def circuit(self):
        m = Module()
        m.submodules.beats = beats = StreamQueue(width=self.width + 1, depth=self.depth, storage="memory")
        m.submodules.statistics = statistics = StreamQueue(
            width=self.statistic_width, depth=self.depth, storage="memory"
        )
        beat = data.View(self.parameters.beat, beats.sink.payload)
        m.d.comb += [
            beats.source.payload.eq(self.source.payload),
            beats.source.valid.eq(self.source.valid),
            self.source.ready.eq(beats.source.ready),
            statistics.source.payload.eq(self.statistic),
            statistics.source.valid.eq(self.statistic_valid),
            self.row.payload.beat.eq(beat.beat),
            self.row.payload.last.eq(beat.last),
            self.row.payload.statistic.eq(statistics.sink.payload),
            self.row.valid.eq(beats.sink.valid & statistics.sink.valid),
            beats.sink.ready.eq(self.row.valid & self.row.ready),
            statistics.sink.ready.eq(beats.sink.ready & beat.last),
        ]
        return m
