"""HashOrder: the order of PROJECT's groups of rows, such that each tile has one row for every bank."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hw.top.array.plan import ArrayPlanParameters, item_layout, plan_layout
from hw.top.parameters import CorePart
from hw.units.hash_bank_mapper.unit import HashBankMapper

__all__ = ["HashOrder"]


class HashOrder(CorePart):
    """For each slot a, for each group of columns, for each bank v: the row that belongs to slot a of bank v.

    The mapper's indices have as many bits as the largest number of rows needs. With fewer rows, n rounded up to w bits,
    the slot and the resulting row are shifted left by the difference s: ``(j << s) * k = (j * k mod 2**w) << s`` modulo
    ``2**(w + s)``. Items are empty for rows from ``n_rows`` on, and for groups of padding only.

    One item a clock, once the mapper has the inverse of the multiplier. Source of the order: DiSC, figure 16.
    """

    Parameters = ArrayPlanParameters
    members_doc = {
        "start": "begin with the first item",
        "plan": "constant from the clock after start to the last item",
        "multiplier": "k, of which bit 0 is taken as 1; constant like the plan",
        "n_rows": "constant like the plan",
        "items": "groups of rows",
    }

    @staticmethod
    def members(p):
        return {
            "start": In(1),
            "plan": In(plan_layout(p)),
            "multiplier": In(16),
            "n_rows": In(16),
            "items": Out(stream.Signature(item_layout(p))),
        }

    def circuit(self):
        m = Module()
        p, plan = self.parameters, self.plan
        m.submodules.mapper = mapper = HashBankMapper(
            n_columns=1 << p.hash_width, n_banks=self.n_banks, multiplier="runtime", direction="inverse"
        )
        is_running = Signal()
        bank = Signal(range(self.n_banks))
        group = Signal(len(self.items.payload.group))
        slot = Signal(ceil_log2(p.key_slots))
        requests, ends_tile, ends_slot = Signal(), Signal(), Signal()
        group_asked = Signal.like(group, reset_less=True)
        m.d.comb += [
            mapper.hash_multiplier.eq(self.multiplier),
            mapper.slot.valid.eq(is_running),
            mapper.slot.payload.bank[0].eq(bank),
            mapper.slot.payload.address[0].eq(slot << plan.hash.shift),
            requests.eq(is_running & mapper.slot.ready),
            ends_tile.eq(bank == self.n_banks - 1),
            ends_slot.eq(ends_tile & (group == plan.last_group)),
        ]
        with m.If(self.start):
            m.d.sync += [is_running.eq(1), bank.eq(0), group.eq(0), slot.eq(0)]
        with m.Elif(requests):
            m.d.sync += [bank.eq(bank + 1), group_asked.eq(group)]
            with m.If(ends_tile):
                m.d.sync += group.eq(Mux(ends_slot, 0, group + 1))
            with m.If(ends_slot):
                m.d.sync += [slot.eq(slot + 1), is_running.eq(slot != plan.hash.last_slot)]

        row = Signal(p.hash_width)
        item = self.items.payload
        m.d.comb += [
            row.eq(mapper.column.payload.index[0] >> plan.hash.shift),
            item.row.eq(row),
            item.group.eq(group_asked),
            item.is_empty.eq((row >= self.n_rows) | (group_asked > plan.columns.last)),
            self.items.valid.eq(mapper.column.valid),
            mapper.column.ready.eq(self.items.ready),
        ]
        return m
