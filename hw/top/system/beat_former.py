"""BeatFormer: the beats of the bus that a load reads, as beats of the core's load stream."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.lib.stream import SkidBuffer
from hw.top.system.layouts import fault, job, shift_elements
from hw.top.system.parameters import SystemPart

__all__ = ["BeatFormer"]


class BeatFormer(SystemPart):
    """Takes the elements of each row out of its beats and hands them on in beats of the core.

    A row begins with a new beat of the core; its last beat is filled up with zeros. A beat of the bus is taken in a
    clock as long as the core takes its beats. Three stages: the elements in front of the row are shifted out, the
    others are put behind those that wait, and a beat leaves from there through a skid buffer.
    """

    members_doc = {
        "jobs": "transfers, in order",
        "words": "beats of the bus, in order; is_error if the response was not OKAY",
        "load": "beats for the core",
        "fault": "a beat came with an error",
        "clear": "forget everything",
        "is_idle": "no transfer is under way",
    }

    @staticmethod
    def members(p):
        return {
            "jobs": In(stream.Signature(job(p, p.load_sizes))),
            "words": In(stream.Signature(data.StructLayout({"data": p.data_width, "is_error": 1}))),
            "load": Out(stream.Signature(16 * p.row_word)),
            "fault": Out(fault(p)),
            "clear": In(1),
            "is_idle": Out(1),
        }

    def circuit(self):
        m = Module()
        p, transfer = self.parameters, self.jobs.payload
        n_bus, n_row = p.bus_elements, p.row_word
        # First stage: walk over the rows; what is in front of the row is shifted out, what is behind it becomes zero.
        address, row_address = Signal(p.address_width), Signal(p.address_width)
        rows_left, left = Signal(16), Signal(31)
        is_running, takes, enters = Signal(), Signal(), Signal()
        offset, here = Signal(range(n_bus)), Signal(range(n_bus + 1))
        ends_row, ends_job = Signal(), Signal()
        m.d.comb += [
            offset.eq(address[1 : p.byte_width]),
            here.eq(n_bus - offset),
            ends_row.eq(left <= here),
            ends_job.eq(ends_row & (rows_left == 1)),
            takes.eq(is_running & self.words.valid & enters),
            self.words.ready.eq(is_running & enters),
            self.jobs.ready.eq(takes & ends_job),
            self.fault.valid.eq(takes & self.words.payload.is_error),
            self.fault.slot.eq(transfer.slot),
            self.fault.address.eq(Cat(Const(0, p.byte_width), address[p.byte_width :])),
        ]
        with m.If(~is_running | (takes & ends_job)):
            m.d.sync += is_running.eq(0)
            with m.If(self.jobs.valid & ~is_running):
                m.d.sync += [
                    is_running.eq(1),
                    address.eq(transfer.address),
                    row_address.eq(transfer.address + transfer.pitch),
                    rows_left.eq(transfer.rows),
                    left.eq(transfer.elements),
                ]
        with m.Elif(takes):
            with m.If(ends_row):
                m.d.sync += [
                    address.eq(row_address),
                    row_address.eq(row_address + transfer.pitch),
                    rows_left.eq(rows_left - 1),
                    left.eq(transfer.elements),
                ]
            with m.Else():
                m.d.sync += [address.eq(Cat(Const(0, p.byte_width), address[p.byte_width :] + 1)), left.eq(left - here)]
        shifted = shift_elements(m, self.words.payload.data, offset, left=False, name="from_offset")
        count = Signal(range(n_bus + 1))
        m.d.comb += count.eq(Mux(ends_row, left, here))
        piece, n_piece = Signal(p.data_width, reset_less=True), Signal.like(count, reset_less=True)
        piece_ends, piece_size = Signal(reset_less=True), Signal.like(transfer.size, reset_less=True)
        has_piece, takes_piece = Signal(), Signal()
        m.d.comb += enters.eq(~has_piece | takes_piece)
        with m.If(enters):
            m.d.sync += [
                has_piece.eq(takes),
                piece.eq(Cat(Mux(i < count, shifted.word_select(i, 16), 0) for i in range(n_bus))),
                n_piece.eq(count),
                piece_ends.eq(ends_row),
                piece_size.eq(transfer.size),
            ]
        # Second stage: elements wait at the bottom; those above ``fill`` are zero.
        n_held = n_row + n_bus
        held, fill = Signal(16 * n_held), Signal(range(n_held + 1))
        is_end, size = Signal(), Signal.like(transfer.size)
        sizes = Array(Const(each, range(n_row + 1)) for each in p.load_sizes)
        full, leaves, fill_after = Signal(range(n_row + 1)), Signal(), Signal(range(n_held + 1))
        empties = Signal()
        m.submodules.out = out = SkidBuffer(width=16 * n_row)
        m.d.comb += [
            full.eq(sizes[size] if len(p.load_sizes) > 1 else n_row),
            out.source.valid.eq((fill >= full) & (fill != 0) | (is_end & (fill != 0))),
            out.source.payload.eq(held[: 16 * n_row]),
            leaves.eq(out.source.valid & out.source.ready),
            fill_after.eq(Mux(leaves, Mux(fill > full, fill - full, 0), fill)),
            empties.eq(fill_after == 0),
            takes_piece.eq(has_piece & Mux(is_end, empties, fill_after <= n_row)),
            self.load.payload.eq(out.sink.payload),
            self.load.valid.eq(out.sink.valid),
            out.sink.ready.eq(self.load.ready),
        ]
        rest = Signal.like(held)
        m.d.comb += rest.eq(held)
        for index, each in enumerate(p.load_sizes):
            with m.If(leaves & (size == index)):
                m.d.comb += rest.eq(held >> 16 * each)
        place = fill_after[: n_row.bit_length()]
        placed = shift_elements(m, Cat(piece, Const(0, 16 * n_row)), place, left=True, name="to_place")
        m.d.sync += [fill.eq(fill_after), held.eq(rest)]
        with m.If(empties):
            m.d.sync += is_end.eq(0)
        with m.If(takes_piece):
            m.d.sync += [
                fill.eq(fill_after + n_piece),
                held.eq(rest | placed),
                is_end.eq(piece_ends),
                size.eq(piece_size),
            ]
        m.d.comb += self.is_idle.eq(~is_running & ~has_piece & (fill == 0))
        with m.If(self.clear):
            m.d.sync += [is_running.eq(0), has_piece.eq(0), fill.eq(0), held.eq(0), is_end.eq(0)]
        return m
