"""BurstSplitter: the rows of a transfer as bursts that obey AXI4's rules."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hw.top.system.layouts import burst, job
from hw.top.system.parameters import SystemPart

__all__ = ["BurstSplitter"]


class BurstSplitter(SystemPart):
    """Cuts the bytes of each row at multiples of the longest burst, which divides 4 KiB: no burst crosses a page.

    The first byte of a burst is a multiple of a beat. A row takes a clock more than it has bursts. ``stop`` drops what
    has not been offered.
    """

    members_doc = {
        "jobs": "transfers, in order",
        "bursts": "their bursts, in order",
        "stop": "drop the transfer after the burst that is offered; take no other",
        "is_idle": "no transfer is under way",
    }

    @staticmethod
    def members(p):
        return {
            "jobs": In(stream.Signature(job(p, p.load_sizes))),
            "bursts": Out(stream.Signature(burst(p))),
            "stop": In(1),
            "is_idle": Out(1),
        }

    def circuit(self):
        m = Module()
        p, transfer = self.parameters, self.jobs.payload
        word_width = p.address_width - p.byte_width
        is_running, is_offered, is_first = Signal(), Signal(), Signal()
        row_address, rows_left = Signal(p.address_width), Signal(16)
        word, words_left = Signal(word_width), Signal(32)  # of the row: next beat, beats from there on
        last_byte = Signal(32)
        aligned = (p.most_beats - 1).bit_length()
        to_boundary, length = Signal(range(p.most_beats + 1)), Signal(range(p.most_beats + 1))
        here = Signal(p.address_width)
        m.d.comb += [
            self.is_idle.eq(~is_running),
            to_boundary.eq(p.most_beats - word[:aligned]),
            length.eq(Mux(words_left < to_boundary, words_left, to_boundary)),
            self.bursts.valid.eq(is_offered),
            self.bursts.payload.address.eq(word << p.byte_width),
            self.bursts.payload.length.eq(length - 1),
            here.eq(Mux(is_first, transfer.address, row_address)),
            # Of the row, counted from the first byte of its first beat.
            last_byte.eq(here[: p.byte_width] + (transfer.elements << 1) - 1),
        ]
        with m.If(~is_running):
            m.d.comb += self.jobs.ready.eq(0)
            with m.If(self.jobs.valid & ~self.stop):
                m.d.sync += [is_running.eq(1), is_first.eq(1), is_offered.eq(0), rows_left.eq(transfer.rows)]
        with m.Elif(~is_offered):
            m.d.sync += [
                is_offered.eq(1),
                is_first.eq(0),
                row_address.eq(here + transfer.pitch),
                rows_left.eq(rows_left - 1),
                word.eq(here >> p.byte_width),
                words_left.eq((last_byte >> p.byte_width) + 1),
            ]
            with m.If(self.stop):
                m.d.sync += [is_running.eq(0), is_offered.eq(0)]
                m.d.comb += self.jobs.ready.eq(1)
        with m.Elif(self.bursts.ready):
            m.d.sync += [word.eq(word + length), words_left.eq(words_left - length)]
            with m.If((words_left == length) | self.stop):
                m.d.sync += is_offered.eq(0)
                with m.If((rows_left == 0) | self.stop):
                    m.d.comb += self.jobs.ready.eq(1)
                    m.d.sync += is_running.eq(0)
        return m
