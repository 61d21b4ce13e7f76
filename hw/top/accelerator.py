"""The accelerator: the core with its DMA, command ring, registers and interrupt."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import Out, connect

from golden.spec.accelerator.errors import AcceleratorError
from golden.spec.accelerator.parameters import DESCRIPTOR_BYTES, AcceleratorSizes
from golden.spec.commands import Unit
from golden.spec.sizes import CoreSizes
from hw.lib.block import Block
from hw.top.core import Core
from hw.top.system.axi import CONTROL_DOC, INCR, MANAGER_DOC, control_ports, manager_ports
from hw.top.system.command_fetch import CommandFetch
from hw.top.system.command_table import CommandTable
from hw.top.system.control import COUNTS, Control
from hw.top.system.dispatcher import Dispatcher
from hw.top.system.read_dma import ReadDma
from hw.top.system.registers import OKAY, Registers
from hw.top.system.sequencer import Sequencer
from hw.top.system.write_dma import WriteDma

__all__ = ["Accelerator"]


class Accelerator(Block):
    """The core in a system: descriptors from a ring in memory, data over AXI4, registers over AXI4-Lite, an interrupt.

    Results are those of one descriptor after the other; docs/system.md says how software uses it, and
    golden/spec/accelerator has descriptors and registers. Reads of descriptors have identifier 0, of data 1; writes 0.
    Every read beat and every write response is taken in the clock in which it comes. No burst crosses 4 KiB.

    Defined by :func:`golden.system.accelerator.Accelerator`.
    """

    Parameters = AcceleratorSizes
    members_doc = {
        **MANAGER_DOC,
        **{f"s_axi_{name}": text for name, text in CONTROL_DOC.items()},
        "interrupt": "1 while an event is enabled and has not been cleared",
    }

    @staticmethod
    def members(p):
        return {**manager_ports(p), **control_ports("s_axi_"), "interrupt": Out(1)}

    def circuit(self):
        m = Module()
        p = self.parameters
        sizes = {name: getattr(p, name) for name in CoreSizes.__dataclass_fields__}
        m.submodules.core = core = Core(**sizes)
        m.submodules.registers = registers = Registers()
        m.submodules.control = control = Control.for_core(p)
        m.submodules.fetch = fetch = CommandFetch.for_core(p)
        m.submodules.dispatcher = dispatcher = Dispatcher.for_core(p)
        m.submodules.table = table = CommandTable.for_core(p)
        m.submodules.read_dma = reads = ReadDma.for_core(p)
        m.submodules.write_dma = writes = WriteDma.for_core(p)
        m.submodules.sequencer = sequencer = Sequencer.for_core(p)
        connect(m, fetch.descriptor, dispatcher.descriptor)
        connect(m, dispatcher.commands, core.commands)
        connect(m, dispatcher.loads, reads.jobs)
        connect(m, dispatcher.stores, writes.jobs)
        connect(m, core.store, writes.store)
        m.d.comb += [
            core.load.payload.eq(reads.load.payload),
            core.load.valid.eq(reads.load.valid & ~sequencer.drop),
            reads.load.ready.eq(core.load.ready | sequencer.drop),
        ]
        for name, member in control_ports().items():
            outside, inside = getattr(self, f"s_axi_{name}"), getattr(registers, name)
            m.d.comb += outside.eq(inside) if member.flow is Out else inside.eq(outside)
        m.d.comb += [
            registers.values.eq(control.values),
            control.writes.eq(registers.writes),
            control.data.eq(registers.data),
            self.interrupt.eq(control.interrupt),
        ]
        self._commands(m, core, control, registers, fetch, dispatcher, table, sequencer)
        self._order(m, core, table, dispatcher, reads, writes, sequencer)
        self._bus(m, fetch, reads, writes)
        self._status(m, core, control, fetch, dispatcher, table, reads, writes, sequencer)
        return m

    def _commands(self, m, core, control, registers, fetch, dispatcher, table, sequencer):
        """Descriptors on their way to the core, and what becomes of them."""
        direct_ready = Signal()
        misuse = control.misuse
        is_fetch_error = Signal()
        m.d.comb += [
            direct_ready.eq(~control.enable & fetch.is_empty & ~sequencer.stop),
            control.direct_ready.eq(direct_ready),
            fetch.enable.eq(control.can_fetch & ~sequencer.stop),
            fetch.base.eq(control.base),
            fetch.size.eq(control.size),
            fetch.tail.eq(control.tail),
            fetch.restart.eq(control.restart),
            fetch.window.valid.eq(registers.writes.DIRECT & direct_ready),
            fetch.window.word.eq(registers.index),
            fetch.window.data.eq(registers.data),
            fetch.submit.eq(registers.writes.DIRECT_SUBMIT & direct_ready),
            fetch.drop.eq(sequencer.drop),
            dispatcher.stop.eq(sequencer.stop),
            dispatcher.clear.eq(sequencer.wipe),
            dispatcher.send_clear.eq(sequencer.send_clear),
            dispatcher.next.eq(table.next),
            dispatcher.can_add.eq(table.can_add),
            dispatcher.is_empty.eq(table.is_empty & ~table.is_pending),
            table.add.eq(dispatcher.add),
            table.in_memory.eq(dispatcher.in_memory),
            table.entry.eq(dispatcher.entry),
            table.skip.eq(dispatcher.clear_sent),
            table.hold.eq(sequencer.drop),
            table.clear.eq(sequencer.wipe),
            # The core reports every command but CLEAR, of which only one is under way.
            table.completed.valid.eq(core.completed.valid | dispatcher.is_complete),
            table.completed.slot.eq(Mux(dispatcher.is_complete, dispatcher.complete, core.completed.number)),
            is_fetch_error.eq(dispatcher.error == AcceleratorError.FETCH_RESPONSE),
            sequencer.early.eq(Mux(misuse != 0, misuse, dispatcher.error)),
            sequencer.early_number.eq(Mux(misuse != 0, 0, dispatcher.error_number)),
            sequencer.early_address.eq(
                Mux(misuse != 0, 0, Mux(is_fetch_error, control.head_address, dispatcher.error_address))
            ),
            control.takes.eq(dispatcher.takes),
            control.retires.eq(table.retires),
            control.is_ring.eq(table.retired.is_ring),
            control.interrupts.eq(table.retired.interrupt),
            control.retired_number.eq(table.retired.number),
        ]

    def _order(self, m, core, table, dispatcher, reads, writes, sequencer):
        """What is stored waits for the loads before it, so that nothing gets to memory after one that failed."""
        oldest = table.oldest

        def age(slot):
            return (slot - oldest)[: len(oldest)]

        slot = writes.next.slot
        m.d.comb += [
            table.stored.eq(writes.completed),
            table.dropped.eq(writes.dropped),
            table.refused.valid.eq(core.error != 0),
            table.refused.slot.eq(core.error_command),
            table.fault.eq(sequencer.fault),
            table.read.eq(sequencer.read),
            writes.may_begin.eq(~reads.oldest.valid | (age(reads.oldest.slot) > age(slot)) | writes.drops),
            writes.drops.eq(sequencer.fault.valid & (age(sequencer.fault.slot) < age(slot))),
            writes.stop.eq(sequencer.drop),
            reads.stop.eq(sequencer.drop),
            reads.clear.eq(sequencer.wipe),
            sequencer.load_fault.eq(reads.fault),
            sequencer.store_fault.eq(writes.fault),
            sequencer.refused.eq(table.refused),
            sequencer.reason.eq(core.error),
            sequencer.oldest.eq(oldest),
            sequencer.is_pending.eq(table.is_pending),
            sequencer.entry_number.eq(table.retired.number),
            sequencer.entry_address.eq(table.retired.address),
            sequencer.is_idle.eq(dispatcher.is_idle),
            sequencer.clear_sent.eq(dispatcher.clear_sent),
        ]

    def _bus(self, m, fetch, reads, writes):
        """The channels of the bus. Read requests of data go before those of descriptors."""
        p = self.parameters
        size = (p.bus_bytes - 1).bit_length()
        m.d.comb += [self.m_axi_bready.eq(1), self.m_axi_rready.eq(1)]
        for channel in ("aw", "ar"):
            m.d.comb += [
                getattr(self, f"m_axi_{channel}burst").eq(INCR),
                getattr(self, f"m_axi_{channel}cache").eq(0b0011),
                getattr(self, f"m_axi_{channel}size").eq(size),
            ]
        # A request that is offered stays: it is chosen when the channel is free.
        is_offered, is_data, address, length = Signal(), Signal(), Signal(p.address_width), Signal(8)
        is_free = Signal()
        m.d.comb += [
            is_free.eq(~is_offered | self.m_axi_arready),
            reads.bursts.ready.eq(is_free),
            fetch.request.ready.eq(is_free & ~reads.bursts.valid),
            self.m_axi_arvalid.eq(is_offered),
            self.m_axi_arid.eq(is_data),
            self.m_axi_araddr.eq(address),
            self.m_axi_arlen.eq(length),
        ]
        if p.bus_bytes > DESCRIPTOR_BYTES:
            m.d.comb += self.m_axi_arsize.eq(Mux(is_data, size, (DESCRIPTOR_BYTES - 1).bit_length()))
        with m.If(is_free):
            m.d.sync += [
                is_offered.eq(reads.bursts.valid | fetch.request.valid),
                is_data.eq(reads.bursts.valid),
                address.eq(Mux(reads.bursts.valid, reads.bursts.payload.address, fetch.request.payload)),
                length.eq(Mux(reads.bursts.valid, reads.bursts.payload.length, p.descriptor_beats - 1)),
            ]
        is_error = self.m_axi_rresp != OKAY
        m.d.comb += [
            fetch.words.valid.eq(self.m_axi_rvalid & ~self.m_axi_rid[0]),
            fetch.words.data.eq(self.m_axi_rdata),
            fetch.words.is_error.eq(is_error),
            fetch.words.last.eq(self.m_axi_rlast),
            reads.words.valid.eq(self.m_axi_rvalid & self.m_axi_rid[0]),
            reads.words.word.data.eq(self.m_axi_rdata),
            reads.words.word.is_error.eq(is_error),
            reads.words.word.last.eq(self.m_axi_rlast),
            self.m_axi_awvalid.eq(writes.bursts.valid),
            self.m_axi_awaddr.eq(writes.bursts.payload.address),
            self.m_axi_awlen.eq(writes.bursts.payload.length),
            writes.bursts.ready.eq(self.m_axi_awready),
            self.m_axi_wvalid.eq(writes.words.valid),
            self.m_axi_wdata.eq(writes.words.payload.data),
            self.m_axi_wstrb.eq(Cat(bit.replicate(2) for bit in writes.words.payload.enable)),
            self.m_axi_wlast.eq(writes.words.payload.last),
            writes.words.ready.eq(self.m_axi_wready),
            writes.answer.valid.eq(self.m_axi_bvalid),
            writes.answer.is_error.eq(self.m_axi_bresp != OKAY),
        ]

    def _status(self, m, core, control, fetch, dispatcher, table, reads, writes, sequencer):
        """What software reads, and what is counted."""
        is_idle, is_quiet = Signal(), Signal()
        m.d.comb += [
            is_quiet.eq(fetch.is_idle & reads.is_idle & writes.is_idle),
            is_idle.eq(
                is_quiet
                & ~table.is_pending
                & dispatcher.is_idle
                & (sequencer.is_stopped | (fetch.is_empty & ~(fetch.is_behind & control.enable)))
            ),
            sequencer.is_quiet.eq(is_quiet & fetch.is_empty),
            sequencer.clear.eq(control.clear),
            control.is_idle.eq(is_idle),
            control.status.eq(
                Cat(is_idle, sequencer.is_stopped, sequencer.is_clearing, control.direct_ready, Const(0, 4), core.busy)
            ),
            control.code.eq(sequencer.code),
            control.reason.eq(sequencer.core_reason),
            control.number.eq(sequencer.number),
            control.address.eq(sequencer.address),
            control.stops.eq(sequencer.stops),
            control.is_clearing.eq(sequencer.is_clearing),
            control.is_stopped.eq(sequencer.is_stopped),
            control.wipe.eq(sequencer.wipe),
        ]
        counts = {
            "COUNT_CLOCKS": ~is_idle,
            "COUNT_DESCRIPTORS": table.retires,
            "COUNT_READ_BEATS": reads.words.valid,
            "COUNT_WRITE_BEATS": writes.words.valid & writes.words.ready,
            "COUNT_FETCH_BEATS": fetch.words.valid,
            "COUNT_COMMAND_WAITS": dispatcher.is_idle & ~fetch.descriptor.valid & ~fetch.is_empty,
            "COUNT_CORE_WAITS": dispatcher.waits,
            "COUNT_LOAD_WAITS": core.busy[Unit.LOAD] & reads.oldest.valid & ~reads.load.valid,
            "COUNT_READ_STALLS": reads.load.valid & ~core.load.ready,
            "COUNT_STORE_WAITS": core.store.valid & ~core.store.ready,
        }
        m.d.comb += [control.counts[index].eq(counts[name]) for index, name in enumerate(COUNTS)]
