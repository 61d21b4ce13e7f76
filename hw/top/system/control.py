"""Control: the registers of the ring, interrupts and counters behind the table of registers."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from golden.spec.accelerator.errors import AcceleratorError
from golden.spec.accelerator.parameters import DESCRIPTOR_BYTES, AcceleratorSizes
from golden.spec.accelerator.registers import REGISTERS, register
from hw.top.parameters import CorePart
from hw.top.system.registers import CONSTANTS, READABLE, WRITABLE

__all__ = ["COUNTS", "Control", "ControlParameters"]

COUNTS = tuple(item.name for item in REGISTERS if item.name.startswith("COUNT_"))


@dataclass(frozen=True, kw_only=True)
class ControlParameters(AcceleratorSizes):
    pass


class Control(CorePart):
    """Holds what software sets, counts what happens, and says what every register reads as."""

    Parameters = ControlParameters
    members_doc = {
        "values": "what is read",
        "writes": "a register is written",
        "data": "what is written",
        "status": "STATUS",
        "code": "ERROR.code",
        "reason": "ERROR.reason",
        "number": "ERROR_NUMBER",
        "address": "ERROR_ADDRESS",
        "stops": "it stops with an error",
        "takes": "a descriptor of the ring is taken",
        "retires": "a descriptor is complete",
        "is_ring": "and came from the ring",
        "interrupts": "and asks for an interrupt",
        "retired_number": "and has this number",
        "is_clearing": "a CLEAR is under way",
        "wipe": "its last clock",
        "is_stopped": "stopped with an error",
        "direct_ready": "the window takes a descriptor",
        "is_idle": "nothing is under way",
        "counts": "what to count in this clock",
        "enable": "CONTROL.enable",
        "can_fetch": "fetch from the ring",
        "base": "of the ring",
        "size": "log2 of it",
        "tail": "descriptors that are there",
        "head_address": "of the descriptor that is taken next",
        "restart": "the ring begins anew",
        "clear": "software asks for CLEAR",
        "misuse": "an error of the ring or the window",
        "interrupt": "the interrupt",
    }

    @staticmethod
    def members(p):
        return {
            "values": Out(data.StructLayout({item.name: 32 for item in READABLE})),
            "writes": In(data.StructLayout({item.name: 1 for item in WRITABLE})),
            "data": In(32),
            "status": In(32),
            "code": In(8),
            "reason": In(8),
            "number": In(32),
            "address": In(64),
            "stops": In(1),
            "takes": In(1),
            "retires": In(1),
            "is_ring": In(1),
            "interrupts": In(1),
            "retired_number": In(32),
            "is_clearing": In(1),
            "wipe": In(1),
            "is_stopped": In(1),
            "direct_ready": In(1),
            "is_idle": In(1),
            "counts": In(len(COUNTS)),
            "enable": Out(1),
            "can_fetch": Out(1),
            "base": Out(p.address_width),
            "size": Out(5),
            "tail": Out(32),
            "head_address": Out(64),
            "restart": Out(1),
            "clear": Out(1),
            "misuse": Out(8),
            "interrupt": Out(1),
        }

    def circuit(self):
        m = Module()
        values, writes, word = self.values, self.writes, self.data
        for item in CONSTANTS:
            number = 0
            for part in item.fields:
                number |= (
                    getattr(self.parameters, part.reset) if isinstance(part.reset, str) else part.reset
                ) << part.low
            m.d.comb += values[item.name].eq(number)
        control = register("CONTROL")
        enable = Signal()
        with m.If(writes.CONTROL):
            m.d.sync += enable.eq(word[control["enable"].low])
        m.d.comb += [
            self.enable.eq(enable),
            values.CONTROL.eq(enable << control["enable"].low),
            self.clear.eq(writes.CONTROL & word[control["clear"].low]),
            values.STATUS.eq(self.status),
            values.ERROR.eq(Cat(self.code, self.reason)),
            values.ERROR_NUMBER.eq(self.number),
            values.ERROR_ADDRESS_LOW.eq(self.address[:32]),
            values.ERROR_ADDRESS_HIGH.eq(self.address[32:]),
        ]
        drained = self._ring(m)
        self._interrupts(m, drained)
        self._counters(m, writes.CONTROL & word[control["clear_counters"].low])
        return m

    def _ring(self, m):
        """Pointers of the ring; returns whether it has become empty in this clock."""
        p, values, writes, word = self.parameters, self.values, self.writes, self.data
        base, size = Signal(64), Signal(5)
        head, tail, done = Signal(32), Signal(32), Signal(32)
        done_number = Signal(32)
        may_set, restart, completes = Signal(), Signal(), Signal()
        m.d.comb += [
            may_set.eq(~self.enable & self.is_idle),
            restart.eq((writes.RING_SIZE & may_set) | self.wipe),
            completes.eq(self.retires & self.is_ring),
            self.restart.eq(restart),
            self.base.eq(base),
            self.size.eq(size),
            self.tail.eq(tail),
            values.RING_BASE_LOW.eq(base[:32]),
            values.RING_BASE_HIGH.eq(base[32:]),
            values.RING_SIZE.eq(size),
            values.HEAD.eq(head),
            values.TAIL.eq(tail),
            values.DONE.eq(done),
            values.DONE_NUMBER.eq(done_number),
        ]
        for name, part in (("RING_BASE_LOW", base[:32]), ("RING_BASE_HIGH", base[32:]), ("RING_SIZE", size)):
            with m.If(writes[name] & may_set):
                m.d.sync += part.eq(word)
        with m.If((writes.TAIL | writes.DOORBELL) & ~self.is_clearing):
            m.d.sync += tail.eq(Mux(writes.DOORBELL, tail + word, word))
        m.d.sync += [head.eq(head + self.takes), done.eq(done + completes)]
        with m.If(self.retires):
            m.d.sync += done_number.eq(self.retired_number)
        with m.If(restart):
            m.d.sync += [head.eq(0), tail.eq(0), done.eq(0)]

        # What software did wrong; looked at a clock later.
        is_base_wrong = base[:6].any() | (base[p.address_width :].any() if p.address_width < 64 else 0)
        is_base_right = Signal()
        m.d.sync += is_base_right.eq(~is_base_wrong)
        waiting, is_too_far, misuse = Signal(32), Signal(), Signal(8)
        slots = Signal(max(32, p.max_ring_log2 + 1))
        m.d.comb += [
            waiting.eq(tail - done),
            slots.eq(1 << size),
            is_too_far.eq((waiting > slots) | (size > p.max_ring_log2)),
            self.misuse.eq(misuse),
            self.can_fetch.eq(is_base_right & self.enable & (misuse == 0)),
            self.head_address.eq((base + ((head & (slots - 1)[:32]) * DESCRIPTOR_BYTES))[: p.address_width]),
        ]
        with m.If(self.wipe):
            m.d.sync += misuse.eq(0)
        with m.Elif((misuse == 0) & ~self.is_stopped & ~self.is_clearing):
            with m.If(self.enable & (waiting != 0)):
                with m.If(is_too_far):
                    m.d.sync += misuse.eq(AcceleratorError.RING_RANGE)
                with m.Elif(is_base_wrong):
                    m.d.sync += misuse.eq(AcceleratorError.RING_ALIGNMENT)
            with m.If((writes.DIRECT | writes.DIRECT_SUBMIT) & ~self.direct_ready):
                m.d.sync += misuse.eq(AcceleratorError.DIRECT_BUSY)
        return completes & (done + 1 == tail)

    def _interrupts(self, m, drained):
        values, writes, word = self.values, self.writes, self.data
        enabled, happened = Signal(3), Signal(3)
        m.d.comb += [
            values.INTERRUPT_ENABLE.eq(enabled),
            values.INTERRUPT_STATUS.eq(happened),
            self.interrupt.eq((enabled & happened).any()),
        ]
        with m.If(writes.INTERRUPT_ENABLE):
            m.d.sync += enabled.eq(word)
        happens = {"command": self.retires & self.interrupts, "error": self.stops, "idle": drained}
        events = Cat(happens[part.name] for part in register("INTERRUPT_STATUS").fields)
        m.d.sync += happened.eq(happened & ~Mux(writes.INTERRUPT_STATUS, word[:3], 0) | events)

    def _counters(self, m, clear):
        for index, name in enumerate(COUNTS):
            total, step = Signal(32, name=name.lower()), Signal(name=f"{name.lower()}_now")
            m.d.sync += [step.eq(self.counts[index]), total.eq(total + step)]
            with m.If(clear):
                m.d.sync += [total.eq(0), step.eq(0)]
            m.d.comb += self.values[name].eq(total)
