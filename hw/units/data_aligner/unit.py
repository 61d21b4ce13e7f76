"""DataAligner: transposes square tiles between two buffers, one vector in and one vector out a clock."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.data_aligner import DataAlignerParameters
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.lib.pipeline import Pipeline


class DataAligner(Block):
    """``columns[t][u] = rows[u][t]``: every n vectors are a tile, and its columns are output in order.

    Members: ``rows`` and ``columns`` carry n elements of width bits, element 0 in the lowest bits.

    The tiles alternate between two halves of n memory banks. Element i of vector u goes to bank (i + u) mod n at
    word u, so that the elements of a vector and those of a column are in n different banks: two rotators replace
    an n x n array of registers.

    Timing: a tile's first column is valid ``latency`` clocks after its last vector was accepted, the others clock by
    clock behind it. One vector in and one out a clock without a bubble; a stalled column holds back the input only
    when both halves are full.

    Defined by :func:`golden.units.data_aligner.transpose_tiles`. It is the data aligner of the DiSC paper: rows of K,
    made across the banks, leave as columns, element by element for each bank.
    """

    Parameters = DataAlignerParameters
    members_doc = {
        "rows": "one vector of a tile a beat, n of them a tile",
        "rows.elements": "any bits",
        "columns": "one column of the tile a beat: element t of all of its vectors",
        "columns.elements": "as they came",
    }
    latency = 3

    @staticmethod
    def members(p):
        vector = stream.Signature(data.ArrayLayout(p.width, p.n))
        return {"rows": In(vector), "columns": Out(vector)}

    def circuit(self):
        m = Module()
        n, place_width = self.n, ceil_log2(self.n)

        # One position (half and index in it) for each side; their difference gives the full halves.
        write = Signal(place_width + 1)
        read = Signal(place_width + 1)
        full = Signal(2)
        write_half, read_half = write[-1], read[-1]
        write_place, read_place = write[:-1], read[:-1]

        pipe = Pipeline(m, advance=Signal(name="advance"))
        m.d.comb += pipe.advance.eq(~self.columns.valid | self.columns.ready)
        accept = Signal()
        fetch = Signal()
        m.d.comb += [
            self.rows.ready.eq(~Mux(write_half, full[1], full[0])),
            accept.eq(self.rows.valid & self.rows.ready),
            fetch.eq(Mux(read_half, full[1], full[0]) & pipe.advance),
        ]
        filled = Signal(2)
        emptied = Signal(2)
        with m.If(accept):
            m.d.sync += write.eq(write + 1)
            m.d.comb += filled.eq(Mux(write_place == n - 1, Cat(~write_half, write_half), 0))
        with m.If(fetch):
            m.d.sync += read.eq(read + 1)
            m.d.comb += emptied.eq(Mux(read_place == n - 1, Cat(~read_half, read_half), 0))
        m.d.sync += full.eq((full | filled) & ~emptied)

        rotated = _rotate_up(m, self.rows.payload, write_place, "rotated")
        words = Signal(data.ArrayLayout(self.width, n))
        for index in range(n):
            m.submodules[f"bank_{index}"] = bank = MemoryBank(depth=2 * n, width=self.width)
            vector = Signal(place_width, name=f"vector_{index}")
            m.d.comb += [
                vector.eq(index - read_place),
                bank.write_enable.eq(accept),
                bank.write_address.eq(write),
                bank.write_data.eq(rotated[index]),
                bank.read_enable.eq(fetch),
                bank.read_address.eq(Cat(vector, read_half)),
                words[index].eq(bank.read_data),
            ]

        fetched = pipe.control(fetch, name="fetched")
        place = pipe.register(read_place, name="place")
        backwards = Signal(place_width)
        m.d.comb += backwards.eq(-place)
        column = _rotate_up(m, words, backwards, "column")
        m.d.comb += [
            self.columns.payload.eq(pipe.register(column, name="column_out")),
            self.columns.valid.eq(pipe.control(fetched, name="column_valid")),
        ]
        return m


def _rotate_up(m, vector, amount, name):
    """The vector rotated: element i moves to (i + amount) mod n, by a barrel shifter."""
    n = len(vector)
    for step in range(len(amount)):
        moved = Signal(vector.shape(), name=f"{name}_{step}")
        for index in range(n):
            m.d.comb += moved[index].eq(Mux(amount[step], vector[(index - (1 << step)) % n], vector[index]))
        vector = moved
    return vector
