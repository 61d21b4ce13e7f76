"""ArrayController: executes MULTIPLY, feeding one tile to the array while the sums of the one before leave it."""

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import bits_for

from golden.spec.formats import FP16, FP32
from golden.spec.mixed_precision import GROUP
from golden.spec.mixed_precision_core import MixedPrecisionCoreParameters
from hw.lib.block import Block
from hw.units.mixed_precision_array.layouts import weight_layout
from hw.units.mixed_precision_array.unit import MixedPrecisionArray
from hw.units.mixed_precision_core.layouts import COMMAND, buffer_layout, lane_layout, place_of

__all__ = ["ArrayController"]


class ArrayController(Block):
    """Two commands can be under way: one feeds groups; of the one before the sums leave, and its outputs are read,
    added to and written back. The last group of a tile waits until the tile before is written, so that two tiles can
    follow each other on the same outputs.

    The memory of outputs has one read port: this reader goes first, and ``blocks_reads`` while a word waits.
    """

    Parameters = MixedPrecisionCoreParameters
    members_doc = {
        "start": "begin to feed the command's buffer",
        "command": "constant from start to handover",
        "tile": "of the command's buffer, constant likewise",
        "hands_over": "the last group enters: the next command may start",
        "done": "the last output of a tile is written in this clock",
        "weight": "a row of weights into the bank",
        "scales": "of each region",
        "read_lanes": "read a row of the buffers",
        "lane_address": "the row",
        "lanes": "its lanes, a clock later",
        "read_output": "read a beat of outputs",
        "output_address": "the beat",
        "output_data": "its values, a clock later",
        "is_blocked": "another reader's word waits",
        "blocks_reads": "others must not read",
        "write_output": "write a beat of outputs",
        "written_address": "the beat",
        "written_data": "its values",
    }

    @staticmethod
    def members(p):
        beat = data.ArrayLayout(FP32.width, p.n_output_lanes)
        address = bits_for(max(1, p.n_tiles * p.tile_beats - 1))
        return {
            "start": In(1),
            "command": In(COMMAND),
            "tile": In(buffer_layout(p)),
            "hands_over": Out(1),
            "done": Out(1),
            "weight": In(stream.Signature(weight_layout(p.array()))),
            "scales": In(data.ArrayLayout(data.ArrayLayout(FP16.width, p.n_columns), p.n_regions)),
            "read_lanes": Out(1),
            "lane_address": Out(bits_for(p.n_buffers * p.buffer_rows - 1)),
            "lanes": In(data.ArrayLayout(lane_layout(p), GROUP)),
            "read_output": Out(1),
            "output_address": Out(address),
            "output_data": In(beat),
            "is_blocked": In(1),
            "blocks_reads": Out(1),
            "write_output": Out(1),
            "written_address": Out(address),
            "written_data": Out(beat),
        }

    def circuit(self):
        m = Module()
        m.submodules.array = array = MixedPrecisionArray(**self.parameters.array().to_dict())
        connect(m, flipped(self.weight), array.weight)
        drains = Signal()
        self._feed(m, array, drains)
        self._drain(m, array, drains)
        return m

    def _feed(self, m, array, drains):
        """Groups of a buffer, one a clock."""
        p, command, group = self.parameters, self.command, array.group.payload
        row = Signal(bits_for(p.buffer_rows - 1))
        is_running, is_offered, is_last = Signal(name="feeds"), Signal(name="offers_group"), Signal(name="is_last")
        fetches, takes = Signal(name="fetches_group"), Signal(name="takes_group")
        m.d.comb += [
            array.group.valid.eq(is_offered & ~(is_last & drains)),
            takes.eq(array.group.valid & array.group.ready),
            fetches.eq(is_running & (~is_offered | takes)),
            self.hands_over.eq(takes & is_last),
            self.read_lanes.eq(fetches),
            self.lane_address.eq(place_of(command.buffer[: bits_for(max(1, p.n_buffers - 1))], p.buffer_rows, row)),
        ]
        ends = fetches & (row == self.tile.last_group)
        m.d.sync += [is_running.eq((is_running | self.start) & ~ends), is_offered.eq(fetches | (is_offered & ~takes))]
        with m.If(self.start):
            m.d.sync += row.eq(0)
        with m.Elif(fetches):
            m.d.sync += [row.eq(row + 1), is_last.eq(ends)]
        region = command.region[: bits_for(max(1, p.n_regions - 1))]
        m.d.comb += [group.shift.eq(self.lanes[0].shift), group.exponent.eq(self.tile.exponent), group.last.eq(is_last)]
        for lane, word in zip(group.lanes, self.lanes, strict=True):
            m.d.comb += [
                lane.digits.eq(word.digits),
                lane.address.eq(place_of(region, p.n_channels, word.channel)),
                lane.is_top.eq(word.is_top),
                lane.is_used.eq(word.is_used),
            ]

    def _drain(self, m, array, drains):
        """Outputs of the tile whose sums leave: read, added to, written."""
        p = self.parameters
        tile, region = Signal(bits_for(max(1, p.n_tiles - 1)), name="drained_tile"), Signal(4, name="drained_region")
        n_read = Signal(bits_for(p.tile_beats))
        n_written = Signal(range(max(2, p.tile_beats)))
        is_offered, takes = Signal(name="offers_output"), Signal(name="takes_output")
        m.d.comb += [
            takes.eq(array.previous.valid & array.previous.ready),
            self.read_output.eq(drains & (n_read != p.tile_beats) & (~is_offered | takes) & ~self.is_blocked),
            self.blocks_reads.eq(self.read_output | (is_offered & ~takes)),
            self.output_address.eq(place_of(tile, p.tile_beats, n_read)),
            array.previous.valid.eq(is_offered),
            array.previous.payload.eq(self.output_data),
            array.scales.eq(Array(self.scales)[region]),
            array.result.ready.eq(1),
            self.write_output.eq(array.result.valid),
            self.written_address.eq(place_of(tile, p.tile_beats, n_written)),
            self.written_data.eq(array.result.payload),
            self.done.eq(self.write_output & (n_written == p.tile_beats - 1)),
        ]
        m.d.sync += [
            drains.eq((drains & ~self.done) | self.hands_over),
            is_offered.eq(self.read_output | (is_offered & ~takes)),
        ]
        with m.If(self.hands_over):
            m.d.sync += [
                tile.eq(self.command.destination),
                region.eq(self.command.region),
                n_read.eq(0),
                n_written.eq(0),
            ]
        with m.Else():
            m.d.sync += n_read.eq(n_read + self.read_output)
            with m.If(self.write_output):
                m.d.sync += n_written.eq(n_written + 1)
