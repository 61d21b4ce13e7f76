"""ValueColumnWriter: writes groups of rows as columns of values for WEIGHTED_SUM."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.formats import FP16
from hw.top.array.plan import ArrayPlanParameters, group_width, plan_layout
from hw.top.interfaces import lane_write
from hw.top.parameters import CorePart

__all__ = ["ValueColumnWriter"]


class ValueColumnWriter(CorePart):
    """n_banks groups are a tile: one row of each bank, as :class:`~hw.top.array.hash_order.HashOrder` gives them.

    The group of bank v in the tile of slot a and group of columns s is written at once: element u into the bank of unit
    u, lane v mod L of word ``destination + (a * column_beats + v // L) * groups + s``, L = n_lanes. Lanes without a
    bank become 0. A group a clock, but for these lanes.
    """

    Parameters = ArrayPlanParameters
    latency = 0
    members_doc = {
        "start": "begin with slot 0",
        "plan": "constant from the clock after start until finished",
        "destination": "constant like the plan, and at start: first word of the columns in the banks",
        "groups": "rows of the tiles",
        "columns": "an element for every weight bank",
        "finished": "the last lane is written",
    }

    @staticmethod
    def members(p):
        return {
            "start": In(1),
            "plan": In(plan_layout(p)),
            "destination": In(16),
            "groups": In(stream.Signature(data.ArrayLayout(FP16.width, p.n_banks))),
            "columns": Out(stream.Signature(lane_write(p, p.wmem_depth, p.n_lanes))),
            "finished": Out(1),
        }

    def circuit(self):
        m = Module()
        p, plan, columns = self.parameters, self.plan, self.columns
        # The lanes of a slot: those of its banks, then those without a bank.
        lane = Signal(range(p.n_lanes))
        index = Signal(range(p.column_beats * p.n_lanes))
        group = Signal(group_width(p))
        slot = Signal.like(plan.hash.last_slot, name="slot")
        width = len(columns.payload.address)
        n_groups = Signal(width)
        first, address = (Signal(width, name=name, reset_less=True) for name in ("first", "address"))
        has_bank, moves = Signal(), Signal()
        ends_part, ends_group, ends_slot = Signal(), Signal(), Signal()
        m.d.comb += [
            n_groups.eq(plan.last_group + 1),
            has_bank.eq(index < p.n_banks),
            columns.payload.address.eq(address),
            columns.payload.lane.eq(lane),
            columns.valid.eq(Mux(has_bank, self.groups.valid, 1) & plan.kind.to_columns),
            self.groups.ready.eq(columns.ready & has_bank),
            *(
                element.eq(Mux(has_bank, value, 0))
                for element, value in zip(columns.payload.elements, self.groups.payload, strict=True)
            ),
            moves.eq(columns.valid & columns.ready),
            ends_part.eq(lane == p.n_lanes - 1),
            ends_group.eq(index == p.column_beats * p.n_lanes - 1),
            ends_slot.eq(ends_group & (group == plan.last_group)),
            self.finished.eq(moves & ends_slot & (slot == plan.hash.last_slot)),
        ]
        with m.If(self.start):
            m.d.sync += [lane.eq(0), index.eq(0), group.eq(0), slot.eq(0)]
            m.d.sync += [first.eq(self.destination), address.eq(self.destination)]
        with m.Elif(moves):
            m.d.sync += [lane.eq(Mux(ends_part, 0, lane + 1)), index.eq(Mux(ends_group, 0, index + 1))]
            with m.If(ends_part):
                m.d.sync += address.eq(address + n_groups)
            with m.If(ends_group):
                m.d.sync += [group.eq(group + 1), address.eq(first + group + 1)]
            with m.If(ends_slot):
                # The word after those of this slot's last part.
                following = address + 1
                m.d.sync += [group.eq(0), slot.eq(slot + 1), first.eq(following), address.eq(following)]
        return m
