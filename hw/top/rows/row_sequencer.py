"""RowSequencer: the rows of a command, all of them or those of the token list."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.parameters import Parameters, integer
from golden.spec.softmax_unit import MAX_ELEMENTS
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.top.interfaces import token_write

__all__ = ["RowSequencer"]


@dataclass(frozen=True, kw_only=True)
class RowSequencerParameters(Parameters):
    max_tokens: int = integer(64, low=1, high=MAX_ELEMENTS, doc="entries of the token list")

    @property
    def row_width(self):
        """Bits of a row's number."""
        return max(1, (self.max_tokens - 1).bit_length())


class RowSequencer(Block):
    """Rows 0, 1, 2 and so on or, with ``gated``, ``n_active`` entries of its copy of the token list from ``first`` on.

    ``start`` begins a new sequence and discards the old one; ``n_active``, ``first`` and ``gated`` are constant until
    it ends. A row is output when its position is below ``limit``. One row a clock, latency 2.
    """

    Parameters = RowSequencerParameters
    latency = 2
    members_doc = {
        "token": "write one entry of the token list; not during a gated sequence",
        "start": "begin with position 0 in the next clock",
        "gated": "take rows from the list",
        "first": "gated: position of the first entry",
        "n_active": "rows of the sequence",
        "limit": "rows that may be output so far; only grows during a sequence",
        "rows": "row numbers, the last one marked",
    }

    @staticmethod
    def members(p):
        count = range(p.max_tokens + 1)
        return {
            "token": In(token_write(p.max_tokens)),
            "start": In(1),
            "gated": In(1),
            "first": In(p.row_width),
            "n_active": In(count),
            "limit": In(count),
            "rows": Out(stream.Signature(data.StructLayout({"row": p.row_width, "last": 1}))),
        }

    def circuit(self):
        m = Module()
        m.submodules.list = entries = MemoryBank(depth=self.max_tokens, width=self.parameters.row_width)
        position = Signal(range(self.max_tokens + 1))
        is_running = Signal()
        fetch = Signal()
        fetched = Signal()
        number = Signal(self.parameters.row_width, reset_less=True)
        last = Signal(reset_less=True)
        m.d.comb += [
            fetch.eq(is_running & (position < self.limit) & (~fetched | self.rows.ready)),
            entries.read_enable.eq(fetch),
            entries.read_address.eq(position + self.first),
            entries.write_enable.eq(self.token.write),
            entries.write_address.eq(self.token.address),
            entries.write_data.eq(self.token.row),
            self.rows.valid.eq(fetched),
            self.rows.payload.row.eq(Mux(self.gated, entries.read_data, number)),
            self.rows.payload.last.eq(last),
        ]
        with m.If(fetch):
            m.d.sync += [number.eq(position), last.eq(position + 1 == self.n_active), position.eq(position + 1)]
            with m.If(position + 1 == self.n_active):
                m.d.sync += is_running.eq(0)
        m.d.sync += fetched.eq(fetch | (fetched & ~self.rows.ready))
        with m.If(self.start):
            m.d.sync += [position.eq(0), is_running.eq(self.n_active != 0), fetched.eq(0)]
        return m
