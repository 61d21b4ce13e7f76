"""Carry-save addition: rows of full and half adders, and bit heaps (Dadda reduction)."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from golden.spec.parameters import Parameters, integer
from hw.lib.block import Block

__all__ = [
    "FullAdderRow",
    "HalfAdderRow",
    "InvertedHalfAdderRow",
    "Heap",
    "dadda_heights",
    "n_levels",
    "reduced_heights",
    "row_spans",
]


@dataclass(frozen=True, kw_only=True)
class AdderRowParameters(Parameters):
    width: int = integer(8, low=1, high=4096, doc="adders in the row")


class FullAdderRow(Block):
    """Full adders side by side, carries not connected: ``a + b + c = sum + 2 * carry`` in every bit.

    A block of its own so that synthesis can map each bit to the library's full adder. Combinational.
    """

    role = "full_adder_row"
    Parameters = AdderRowParameters
    members_doc = {
        "a": "first addend",
        "b": "second addend",
        "c": "third addend, the latest to arrive",
        "sum": "weight of the addends",
        "carry": "twice the weight of the addends",
    }

    @staticmethod
    def members(p):
        return {"a": In(p.width), "b": In(p.width), "c": In(p.width), "sum": Out(p.width), "carry": Out(p.width)}

    def circuit(self):
        m = Module()
        half = Signal(self.width)
        m.d.comb += half.eq(self.a ^ self.b)
        m.d.comb += self.sum.eq(half ^ self.c)
        m.d.comb += self.carry.eq((self.a & self.b) | (half & self.c))
        return m


class HalfAdderRow(Block):
    """Half adders side by side: ``a + b = sum + 2 * carry`` in every bit. Combinational."""

    role = "half_adder_row"
    Parameters = AdderRowParameters
    members_doc = {
        "a": "first addend",
        "b": "second addend",
        "sum": "weight of the addends",
        "carry": "twice the weight of the addends",
    }

    @staticmethod
    def members(p):
        return {"a": In(p.width), "b": In(p.width), "sum": Out(p.width), "carry": Out(p.width)}

    def circuit(self):
        m = Module()
        m.d.comb += self.sum.eq(self.a ^ self.b)
        m.d.comb += self.carry.eq(self.a & self.b)
        return m


class InvertedHalfAdderRow(Block):
    """Half adders side by side on complements: ``~a + ~b = ~sum + 2 * ~carry`` in every bit. Combinational."""

    Parameters = AdderRowParameters
    members_doc = {
        "a": "complement of the first addend",
        "b": "complement of the second addend",
        "sum": "complement of the weight of the addends",
        "carry": "complement of twice the weight of the addends",
    }

    @staticmethod
    def members(p):
        return {"a": In(p.width), "b": In(p.width), "sum": Out(p.width), "carry": Out(p.width)}

    def circuit(self):
        m = Module()
        m.d.comb += self.sum.eq(~(self.a ^ self.b))
        m.d.comb += self.carry.eq(self.a | self.b)
        return m


def dadda_heights(start):
    """Dadda's column heights below ``start``, tallest first: 2, 3, 4, 6, 9, 13, ... reversed."""
    heights = [2]
    while heights[-1] < start:
        heights.append(heights[-1] * 3 // 2)
    return [height for height in reversed(heights) if height < start]


def n_levels(start, end=2):
    """Full-adder levels from columns of ``start`` bits to columns of at most ``end``."""
    return sum(height >= end for height in dadda_heights(start))


def _adders(heights, target):
    """Full and half adders in each column for one level, after which no column is taller than the target."""
    full, half, incoming = [], [], 0
    for height in heights:
        excess = max(0, height + incoming - target)
        full.append(excess // 2)
        half.append(excess % 2)
        incoming = full[-1] + half[-1]
    return full, half


def reduced_heights(heights, height):
    """The columns' heights after :meth:`Heap.reduce` to ``height``."""
    for target in dadda_heights(max(heights)):
        if target >= height:
            full, half = _adders(heights, target)
            carries = [0] + [a + b for a, b in zip(full, half, strict=True)][:-1]
            heights = [h - 2 * a - b + c for h, a, b, c in zip(heights, full, half, carries, strict=True)]
    return heights


def row_spans(heights):
    """``(offset, width)`` of each of :meth:`Heap.rows` for columns of these heights."""
    return [(low, high - low) for depth in range(max(heights)) for low, high in _runs([h > depth for h in heights])]


class Heap:
    """Bit heap: bits by weight that are summed modulo ``2**width``.

    Addends are added with :meth:`add`; :meth:`reduce` inserts full and half adders by Dadda's rule (as few and as
    late as possible) until no column exceeds the requested height, and returns the remaining rows. Neighbouring adders
    of one level share a row. In each column the earliest bits are used first, the latest at the adder's fastest input.

    An ``inverted`` heap holds complemented bits: addends and returned rows are complements, the total is not. A full
    adder of complements gives complements, so the structure is the same, and a partial product is a NAND.
    """

    def __init__(self, m, name, width, inverted=False):
        self._m, self._name = m, name
        self.width = width
        self.inverted = inverted
        self._columns = [[] for _ in range(width)]  # of (arrival time, bit), the earliest first
        self._constant = 0
        self._level = 0

    def add(self, value, offset=0, time=0):
        """Add an unsigned value times ``2**offset`` that arrives at ``time``, in hundredths of a full-adder delay."""
        for index, bit in enumerate(Value.cast(value)):
            if offset + index < self.width:
                self._columns[offset + index].append((time, bit))

    def add_signed(self, value, offset=0):
        """Add a two's complement value times ``2**offset``: its sign bit inverted, and a constant."""
        value = Value.cast(value)
        self.add(Cat(value[:-1], ~value[-1]), offset)
        self.add_constant(-1 << (offset + len(value) - 1))

    def add_constant(self, constant):
        """Add an integer; all constants are merged into one row."""
        self._constant += constant

    @property
    def height(self):
        """The height of the tallest column, constant included."""
        return max(len(column) + (self._constant >> index & 1) for index, column in enumerate(self._columns))

    def reduce(self, height=2, levels=None):
        """Reduce the columns to ``height``, in at most ``levels`` levels; returns rows, see :meth:`rows`."""
        for index, column in enumerate(self._columns):
            if self._constant >> index & 1:
                column.insert(0, (0, Const(0 if self.inverted else 1)))
        self._constant = 0
        targets = [target for target in dadda_heights(self.height) if target >= height]
        for target in targets[:levels]:
            self._reduce_to(target)
        return self.rows()

    def rows(self):
        """The bits as a list of ``(offset, value)``, each a run of neighbouring columns."""
        rows = []
        for depth in range(max(map(len, self._columns))):
            rows += [
                (low, Cat(self._columns[index][depth][1] for index in range(low, high)))
                for low, high in _runs([len(column) > depth for column in self._columns])
            ]
        return rows

    def add_rows(self, rows):
        """Add rows as :meth:`reduce` returns them (registered, perhaps)."""
        for offset, value in rows:
            self.add(value, offset)

    def total(self, adder=None):
        """The sum: one carry-propagate addition of the last two rows, by ``+`` or a block of class ``adder``.

        The low columns arrive before the others: a ripple chain adds them as far as its carry is in time.
        """
        self.reduce(2)
        missing = Const(self.inverted, 1)
        latest = max((column[-1][0] for column in self._columns if column), default=0)
        low, carry = [], None
        for at, column in enumerate(self._columns[:-1]):
            column = sorted([*column, carry] if carry else column, key=_time)
            if len(column) < 2:
                low.append(column[0][1] if column else missing)
                carry = None
            elif _times(column)[1] <= latest:
                (((_, bit), carry),) = self._adders_row(f"low_{at}", len(column), [column])
                low.append(bit)
            else:
                break
        high = self._columns[len(low) :]
        # The carry in is added as two bits one column below, so that this remains an addition of two numbers.
        operands = []
        for depth in range(2):
            operand = Signal(1 + len(high), name=f"{self._name}_operand_{depth}")
            bits = Cat(
                carry[1] if carry else missing,
                *(column[depth][1] if len(column) > depth else missing for column in high),
            )
            self._m.d.comb += operand.eq(~bits if self.inverted else bits)
            operands.append(operand)
        result = Signal(self.width, name=f"{self._name}_total")
        low = Cat(low)
        if adder is None:
            added = operands[0] + operands[1]
        else:
            self._m.submodules[f"{self._name}_adder"] = block = adder(width=len(operands[0]))
            self._m.d.comb += [block.a.eq(operands[0]), block.b.eq(operands[1])]
            added = block.sum
        self._m.d.comb += result.eq(Cat(~low if self.inverted else low, added[1:]))
        return result

    def _reduce_to(self, target):
        """One level: at most ``target`` bits remain in every column, incoming carries included."""
        self._level += 1
        full, half = _adders([len(column) for column in self._columns], target)
        taken = [0] * self.width
        new = [[] for _ in range(self.width + 1)]
        for n_inputs, counts in ((3, full), (2, half)):
            for index in range(max(counts)):
                for low, high in _runs([count > index for count in counts]):
                    groups = []
                    for at in range(low, high):
                        groups.append(self._columns[at][taken[at] : taken[at] + n_inputs])
                        taken[at] += n_inputs
                    results = self._adders_row(f"{self._level}_{n_inputs}_{index}_{low}", n_inputs, groups)
                    for at, (sum_, carry) in enumerate(results, start=low):
                        new[at].append(sum_)
                        new[at + 1].append(carry)
        self._columns = [
            sorted([*column[used:], *results], key=_time)
            for column, used, results in zip(self._columns, taken, new[:-1], strict=True)
        ]

    def _adders_row(self, name, n_inputs, groups):
        """Neighbouring adders, one for each group of bits; returns a sum and a carry of each."""
        kind = FullAdderRow if n_inputs == 3 else InvertedHalfAdderRow if self.inverted else HalfAdderRow
        row = self._m.submodules[f"{self._name}_{name}"] = kind(width=len(groups))
        ports = (row.a, row.b, row.c) if n_inputs == 3 else (row.a, row.b)
        for port, bits in zip(ports, zip(*groups, strict=True), strict=True):
            self._m.d.comb += port.eq(Cat(bit for _, bit in bits))
        return [
            tuple(zip(_times(group), (row.sum[index], row.carry[index]), strict=True))
            for index, group in enumerate(groups)
        ]


# Delay from each input to sum and to carry, in hundredths of the longest path through a full adder.
_DELAYS = {2: ((50, 50), (35, 35)), 3: ((100, 100, 80), (80, 80, 65))}


def _times(group):
    """Arrival times of the sum and the carry of an adder."""
    return [max(time + delay for (time, _), delay in zip(group, delays, strict=True)) for delays in _DELAYS[len(group)]]


def _time(entry):
    return entry[0]


def _runs(flags):
    """The half-open ranges of neighbouring true flags."""
    runs, start = [], None
    for index, flag in enumerate([*flags, False]):
        if flag and start is None:
            start = index
        elif not flag and start is not None:
            runs.append((start, index))
            start = None
    return runs
