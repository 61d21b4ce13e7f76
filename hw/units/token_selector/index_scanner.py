"""IndexScanner: mask words to the list of the indices of their set bits."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.parameters import Parameters, integer
from hw.lib.block import Block

__all__ = ["IndexScanner", "mask_word", "index_entry", "from_lowest", "more_than_one"]


def mask_word(n_bits):
    """Consecutive bits of a mask, and whether they are its last ones."""
    return data.StructLayout({"tokens": n_bits, "last": 1})


def index_entry(n_tokens):
    """An index, or with ``last`` the number of indices in the list that it closes."""
    return data.StructLayout({"index": ceil_log2(n_tokens + 1), "last": 1})


@dataclass(frozen=True, kw_only=True)
class IndexScannerParameters(Parameters):
    n_bits: int = integer(16, low=1, high=1 << 20, doc="bits of a mask word")
    n_tokens: int = integer(256, low=1, high=1 << 20, doc="bits of a mask; only its last word may have unused bits")


class IndexScanner(Block):
    """Lists the set bits of a mask, lowest index first, then a closing beat with their number.

    Timing: the first index is valid two clocks after its word was accepted, the others follow. A word takes as
    many clocks as it has ones, at least one, and the closing beat takes one more.
    """

    Parameters = IndexScannerParameters
    latency = 2
    members_doc = {
        "words": "mask words in order; unused bits of the last word are 0",
        "indices": "indices in ascending order with last = 0, then their number with last = 1",
    }

    @staticmethod
    def members(p):
        return {
            "words": In(stream.Signature(mask_word(p.n_bits))),
            "indices": Out(stream.Signature(index_entry(p.n_tokens))),
        }

    def circuit(self):
        m = Module()
        words, entry = self.words, self.indices.payload
        rest = Signal(self.n_bits)
        closes = Signal()  # the closing beat follows when the word is exhausted
        base = Signal(range(self.n_tokens + 1))
        count = Signal(range(self.n_tokens + 1))
        others = Signal(self.n_bits)
        first = from_lowest(m, rest)
        advance = Signal()
        used_up = Signal()
        has_others = Signal()  # others is not 0, by a shorter path
        has_index = Signal()  # rest is not 0
        m.d.comb += [
            advance.eq(~self.indices.valid | self.indices.ready),
            others.eq(rest & (first << 1)),
            has_others.eq(more_than_one(m, rest)),
            used_up.eq(Mux(closes, ~has_index, ~has_others)),
            words.ready.eq(advance & used_up),
        ]
        lowest = Signal(range(self.n_bits))
        m.d.comb += lowest.eq(_encode(m, rest & ~others))

        valid = Signal()
        entry_register = Signal.like(entry, reset_less=True)
        m.d.comb += [self.indices.valid.eq(valid), entry.eq(entry_register)]
        with m.If(advance):
            m.d.sync += [
                valid.eq(has_index | closes),
                entry_register.index.eq(Mux(has_index, base + lowest, count)),
                entry_register.last.eq(~has_index),
                rest.eq(others),
                has_index.eq(has_others),
                count.eq(count + has_index),
            ]
            with m.If(used_up):
                m.d.sync += [
                    rest.eq(Mux(words.valid, words.payload.tokens, 0)),
                    has_index.eq(words.valid & words.payload.tokens.any()),
                    closes.eq(words.valid & words.payload.last),
                ]
                with m.If(closes):
                    m.d.sync += count.eq(0)
        # The base index of the current word: 0 for the first word of a list, n_bits more for each following one.
        fresh = Signal(init=1)
        with m.If(words.ready & words.valid):
            m.d.sync += [base.eq(Mux(fresh, 0, base + self.n_bits)), fresh.eq(words.payload.last)]
        return m


def more_than_one(m, bits):
    """Whether at least two bits are set, by a tree of pairs."""
    one = Cat(bits, Const(0, (1 << ceil_log2(len(bits))) - len(bits)))
    more = Const(0, len(one))
    while len(one) > 1:
        half = len(one) // 2
        next_one = Signal(half, name=f"one_of_{half}")
        next_more = Signal(half, name=f"more_of_{half}")
        m.d.comb += [next_one.eq(one[::2] | one[1::2]), next_more.eq(more[::2] | more[1::2] | one[::2] & one[1::2])]
        one, more = next_one, next_more
    return more


def from_lowest(m, bits):
    """Ones from the lowest one of ``bits`` on."""
    span = 1
    while span < len(bits):
        spread = Signal(len(bits), name=f"spread_{span}")
        m.d.comb += spread.eq(bits | bits << span)
        bits, span = spread, 2 * span
    return bits


def _encode(m, one_hot):
    """The number of the one in a one-hot vector."""
    width = ceil_log2(len(one_hot))
    bits = Signal(len(one_hot), name="one_hot")
    m.d.comb += bits.eq(one_hot)
    if not width:
        return Const(0, 1)
    return Cat(Cat(bits[i] for i in range(len(bits)) if i >> place & 1).any() for place in range(width))
