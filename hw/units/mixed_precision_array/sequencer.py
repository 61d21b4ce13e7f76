"""GroupSequencer: from groups of slices to one step of the array a clock: shift, add, or nothing."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.mixed_precision_array import ArrayParameters
from hw.lib.block import Block
from hw.units.mixed_precision_array.layouts import group_layout

__all__ = ["STEP", "GroupSequencer"]

STEP = data.StructLayout({"adds": 1, "doubles": 1, "is_first": 1, "is_last": 1})
"""Step of the array: add a group (the first one of a tile clears the old sums), double the sums, or nothing."""


class GroupSequencer(Block):
    """Accepts a group, doubles the sums once for each bit of its shift, then issues it.

    The last group of a tile waits until the sums of the tile before have left the array.
    """

    Parameters = ArrayParameters
    members_doc = {
        "group": "groups of slices",
        "drained": "the sums of a tile have left the array",
        "step": "operation of this clock; the group's slices enter if it adds",
    }

    @staticmethod
    def members(p):
        return {"group": In(stream.Signature(group_layout(p))), "drained": In(1), "step": Out(STEP)}

    def circuit(self):
        m = Module()
        group = self.group.payload
        shifted = Signal.like(group.shift)
        is_open = Signal()
        is_draining = Signal()
        shifts = Signal()
        m.d.comb += [
            shifts.eq(self.group.valid & (shifted != group.shift)),
            self.step.doubles.eq(shifts & is_open),
            self.step.adds.eq(self.group.valid & ~shifts & ~(group.last & is_draining)),
            self.step.is_first.eq(~is_open),
            self.step.is_last.eq(group.last),
            self.group.ready.eq(self.step.adds),
        ]
        m.d.sync += shifted.eq(Mux(self.step.adds, 0, shifted + shifts))
        with m.If(self.step.adds):
            m.d.sync += is_open.eq(~group.last)
        m.d.sync += is_draining.eq((is_draining & ~self.drained) | (self.step.adds & group.last))
        return m
