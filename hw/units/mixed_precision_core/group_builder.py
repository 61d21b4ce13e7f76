"""GroupBuilder: sorted entries and their slices to groups of up to four slices of one key, in a buffer."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from golden.spec.mixed_precision import GROUP, SLICE_WIDTH
from golden.spec.mixed_precision_core import MixedPrecisionCoreParameters
from hw.lib.block import Block
from hw.units.mixed_precision_core.layouts import buffer_layout, lane_layout, place_of
from hw.units.mixed_precision_core.quantiser import quantizer_parameters
from hw.units.quantizer_unit.layouts import entry_layout

__all__ = ["GroupBuilder"]


class GroupBuilder(Block):
    """Takes an entry a clock, fetches its slice, and writes it to the next lane of its group.

    The first slice of a group also marks the other lanes as not used. Four slices that enter the array together so lie
    in one row of four memories, and each slice is stored once.
    """

    Parameters = MixedPrecisionCoreParameters
    members_doc = {
        "start": "begin with the entries of a tile",
        "buffer": "where the tile goes, valid with start",
        "place": "where its slices are, valid with start",
        "is_running": "from the clock after start to done",
        "entry": "sorted entries of a tile",
        "read_slice": "read a slice",
        "slice_address": "its number in the tile",
        "slice_data": "its digits, a clock later",
        "write_lane": "write to this lane",
        "lane_address": "the row",
        "lane_data": "for each lane",
        "done": "the last group is written in this clock",
        "built_buffer": "the buffer of the tile",
        "built_place": "where its slices are",
        "tile": "number of groups and exponent, valid with done",
    }

    @staticmethod
    def members(p):
        tile = quantizer_parameters(p)
        return {
            "start": In(1),
            "buffer": In(bits_for(max(1, p.n_buffers - 1))),
            "place": In(1),
            "is_running": Out(1),
            "entry": In(stream.Signature(entry_layout(tile))),
            "read_slice": Out(1),
            "slice_address": Out(tile.address_width),
            "slice_data": In(data.ArrayLayout(SLICE_WIDTH, p.n_rows)),
            "write_lane": Out(GROUP),
            "lane_address": Out(bits_for(p.n_buffers * p.buffer_rows - 1)),
            "lane_data": Out(data.ArrayLayout(lane_layout(p), GROUP)),
            "done": Out(1),
            "built_buffer": Out(bits_for(max(1, p.n_buffers - 1))),
            "built_place": Out(1),
            "tile": Out(buffer_layout(p)),
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        entry = Signal(entry_layout(quantizer_parameters(p)), reset_less=True)
        is_held = Signal()
        m.d.comb += [
            # After the last entry of a tile the next one may be that of another tile.
            self.entry.ready.eq(self.is_running & ~self.done),
            self.read_slice.eq(self.entry.valid & self.entry.ready),
            self.slice_address.eq(self.entry.payload.address),
        ]
        m.d.sync += is_held.eq(self.read_slice)
        with m.If(self.read_slice):
            m.d.sync += entry.eq(self.entry.payload)

        is_first, group = Signal(), Signal(bits_for(p.buffer_rows - 1))
        filled = Signal(range(GROUP + 1))  # lanes of the group
        opens, row, lane = Signal(), Signal.like(group), Signal(range(GROUP))
        m.d.comb += [
            opens.eq(is_first | (entry.shift != 0) | (filled == GROUP)),
            row.eq(group + (opens & ~is_first)),
            lane.eq(Mux(opens, 0, filled)),
            self.lane_address.eq(place_of(self.built_buffer, p.buffer_rows, row)),
            self.done.eq(is_held & entry.last),
            self.tile.last_group.eq(row),
            self.tile.exponent.eq(entry.exponent),
        ]
        m.d.sync += self.is_running.eq((self.is_running & ~self.done) | self.start)
        with m.If(self.start):
            m.d.sync += [
                is_first.eq(1),
                group.eq(0),
                self.built_buffer.eq(self.buffer),
                self.built_place.eq(self.place),
            ]
        with m.Elif(is_held):
            m.d.sync += [is_first.eq(0), group.eq(row), filled.eq(lane + 1)]
        for index, word in enumerate(self.lane_data):
            m.d.comb += [
                self.write_lane[index].eq(is_held & (opens | (lane == index))),
                word.digits.eq(self.slice_data),
                word.channel.eq(entry.channel),
                word.is_top.eq(entry.is_top),
                word.is_used.eq(entry.is_used & (lane == index)),
                word.shift.eq(entry.shift),
            ]
        return m
