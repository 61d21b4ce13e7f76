"""ColumnWriter: transposes groups of rows through the aligner and writes the columns to banks of keys or values."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from hw.top.array.plan import ArrayPlanParameters, group_width, plan_layout
from hw.top.interfaces import lane_write, value_write
from hw.top.parameters import CorePart, VmemDepth
from hw.units.data_aligner.unit import DataAligner

__all__ = ["ColumnWriter"]


@dataclass(frozen=True, kw_only=True)
class ColumnWriterParameters(VmemDepth, ArrayPlanParameters):
    pass


class ColumnWriter(CorePart):
    """n_banks groups are a tile: one row of each bank, as :class:`~hw.top.array.hash_order.HashOrder` gives them.

    Column u of the tile of slot a and group s is element e = s * n_banks + u of the rows at slot a, one for every bank:
    lane e mod L of word ``destination + (e // L) * slots + a``, where L is n_lanes for keys and simd_lanes for values.
    Elements beyond the last word that PROJECT writes are dropped. One column a clock.
    """

    Parameters = ColumnWriterParameters
    latency = DataAligner.latency
    members_doc = {
        "start": "begin with slot 0; the aligner must be empty",
        "plan": "constant from the clock after start until finished",
        "destination": "constant like the plan, and at start: first word of the matrix in the banks",
        "groups": "rows of the tiles",
        "keys": "an element for every weight bank",
        "values": "an element for every engine's bank",
        "finished": "the last column is written",
    }

    @staticmethod
    def members(p):
        return {
            "start": In(1),
            "plan": In(plan_layout(p)),
            "destination": In(16),
            "groups": In(stream.Signature(data.ArrayLayout(FP16.width, p.n_banks))),
            "keys": Out(stream.Signature(lane_write(p, p.wmem_depth, p.n_lanes))),
            "values": Out(stream.Signature(value_write(p))),
            "finished": Out(1),
        }

    def circuit(self):
        m = Module()
        m.submodules.aligner = aligner = DataAligner(n=self.n_banks, width=FP16.width)
        columns = aligner.columns
        is_used = Signal()  # the column is not beyond the last word
        taken = Signal()
        address, lane = self._next_position(m, taken, is_used)
        m.d.comb += [
            aligner.rows.payload.eq(self.groups.payload),
            aligner.rows.valid.eq(self.groups.valid),
            self.groups.ready.eq(aligner.rows.ready),
            columns.ready.eq(~is_used | Mux(self.plan.kind.to_values, self.values.ready, self.keys.ready)),
            taken.eq(columns.valid & columns.ready),
        ]
        for port, is_chosen in ((self.keys, ~self.plan.kind.to_values), (self.values, self.plan.kind.to_values)):
            m.d.comb += [
                port.payload.elements.eq(columns.payload),
                port.payload.address.eq(address),
                port.payload.lane.eq(lane),
                port.valid.eq(columns.valid & is_used & is_chosen),
            ]
        return m

    def _next_position(self, m, taken, is_used):
        """Address and lane of the next column: word by word within a slot, then the next slot."""
        plan = self.plan
        width = max(len(self.keys.payload.address), len(self.values.payload.address))
        first, address = (Signal(width, name=name, reset_less=True) for name in ("first", "address"))
        place = Signal(range(self.n_banks))
        group = Signal(group_width(self.parameters))
        slot = Signal.like(plan.hash.last_slot, name="slot")
        lane = Signal.like(plan.last_lane, name="lane")
        chunk = Signal.like(plan.last_chunk, name="chunk")
        ends_slot, ends_word = Signal(), Signal()
        m.d.comb += [
            ends_word.eq(lane == plan.last_lane),
            ends_slot.eq((place == self.n_banks - 1) & (group == plan.last_group)),
            self.finished.eq(taken & ends_slot & (slot == plan.hash.last_slot)),
        ]
        with m.If(self.start):
            m.d.sync += [
                first.eq(self.destination),
                address.eq(self.destination),
                place.eq(0),
                group.eq(0),
                slot.eq(0),
                lane.eq(0),
                chunk.eq(0),
                is_used.eq(1),
            ]
        with m.Elif(taken):
            m.d.sync += [place.eq(place + 1), lane.eq(Mux(ends_word, 0, lane + 1))]
            with m.If(place == self.n_banks - 1):
                m.d.sync += group.eq(group + 1)
            with m.If(ends_word):
                m.d.sync += [chunk.eq(chunk + 1), address.eq(address + plan.hash.last_slot + 1)]
                with m.If(chunk == plan.last_chunk):
                    m.d.sync += is_used.eq(0)
            with m.If(ends_slot):
                m.d.sync += [
                    first.eq(first + 1),
                    address.eq(first + 1),
                    group.eq(0),
                    slot.eq(slot + 1),
                    lane.eq(0),
                    chunk.eq(0),
                    is_used.eq(1),
                ]
        return address, lane
