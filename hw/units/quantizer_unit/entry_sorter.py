"""EntrySorter: counting sort of the slices of a tile by key."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from golden.spec.mixed_precision import KEY_OFFSET, MAX_SLICES, n_keys
from golden.spec.quantizer_unit import TileParameters
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.units.quantizer_unit.layouts import EXPONENT, entry_layout, summary_layout

__all__ = ["EntrySorter"]


class EntrySorter(Block):
    """One entry a slice, by rising keys and then in the order of arrival; of a tile without slices one unused entry,
    zero but for ``last``.

    There are few keys, so a counting sort is used: while a tile's vectors arrive, the start of every key in the sorted
    tile is counted; then the vectors are read again and each slice is written to its position, one a clock; then the
    tile is read in order, one entry a clock without gaps. The three steps work on different tiles in parallel, with two
    buffers between them.
    """

    Parameters = TileParameters
    members_doc = {
        "vector": "summary of each vector, the tile's last one marked",
        "finest_exponent": "of the tile, taken with its last vector",
        "entry": "slices in order",
    }

    @staticmethod
    def members(p):
        return {
            "vector": In(stream.Signature(summary_layout(p))),
            "finest_exponent": In(EXPONENT),
            "entry": Out(stream.Signature(entry_layout(p))),
        }

    def circuit(self):
        m = Module()
        self._place_layout = data.ArrayLayout(bits_for(MAX_SLICES * self.n_channels), n_keys(self.n_levels))
        counted = self._count(m)
        placed = self._place(m, *counted)
        self._read(m, *placed)
        return m

    def _count(self, m):
        """Write vectors to one of two buffers, and count where each key begins in the sorted tile."""
        vector = self.vector.payload
        m.submodules.vectors = memory = MemoryBank(depth=2 * self.n_channels, width=len(vector.as_value()))
        buffer, number = Signal(), Signal(range(self.n_channels))
        places = Signal(self._place_layout)
        handed = [_Buffer(f"counted_{index}", self._place_layout) for index in range(2)]
        takes, ends = Signal(name="takes_vector"), Signal(name="ends_tile")
        m.d.comb += [
            self.vector.ready.eq(~Array(each.is_full for each in handed)[buffer]),
            takes.eq(self.vector.valid & self.vector.ready),
            ends.eq(takes & vector.last),
            memory.write_enable.eq(takes),
            memory.write_address.eq(number + Mux(buffer, self.n_channels, 0)),
            memory.write_data.eq(vector),
        ]
        # A vector's slices have every other key below its own.
        top = vector.level + KEY_OFFSET
        total = Signal(self._place_layout)
        for key, (place, new) in enumerate(zip(places, total, strict=True)):
            below = sum((vector.n_slices > index) & (top - 2 * index < key) for index in range(MAX_SLICES))
            m.d.comb += new.eq(place + below)
        with m.If(takes):
            m.d.sync += [places.eq(Mux(vector.last, 0, total)), number.eq(Mux(vector.last, 0, number + 1))]
        for index, each in enumerate(handed):
            with m.If(ends & (buffer == index)):
                m.d.sync += [each.is_full.eq(1), each.places.eq(total), each.finest.eq(self.finest_exponent)]
        m.d.sync += buffer.eq(buffer ^ ends)
        return memory, handed

    def _place(self, m, vectors, counted):
        """Write the slices of a counted tile to their positions, one a clock."""
        p = self.parameters
        width = p.address_width + p.channel_width + 1
        depth = MAX_SLICES * p.n_channels
        m.submodules.sorted = memory = MemoryBank(depth=2 * depth, width=width + bits_for(n_keys(p.n_levels) - 1))
        handed = [_Sorted(f"sorted_{index}", depth) for index in range(2)]
        source, target = Signal(name="place_source"), Signal(name="place_target")
        places = Signal(self._place_layout, name="next_places")
        number = Signal(range(p.n_channels), name="place_number")
        address, slice_ = Signal(p.address_width, name="place_address"), Signal(range(MAX_SLICES), name="place_slice")
        is_running, is_read = Signal(name="place_runs"), Signal(name="place_is_read")
        starts, fetches, leaves = (Signal(name=f"place_{name}") for name in ("starts", "fetches", "leaves"))
        is_ready = Array(each.is_full for each in counted)[source] & ~Array(each.is_full for each in handed)[target]
        vector = Signal(summary_layout(p), name="place_vector")
        writes, is_last_slice, finishes = (
            Signal(name=f"place_{name}") for name in ("writes", "ends_vector", "finishes")
        )
        m.d.comb += [
            starts.eq(is_ready & ~is_running),
            vector.eq(vectors.read_data),
            writes.eq(is_read & (vector.n_slices != 0)),
            is_last_slice.eq(slice_ + 1 >= vector.n_slices),
            leaves.eq(is_read & is_last_slice),
            finishes.eq(leaves & vector.last),
            fetches.eq(starts | (leaves & ~vector.last)),
            vectors.read_enable.eq(fetches),
            vectors.read_address.eq(Mux(starts, 0, number) + Mux(source, p.n_channels, 0)),
        ]
        m.d.sync += [is_running.eq((is_running | starts) & ~finishes), is_read.eq((is_read & ~leaves) | fetches)]
        with m.If(fetches):
            m.d.sync += number.eq(Mux(starts, 1, number + 1))
        with m.If(is_read):
            m.d.sync += slice_.eq(Mux(leaves, 0, slice_ + 1))
        key = Signal(range(n_keys(p.n_levels)), name="place_key")
        m.d.comb += [
            key.eq(vector.level + KEY_OFFSET - (slice_ << 1)),
            memory.write_enable.eq(writes),
            memory.write_address.eq(Array(places)[key] + Mux(target, depth, 0)),
            memory.write_data.eq(Cat(address, vector.channel, is_last_slice, key)),
        ]
        with m.If(starts):
            m.d.sync += [places.eq(Array(each.places for each in counted)[source]), address.eq(0)]
        with m.Elif(writes):
            m.d.sync += address.eq(address + 1)
            for index, place in enumerate(places):
                with m.If(key == index):
                    m.d.sync += place.eq(place + 1)
        for index, each in enumerate(counted):
            with m.If(finishes & (source == index)):
                m.d.sync += each.is_full.eq(0)
        for index, each in enumerate(handed):
            with m.If(finishes & (target == index)):
                finest = Mux(source, counted[1].finest, counted[0].finest)
                m.d.sync += [each.is_full.eq(1), each.count.eq(address + writes), each.finest.eq(finest)]
        m.d.sync += [source.eq(source ^ finishes), target.eq(target ^ finishes)]
        return memory, handed, depth

    def _read(self, m, memory, handed, depth):
        """The sorted tile, entry by entry."""
        p = self.parameters
        entry = self.entry.payload
        source, number = Signal(name="read_source"), Signal(bits_for(depth), name="read_number")
        is_offered, is_last, is_empty = (Signal(name=f"read_{name}") for name in ("offers", "last", "empty"))
        is_full = Array(each.is_full for each in handed)[source]
        count = Array(each.count for each in handed)[source]
        fetches, takes = Signal(name="read_fetches"), Signal(name="read_takes")
        ends, finest = Signal(name="read_ends"), Signal(EXPONENT, name="read_finest", reset_less=True)
        m.d.comb += [
            takes.eq(self.entry.valid & self.entry.ready),
            fetches.eq(is_full & (~is_offered | takes)),
            ends.eq(fetches & (number + 1 >= count)),
            memory.read_enable.eq(fetches),
            memory.read_address.eq(number + Mux(source, depth, 0)),
            self.entry.valid.eq(is_offered),
        ]
        m.d.sync += is_offered.eq(fetches | (is_offered & ~takes))
        with m.If(fetches):
            m.d.sync += [number.eq(Mux(ends, 0, number + 1)), is_last.eq(ends), is_empty.eq(count == 0)]
            m.d.sync += finest.eq(Mux(source, handed[1].finest, handed[0].finest))
        for index, each in enumerate(handed):
            with m.If(ends & (source == index)):
                m.d.sync += each.is_full.eq(0)
        m.d.sync += source.eq(source ^ ends)

        address, channel = Signal(p.address_width, name="read_slice"), Signal(p.channel_width, name="read_channel")
        is_top = Signal(name="read_is_top")
        key = Signal(range(n_keys(p.n_levels)), name="read_key")
        before, is_first = Signal.like(key, name="read_key_before"), Signal(name="read_is_first", init=1)
        m.d.comb += [
            Cat(address, channel, is_top, key).eq(memory.read_data),
            entry.address.eq(Mux(is_empty, 0, address)),
            entry.channel.eq(Mux(is_empty, 0, channel)),
            entry.is_top.eq(is_top & ~is_empty),
            entry.is_used.eq(~is_empty),
            entry.last.eq(is_last),
            entry.shift.eq(Mux(is_first | is_empty, 0, key - before)),
            entry.exponent.eq(Mux(is_empty, 0, key - (KEY_OFFSET + p.n_levels - 1) + finest)),
        ]
        with m.If(takes):
            m.d.sync += is_first.eq(is_last)
        with m.If(takes & ~is_empty):
            m.d.sync += before.eq(key)


class _Buffer:
    """A counted tile: valid bit, start of each key, finest exponent."""

    def __init__(self, name, layout):
        self.is_full = Signal(name=f"{name}_full")
        self.places = Signal(layout, name=f"{name}_places", reset_less=True)
        self.finest = Signal(EXPONENT, name=f"{name}_finest", reset_less=True)


class _Sorted:
    """A sorted tile: valid bit, number of slices, finest exponent."""

    def __init__(self, name, depth):
        self.is_full = Signal(name=f"{name}_full")
        self.count = Signal(bits_for(depth), name=f"{name}_count", reset_less=True)
        self.finest = Signal(EXPONENT, name=f"{name}_finest", reset_less=True)
