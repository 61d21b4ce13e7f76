"""MaskFeeder: selects the keys or columns of the dot-product units for a row or a group of it."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.top.array.plan import ArrayPlanParameters, item_layout, plan_layout
from hw.top.interfaces import mask_read
from hw.top.parameters import CorePart

__all__ = ["MaskFeeder"]


class MaskFeeder(CorePart):
    """SDDMM: the row's mask, limited to slots with keys. MATMUL: all columns. PROJECT: those of one group.

    One row or group a clock; nothing is sent for empty items.
    """

    Parameters = ArrayPlanParameters
    latency = 0
    members_doc = {
        "items": "rows, or groups of them",
        "plan": "constant while there are items",
        "mask": "rows of the mask memory",
        "bitmap": "for each unit one bit a slot",
    }

    @staticmethod
    def members(p):
        bitmap = data.StructLayout({"bitmap": data.ArrayLayout(p.array_slots, p.n_banks)})
        return {
            "items": In(stream.Signature(item_layout(p))),
            "plan": In(plan_layout(p)),
            "mask": Out(mask_read(p)),
            "bitmap": Out(stream.Signature(bitmap)),
        }

    def circuit(self):
        m = Module()
        plan, item = self.plan, self.items.payload
        reads, sends = Signal(), Signal()
        slots = Signal(self.parameters.array_slots)  # for a product: all, or that of the group
        m.d.comb += [
            reads.eq(self.items.valid & plan.kind.sddmm),
            sends.eq(self.items.valid & ~plan.kind.sddmm & ~item.is_empty),
            self.mask.address.valid.eq(reads),
            self.mask.address.payload.eq(Mux(plan.mask.is_common, 0, plan.mask.first + item.row)),
            self.bitmap.valid.eq(Mux(plan.kind.sddmm, self.mask.word.valid, sends)),
            self.mask.word.ready.eq(self.bitmap.ready & plan.kind.sddmm),
            self.items.ready.eq(Mux(plan.kind.sddmm, self.mask.address.ready, self.bitmap.ready | item.is_empty)),
            *(bit.eq(~plan.kind.project | (item.group == slot)) for slot, bit in enumerate(slots)),
        ]
        for unit, bits in enumerate(self.bitmap.payload.bitmap):
            columns = plan.columns.full
            if unit < self.n_banks - 1:
                columns = columns | (plan.columns.partial & plan.columns.units[unit].replicate(len(slots)))
            keys = self.mask.word.payload.word_select(unit, self.parameters.key_slots) & Cat(1, plan.mask.slots)
            m.d.comb += bits.eq(Mux(plan.kind.sddmm, keys, columns & slots))
        return m
