"""TokenList: the rows of gated commands: entries, their number, the largest one."""

from dataclasses import dataclass

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.top.interfaces import token_write
from hw.top.rows.row_sequencer import RowSequencerParameters

__all__ = ["TokenList"]


@dataclass(frozen=True, kw_only=True)
class TokenListParameters(RowSequencerParameters):
    pass


class TokenList(Block):
    """The token list, written sequentially; counts its entries.

    ``restart`` empties it, ``append`` adds ``row``, ``complete`` makes it valid. Its entries can be read back, and
    ``token`` broadcasts the writes to all copies.
    """

    Parameters = TokenListParameters
    members_doc = {
        "restart": "clear the list",
        "append": "row is the next entry",
        "row": "the entry",
        "complete": "the list becomes valid",
        "token": "write to every copy",
        "is_valid": "the list is valid",
        "count": "number of entries",
        "largest": "its largest entry, 0 where it is empty",
        "is_ascending": "entries are strictly ascending",
        "read_enable": "read an entry",
        "read_address": "which one",
        "read_row": "the entry read last",
    }

    @staticmethod
    def members(p):
        width = p.row_width
        return {
            "restart": In(1),
            "append": In(1),
            "row": In(width),
            "complete": In(1),
            "token": Out(token_write(p.max_tokens)),
            "is_valid": Out(1),
            "count": Out(range(p.max_tokens + 1)),
            "largest": Out(width),
            "is_ascending": Out(1),
            "read_enable": In(1),
            "read_address": In(width),
            "read_row": Out(width),
        }

    def circuit(self):
        m = Module()
        m.submodules.entries = entries = MemoryBank(depth=self.max_tokens, width=self.parameters.row_width)
        count = Signal(range(self.max_tokens + 1))
        largest = Signal(self.parameters.row_width)
        is_valid = Signal()
        is_ascending = Signal()
        is_larger = Signal()
        m.d.comb += [
            self.token.write.eq(self.append),
            self.token.address.eq(count),
            self.token.row.eq(self.row),
            entries.write_enable.eq(self.append),
            entries.write_address.eq(count),
            entries.write_data.eq(self.row),
            entries.read_enable.eq(self.read_enable),
            entries.read_address.eq(self.read_address),
            self.read_row.eq(entries.read_data),
            self.count.eq(count),
            self.largest.eq(largest),
            self.is_valid.eq(is_valid),
            self.is_ascending.eq(is_ascending),
            is_larger.eq(self.row > largest),
        ]
        with m.If(self.append):
            m.d.sync += count.eq(count + 1)
            with m.If(is_larger):
                m.d.sync += largest.eq(self.row)
            with m.If(~is_larger & (count != 0)):
                m.d.sync += is_ascending.eq(0)
        with m.If(self.complete):
            m.d.sync += is_valid.eq(1)
        with m.If(self.restart):
            m.d.sync += [count.eq(0), largest.eq(0), is_valid.eq(0), is_ascending.eq(1)]
        return m
