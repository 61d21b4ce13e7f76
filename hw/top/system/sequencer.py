"""Sequencer: what the accelerator does next: run, stop for an error, CLEAR; which error is told."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from golden.spec.accelerator.errors import AcceleratorError
from hw.top.system.layouts import fault
from hw.top.system.parameters import SystemPart

__all__ = ["Sequencer"]


class Sequencer(SystemPart):
    """Collects errors and tells the first one in the order of the commands when all that was begun is complete.

    Errors of descriptors come after all commands that were given to the core. Of the others the one of the oldest entry
    counts, and of one entry the core's refusal. Entries are compared by their distance from the oldest one.
    """

    members_doc = {
        "early": "an error of a descriptor, or of the ring; 0: none",
        "early_number": "its number",
        "early_address": "its address",
        "load_fault": "a response was an error",
        "store_fault": "a response was an error",
        "refused": "the core has refused a command",
        "reason": "why",
        "oldest": "the oldest entry of the table",
        "is_pending": "a command is not complete",
        "entry_number": "number of the entry that was read",
        "entry_address": "its address",
        "read": "entry to read: that of the error",
        "fault": "the oldest entry with an error of the bus",
        "is_idle": "nothing is under way in dispatcher, table, fetch and DMA",
        "is_quiet": "nothing is under way on the bus, nor waits in a DMA or was read ahead",
        "clear": "software asks for CLEAR",
        "stop": "give the core nothing further",
        "drop": "take what comes and drop it",
        "wipe": "forget everything: last clock of CLEAR",
        "send_clear": "the core is to get a CLEAR",
        "clear_sent": "it has executed it",
        "is_stopped": "stopped: the error is valid",
        "is_clearing": "a CLEAR is under way",
        "stops": "it stops in this clock",
        "code": "the error",
        "core_reason": "of REFUSED",
        "number": "of the descriptor",
        "address": "of the error",
    }

    @staticmethod
    def members(p):
        slot = data.StructLayout({"valid": 1, "slot": p.slot_width})
        return {
            "early": In(8),
            "early_number": In(32),
            "early_address": In(64),
            "load_fault": In(fault(p)),
            "store_fault": In(fault(p)),
            "refused": In(slot),
            "reason": In(4),
            "oldest": In(p.slot_width),
            "is_pending": In(1),
            "entry_number": In(32),
            "entry_address": In(p.address_width),
            "read": Out(slot),
            "fault": Out(slot),
            "is_idle": In(1),
            "is_quiet": In(1),
            "clear": In(1),
            "stop": Out(1),
            "drop": Out(1),
            "wipe": Out(1),
            "send_clear": Out(1),
            "clear_sent": In(1),
            "is_stopped": Out(1),
            "is_clearing": Out(1),
            "stops": Out(1),
            "code": Out(8),
            "core_reason": Out(8),
            "number": Out(32),
            "address": Out(64),
        }

    def circuit(self):
        m = Module()
        p = self.parameters
        held, code = Signal(fault(p)), Signal(8)  # the oldest fault of the bus
        m.d.comb += [self.fault.valid.eq(held.valid), self.fault.slot.eq(held.slot)]

        def age(slot):
            return (slot - self.oldest)[: p.slot_width]

        for item, its_code in (
            (self.store_fault, AcceleratorError.STORE_RESPONSE),
            (self.load_fault, AcceleratorError.LOAD_RESPONSE),
        ):
            with m.If(item.valid & (~held.valid | (age(item.slot) < age(held.slot)))):
                m.d.sync += [held.eq(item), code.eq(its_code)]
        # Both at once: the older one, which the next clock cannot tell.
        both = self.store_fault.valid & self.load_fault.valid & ~held.valid
        with m.If(both & (age(self.store_fault.slot) < age(self.load_fault.slot))):
            m.d.sync += [held.eq(self.store_fault), code.eq(AcceleratorError.STORE_RESPONSE)]

        has_error, is_refused = Signal(), Signal()
        m.d.comb += [
            has_error.eq(held.valid | self.refused.valid | (self.early != 0)),
            is_refused.eq(self.refused.valid & (~held.valid | (age(self.refused.slot) <= age(held.slot)))),
            self.read.slot.eq(Mux(is_refused, self.refused.slot, held.slot)),
        ]
        ended, needs_clear = Signal(), Signal()
        m.d.comb += ended.eq(~self.is_pending & self.is_idle)
        with m.FSM():
            with m.State("RUN"):
                m.d.comb += self.stop.eq(has_error)
                with m.If(has_error | self.clear):
                    m.d.sync += needs_clear.eq(self.clear)
                    m.next = "STOPPING"
            with m.State("STOPPING"):
                m.d.comb += self.stop.eq(1)
                with m.If(self.clear):
                    m.d.sync += needs_clear.eq(1)
                with m.If(ended):
                    m.next = "LOOK"
            with m.State("LOOK"):
                m.d.comb += [self.stop.eq(1), self.read.valid.eq(1)]
                m.next = "TELL"
            with m.State("TELL"):
                m.d.comb += self.stop.eq(1)
                with m.If(needs_clear):
                    m.next = "DROP"
                with m.Else():
                    m.d.comb += self.stops.eq(1)
                    m.d.sync += [
                        self.core_reason.eq(Mux(is_refused, self.reason, 0)),
                        self.number.eq(self.entry_number),
                        self.address.eq(self.entry_address),
                    ]
                    with m.If(is_refused):
                        m.d.sync += self.code.eq(AcceleratorError.REFUSED)
                    with m.Elif(held.valid):
                        m.d.sync += [self.code.eq(code), self.address.eq(held.address)]
                    with m.Else():
                        m.d.sync += [
                            self.code.eq(self.early),
                            self.number.eq(self.early_number),
                            self.address.eq(self.early_address),
                        ]
                    m.next = "STOPPED"
            with m.State("STOPPED"):
                m.d.comb += [self.stop.eq(1), self.is_stopped.eq(1)]
                with m.If(self.clear):
                    m.next = "DROP"
            with m.State("DROP"):
                m.d.comb += [self.stop.eq(1), self.drop.eq(1)]
                with m.If(self.is_quiet):
                    m.next = "WIPE"
                    with m.If(self.refused.valid):
                        m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += [self.stop.eq(1), self.drop.eq(1), self.send_clear.eq(1)]
                with m.If(self.clear_sent):
                    m.next = "WIPE"
            with m.State("WIPE"):
                m.d.comb += [self.stop.eq(1), self.drop.eq(1), self.wipe.eq(1)]
                m.d.sync += [needs_clear.eq(0), held.valid.eq(0)]
                m.d.sync += [self.code.eq(0), self.core_reason.eq(0), self.number.eq(0), self.address.eq(0)]
                m.next = "RUN"
        is_clearing = Signal()
        m.d.comb += self.is_clearing.eq(is_clearing)
        with m.If(self.wipe):
            m.d.sync += is_clearing.eq(0)
        with m.Elif(self.clear):
            m.d.sync += is_clearing.eq(1)
        return m
