"""CommandTable: the commands that the core was given and that are not complete, retired in order."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.lib.memory import MemoryBank
from hw.top.system.parameters import SystemPart

__all__ = ["CommandTable", "entry_layout"]


def entry_layout(p):
    """What is kept of a descriptor until it is complete."""
    return data.StructLayout({"number": 32, "address": p.address_width, "interrupt": 1, "is_ring": 1})


class CommandTable(SystemPart):
    """A ring of entries. An entry is complete when each of its parts is: in the core, and in memory.

    Entries retire in order, one in two clocks at most, up to one with a fault. Entry ``i`` is older than entry ``j`` if
    it is nearer to the oldest one.
    """

    members_doc = {
        "add": "a command is given to the core; in the entry ``next``",
        "in_memory": "of that command: it is complete only when ``stored`` says so, too",
        "entry": "what is kept of it",
        "next": "the next free entry",
        "skip": "the next entry is not used",
        "can_add": "there is a free entry",
        "completed": "the core has completed a command",
        "stored": "what it stored is in memory",
        "dropped": "what it stored was dropped",
        "refused": "the core has refused this command; it and those after it will not be completed",
        "fault": "this entry, and those after it, do not retire",
        "retires": "an entry is complete, and all before it",
        "retired": "what was kept of it",
        "is_pending": "some entry is not complete, or complete and not retired though it could be",
        "is_empty": "all entries have retired",
        "read": "entry of the fault whose data are read; while nothing retires",
        "hold": "nothing retires, whatever becomes of the refusal",
        "clear": "forget all entries",
    }

    @staticmethod
    def members(p):
        slot = data.StructLayout({"valid": 1, "slot": p.slot_width})
        return {
            "add": In(1),
            "in_memory": In(1),
            "entry": In(entry_layout(p)),
            "next": Out(p.slot_width),
            "skip": In(1),
            "can_add": Out(1),
            "completed": In(slot),
            "stored": In(slot),
            "dropped": In(slot),
            "refused": In(slot),
            "fault": In(slot),
            "retires": Out(1),
            "retired": Out(entry_layout(p)),
            "is_pending": Out(1),
            "is_empty": Out(1),
            "oldest": Out(p.slot_width),
            "read": In(slot),
            "hold": In(1),
            "clear": In(1),
        }

    members_doc["oldest"] = "the oldest entry"

    def circuit(self):
        m = Module()
        p, n = self.parameters, self.parameters.n_slots
        head, tail, level = Signal(p.slot_width), Signal(p.slot_width), Signal(range(n + 1))
        in_core, in_memory = Signal(n), Signal(n)
        pops, is_reading, is_blocked = Signal(), Signal(), Signal()
        layout = entry_layout(p)
        m.submodules.entries = entries = MemoryBank(depth=n, width=layout.size)
        m.d.comb += [
            self.next.eq(tail),
            self.oldest.eq(head),
            self.can_add.eq(level < n - 1),
            self.is_empty.eq(level == 0),
            self.is_pending.eq((in_core | in_memory).any() | pops | is_reading),
            is_blocked.eq(
                (self.fault.valid & (self.fault.slot == head)) | (self.refused.valid & (self.refused.slot == head))
            ),
            pops.eq(
                (level != 0)
                & ~self.hold
                & ~is_blocked
                & ~is_reading
                & ~self.read.valid
                & ~Array(in_core | in_memory)[head]
            ),
            entries.write_enable.eq(self.add),
            entries.write_address.eq(tail),
            entries.write_data.eq(self.entry),
            entries.read_enable.eq(pops | self.read.valid),
            entries.read_address.eq(Mux(self.read.valid, self.read.slot, head)),
            self.retires.eq(is_reading),
            self.retired.eq(entries.read_data),
        ]
        m.d.sync += [
            is_reading.eq(pops),
            head.eq(head + (pops | self.skip)),
            tail.eq(tail + (self.add | self.skip)),
            level.eq(level + self.add - pops),
        ]
        for i in range(n):
            adds, is_dead = Signal(name=f"adds_{i}"), Signal(name=f"is_dead_{i}")
            age = Signal(p.slot_width, name=f"age_{i}")
            m.d.comb += [
                adds.eq(self.add & (tail == i)),
                age.eq(i - head),
                is_dead.eq(self.refused.valid & (age >= (self.refused.slot - head)[: p.slot_width])),
            ]
            with m.If(adds):
                m.d.sync += [in_core[i].eq(1), in_memory[i].eq(self.in_memory)]
            with m.Elif(is_dead | self.clear):
                m.d.sync += [in_core[i].eq(0), in_memory[i].eq(0)]
            with m.Else():
                with m.If(self.completed.valid & (self.completed.slot == i)):
                    m.d.sync += in_core[i].eq(0)
                with m.If(
                    (self.stored.valid & (self.stored.slot == i)) | (self.dropped.valid & (self.dropped.slot == i))
                ):
                    m.d.sync += in_memory[i].eq(0)
        with m.If(self.clear):
            m.d.sync += [head.eq(tail), level.eq(0)]
        return m
