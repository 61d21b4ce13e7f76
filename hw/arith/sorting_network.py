"""Sorting networks: which items each layer compares, and the row of comparators that does it."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from golden.spec.parameters import Parameters, flag, integer
from hw.lib.block import Block


def bitonic_layers(n):
    """Batcher's bitonic sorter of ``n`` (a power of two) items, in the form with all comparators in the same direction.

    A network is a list of layers, a layer a list of disjoint pairs ``(first, second)`` with ``first < second``; the
    item that comes first in the sorted order goes to position ``first``.
    """
    layers, run = [], 1
    while run < n:
        run *= 2
        # A sorted run followed by a reversed one is bitonic; then half-cleaners of halving size.
        layers.append([(i, i ^ (run - 1)) for i in range(n) if not i & run // 2])
        distance = run // 4
        while distance:
            layers.append([(i, i + distance) for i in range(n) if not i & distance])
            distance //= 2
    return layers


def odd_even_layers(n):
    """Batcher's odd-even merge sort of ``n`` (a power of two) items: as many layers as bitonic, fewer comparators."""
    layers, run = [], 1
    while run < n:
        distance = run
        while distance:
            start = distance % run
            layers.append(
                [
                    (i, i + distance)
                    for base in range(start, n - distance, 2 * distance)
                    for i in range(base, base + distance)
                    if i // (2 * run) == (i + distance) // (2 * run)
                ]
            )
            distance //= 2
        run *= 2
    return layers


NETWORKS = {"bitonic": bitonic_layers, "odd_even": odd_even_layers}


def split(m, row, width, name):
    """The elements of a row as signals of their own: Amaranth takes a whole row apart again for each slice of it."""
    elements = [Signal(width, name=f"{name}_{i}") for i in range(len(row) // width)]
    m.d.comb += Cat(elements).eq(row)
    return elements


@dataclass(frozen=True, kw_only=True)
class CompareExchangeRowParameters(Parameters):
    n_lanes: int = integer(8, low=1, high=512, doc="pairs compared side by side")
    rank_width: int = integer(8, low=1, high=80, doc="high bits of an item by which it is compared")
    payload_width: int = integer(8, low=0, high=64, doc="low bits of an item, not compared")
    signed: bool = flag(False, doc="ranks in two's complement")
    descending: bool = flag(False, doc="the larger rank comes first")


class CompareExchangeRow(Block):
    """Puts n_lanes pairs of items in order: a pair is exchanged if the second item ranks strictly before the first.

    Members: ``first`` and ``second`` hold an item a lane, lane 0 in the lowest bits; an item is its payload and, in
    the bits above, its rank. ``leading`` and ``trailing`` are the pairs in order. Combinational.
    """

    Parameters = CompareExchangeRowParameters
    members_doc = {
        "first": "the first item of each pair, which stays first if equal",
        "second": "the second item of each pair",
        "leading": "the item of each pair that comes first",
        "trailing": "the item of each pair that comes second",
    }
    latency = 0

    @staticmethod
    def members(p):
        row_width = p.n_lanes * (p.rank_width + p.payload_width)
        return {"first": In(row_width), "second": In(row_width), "leading": Out(row_width), "trailing": Out(row_width)}

    def circuit(self):
        m = Module()
        item_width = self.rank_width + self.payload_width
        firsts = split(m, self.first, item_width, "first_item")
        seconds = split(m, self.second, item_width, "second_item")
        exchange = [Signal(name=f"exchange_{lane}") for lane in range(self.n_lanes)]
        for bit, first, second in zip(exchange, firsts, seconds, strict=True):
            first_rank, second_rank = self._rank(first), self._rank(second)
            m.d.comb += bit.eq(second_rank > first_rank if self.descending else second_rank < first_rank)
        pairs = list(zip(exchange, firsts, seconds, strict=True))
        m.d.comb += [
            self.leading.eq(Cat(Mux(bit, second, first) for bit, first, second in pairs)),
            self.trailing.eq(Cat(Mux(bit, first, second) for bit, first, second in pairs)),
        ]
        return m

    def _rank(self, item):
        bits = item[self.payload_width :]
        return bits.as_signed() if self.signed else bits
