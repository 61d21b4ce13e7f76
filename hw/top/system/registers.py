"""Registers: the AXI4-Lite side of the table of registers."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from golden.spec.accelerator.registers import REGISTERS, SPACE_BYTES, Access
from golden.spec.parameters import NoParameters
from hw.lib.block import Block
from hw.top.system.axi import CONTROL_DOC, control_ports

__all__ = ["CONSTANTS", "OKAY", "READABLE", "Registers", "SLVERR", "WRITABLE"]

OKAY, SLVERR = 0, 2
_ADDRESS = (SPACE_BYTES - 1).bit_length()

READABLE = tuple(r for r in REGISTERS if any(part.access != Access.WO for part in r.fields))
WRITABLE = tuple(r for r in REGISTERS if any(part.access != Access.RO for part in r.fields))
CONSTANTS = tuple(
    r
    for r in READABLE
    if any(part.reset for part in r.fields)
    and all(part.access == Access.RO for part in r.fields)
    and r.name != "STATUS"
)
"""Registers that hold sizes and numbers of this accelerator."""


class Registers(Block):
    """Answers AXI4-Lite reads from ``values`` and tells writes, each in one clock.

    One read and one write at a time; a read takes three clocks. A write of less than the whole word, or an access where
    no register is, has no effect and is answered with SLVERR.
    """

    Parameters = NoParameters
    members_doc = {
        **CONTROL_DOC,
        "values": "what is read",
        "writes": "a register is written in this clock",
        "index": "which of several of that name",
        "data": "what is written",
    }

    @staticmethod
    def members(p):
        return {
            **control_ports(),
            "values": In(data.StructLayout({item.name: 32 for item in READABLE})),
            "writes": Out(data.StructLayout({item.name: 1 for item in WRITABLE})),
            "index": Out(4),
            "data": Out(32),
        }

    def circuit(self):
        m = Module()
        self._write(m)
        self._read(m)
        return m

    def _write(self, m):
        has_address, has_data = Signal(), Signal()
        address, strobes = Signal(_ADDRESS - 2, reset_less=True), Signal(4, reset_less=True)
        acts, response, is_answered = Signal(), Signal(2), Signal()
        m.d.comb += [
            self.awready.eq(~has_address),
            self.wready.eq(~has_data),
            acts.eq(has_address & has_data & ~is_answered),
            self.bvalid.eq(is_answered),
            self.bresp.eq(response),
        ]
        with m.If(self.awvalid & self.awready):
            m.d.sync += [has_address.eq(1), address.eq(self.awaddr[2:])]
        word = Signal(32, reset_less=True)
        with m.If(self.wvalid & self.wready):
            m.d.sync += [has_data.eq(1), word.eq(self.wdata), strobes.eq(self.wstrb)]
        m.d.comb += [self.data.eq(word), self.index.eq(address[:4])]
        hits = []
        for item in WRITABLE:
            hit = Signal(name=f"hits_{item.name.lower()}")
            places = [item.offset // 4 + i for i in range(item.count)]
            m.d.comb += hit.eq(address.matches(*(f"{place:0{_ADDRESS - 2}b}" for place in places)))
            m.d.comb += self.writes[item.name].eq(acts & hit & strobes.all())
            hits.append(hit)
        read_only = [item.offset // 4 for item in READABLE if item not in WRITABLE]
        exists = Cat(*hits).any() | address.matches(*(f"{place:0{_ADDRESS - 2}b}" for place in read_only))
        with m.If(acts):
            m.d.sync += [is_answered.eq(1), response.eq(Mux(exists & strobes.all(), OKAY, SLVERR))]
        with m.Elif(is_answered & self.bready):
            m.d.sync += [is_answered.eq(0), has_address.eq(0), has_data.eq(0)]

    def _read(self, m):
        has_address, is_answered = Signal(), Signal()
        address = Signal(_ADDRESS - 2, reset_less=True)
        word, found = Signal(32), Signal()
        answer, response = Signal(32, reset_less=True), Signal(2, reset_less=True)
        m.d.comb += [
            self.arready.eq(~has_address),
            self.rvalid.eq(is_answered),
            self.rdata.eq(answer),
            self.rresp.eq(response),
        ]
        with m.If(self.arvalid & self.arready):
            m.d.sync += [has_address.eq(1), address.eq(self.araddr[2:])]
        with m.Switch(address):
            for item in READABLE:
                with m.Case(item.offset // 4):
                    m.d.comb += [word.eq(self.values[item.name]), found.eq(1)]
            write_only = [item for item in WRITABLE if item not in READABLE]
            with m.Case(*(item.offset // 4 + i for item in write_only for i in range(item.count))):
                m.d.comb += found.eq(1)
        with m.If(has_address & ~is_answered):
            m.d.sync += [is_answered.eq(1), answer.eq(word), response.eq(Mux(found, OKAY, SLVERR))]
        with m.Elif(is_answered & self.rready):
            m.d.sync += [is_answered.eq(0), has_address.eq(0)]
