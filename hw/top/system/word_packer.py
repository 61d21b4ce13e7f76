"""WordPacker: the beats of the core's store stream as beats of the bus, with their strobes and bursts."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hw.top.system.layouts import job, shift_elements
from hw.top.system.parameters import SystemPart

__all__ = ["WordPacker", "word_layout"]


def word_layout(p):
    """A beat of the bus: its elements, which of them are written, where it is, and whether burst and transfer end."""
    return data.StructLayout(
        {"data": p.data_width, "enable": p.bus_elements, "address": p.address_width, "ends_burst": 1, "ends_job": 1}
    )


class WordPacker(SystemPart):
    """Puts the elements of each row one behind the other into beats of the bus, from the row's address on.

    The row ends with its last element; with ``is_open``, or where the core's stream ends before, with that beat. Bursts
    end with rows, and at multiples of the longest burst. With ``is_dropped`` beats are taken and nothing comes out but
    ``dropped``, at the end.
    """

    members_doc = {
        "jobs": "transfers, in order; one begins when it is valid and all before it are packed",
        "store": "beats of the core",
        "words": "beats of the bus",
        "is_dropped": "constant while a transfer is valid: it is not to be written",
        "dropped": "a transfer that is not written has ended",
        "clear": "forget the transfer, of which the core sends nothing",
        "is_idle": "no transfer is under way",
    }

    @staticmethod
    def members(p):
        return {
            "jobs": In(stream.Signature(job(p, p.store_sizes))),
            "store": In(stream.Signature(data.StructLayout({"data": 16 * p.row_word, "last": 1}))),
            "words": Out(stream.Signature(word_layout(p))),
            "is_dropped": In(1),
            "dropped": Out(1),
            "clear": In(1),
            "is_idle": Out(1),
        }

    def circuit(self):
        m = Module()
        p, transfer = self.parameters, self.jobs.payload
        n_bus, n_row = p.bus_elements, p.row_word
        n_held = n_row + n_bus
        # Elements from ``low`` to ``fill`` of what is held belong to the row; the bottom is the beat at ``address``.
        held, fill, low = Signal(16 * n_held, reset_less=True), Signal(range(n_held + 1)), Signal(range(n_bus))
        address, row_address = Signal(p.address_width), Signal(p.address_width)
        rows_left, left = Signal(16), Signal(31)  # of the elements that the core still brings
        is_running, is_end, is_last_row = Signal(), Signal(), Signal()
        sizes = Array(Const(each, range(n_row + 1)) for each in p.store_sizes)
        full, here, ends = Signal(range(n_row + 1)), Signal(range(n_row + 1)), Signal()
        takes, leaves = Signal(), Signal()
        fill_after, address_after, is_empty = Signal.like(fill), Signal.like(address), Signal()
        m.d.comb += [
            is_last_row.eq(rows_left == 0),
            full.eq(sizes[transfer.size]),
            here.eq(Mux(left < full, left, full)),
            ends.eq((left <= full) | (transfer.is_open & self.store.payload.last)),
            leaves.eq(self.words.valid & self.words.ready),
            fill_after.eq(Mux(leaves, Mux(fill > n_bus, fill - n_bus, 0), fill)),
            is_empty.eq(is_end & (fill_after == 0)),
            self.store.ready.eq(is_running & ~is_end & (fill_after < n_bus)),
            takes.eq(self.store.valid & self.store.ready),
        ]
        word = self.words.payload
        aligned = (p.most_beats - 1).bit_length()
        word_index = address[p.byte_width :]
        ends_row = Signal()
        m.d.comb += [
            self.words.valid.eq((fill >= n_bus) | (is_end & (fill != 0))),
            ends_row.eq(is_end & (fill <= n_bus)),
            # What is not written is 0, not what was there before.
            word.data.eq(Cat(Mux(word.enable[i], held.word_select(i, 16), 0) for i in range(n_bus))),
            word.enable.eq(Cat((i >= low if i < n_bus - 1 else 1) & (i < fill) for i in range(n_bus))),
            word.address.eq(Cat(Const(0, p.byte_width), word_index)),
            word.ends_burst.eq(ends_row | word_index[:aligned].all()),
            word.ends_job.eq(ends_row & is_last_row),
            address_after.eq(Cat(Const(0, p.byte_width), word_index + 1)),
        ]
        place = Signal(range(n_bus))
        m.d.comb += place.eq(fill_after)
        value = Cat(self.store.payload.data, Const(0, 16 * n_bus))
        placed = shift_elements(m, value, place, left=True, name="to_place")
        rest, keep = Signal.like(held), Signal(n_held)
        m.d.comb += [
            rest.eq(Mux(leaves, held >> p.data_width, held)),
            keep.eq(Cat(i < place if i < n_bus - 1 else 0 for i in range(n_held))),
        ]
        with m.If(leaves):
            m.d.sync += [address.eq(address_after), low.eq(0), fill.eq(fill_after), held.eq(rest)]
        with m.If(takes):
            m.d.sync += [
                held.eq(Cat(Mux(keep[i], rest.word_select(i, 16), placed.word_select(i, 16)) for i in range(n_held))),
                fill.eq(Mux(self.is_dropped, 0, fill_after + here)),
                left.eq(left - here),
                is_end.eq(ends),
            ]
        begins_row, first = Signal(), Signal(p.address_width)
        m.d.comb += first.eq(Mux(is_running, row_address, transfer.address))
        with m.If(~is_running):
            with m.If(self.jobs.valid):
                m.d.comb += begins_row.eq(1)
                m.d.sync += [is_running.eq(1), rows_left.eq(transfer.rows - 1)]
        with m.Elif(is_empty | (self.is_dropped & is_end)):
            with m.If(is_last_row):
                m.d.comb += [self.jobs.ready.eq(1), self.dropped.eq(self.is_dropped)]
                m.d.sync += [is_running.eq(0), is_end.eq(0), fill.eq(0)]
            with m.Else():
                m.d.comb += begins_row.eq(1)
                m.d.sync += rows_left.eq(rows_left - 1)
        with m.If(begins_row):
            m.d.sync += [
                address.eq(first),
                row_address.eq(first + transfer.pitch),
                low.eq(first[1 : p.byte_width]),
                fill.eq(first[1 : p.byte_width]),
                left.eq(transfer.elements),
                is_end.eq(0),
            ]
        m.d.comb += self.is_idle.eq(~is_running)
        with m.If(self.clear):
            m.d.sync += [is_running.eq(0), is_end.eq(0), fill.eq(0)]
        return m
