"""BitonicSorter: sorts one vector of keys and payloads a clock in a pipelined comparator network."""

from amaranth.hdl import Cat, Const, Module, Signal, unsigned
from amaranth.hdl import signed as signed_shape
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec.bitonic_sorter import BitonicSorterParameters
from hw.arith.sorting_network import NETWORKS, CompareExchangeRow, split
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline


class BitonicSorter(Block):
    """Sorts a vector of n keys, each with its payload, by a comparator network; one vector a clock.

    ``sorted.keys[i] <= sorted.keys[i+1]`` (``>=`` if descending), and the pairs (key, payload) of ``sorted`` are
    those of ``unsorted``. The order of equal keys is that of ``unsorted`` if stable, else that of the network, whose
    comparators never exchange equal keys.

    Members: the streams ``unsorted`` and ``sorted`` carry ``keys`` (n numbers of key_width bits) and, unless
    payload_width is 0, ``payloads`` (n words of payload_width bits), element 0 in the lowest bits.

    Timing: with L = log2(n)·(log2(n)+1)/2 layers, registers stand at the input, after every layers_per_stage layers
    and after the last: latency is 1 + ceil(L / layers_per_stage), one vector a clock, and the pipeline stalls
    while a sorted vector is not accepted. With layers_per_stage = 0 everything is combinational and latency is 0.

    Defined by :func:`golden.units.bitonic_sorter.sort`. Networks: K. E. Batcher, "Sorting networks and their
    applications", AFIPS 1968.
    """

    Parameters = BitonicSorterParameters
    members_doc = {
        "unsorted": "one vector a beat: keys and payloads in any order",
        "unsorted.keys": "integers of key_width bits, two's complement if signed",
        "unsorted.payloads": "any bits: the payload of each key goes where the key goes",
        "sorted": "the same keys, each with its payload, in order",
        "sorted.keys": "element 0 is the first one of the order",
        "sorted.payloads": "those of these keys",
    }

    @staticmethod
    def members(p):
        key = signed_shape(p.key_width) if p.signed else unsigned(p.key_width)
        fields = {"keys": data.ArrayLayout(key, p.n)}
        if p.payload_width:
            fields["payloads"] = data.ArrayLayout(unsigned(p.payload_width), p.n)
        vector = stream.Signature(data.StructLayout(fields))
        return {"unsorted": In(vector), "sorted": Out(vector)}

    @property
    def n_layers(self):
        """Comparator layers, the same in both networks."""
        n_log2 = self.n.bit_length() - 1
        return n_log2 * (n_log2 + 1) // 2

    @property
    def latency(self):
        """Clocks from an accepted vector to its sorted one."""
        return 1 + -(-self.n_layers // self.layers_per_stage) if self.layers_per_stage else 0

    @property
    def _index_width(self):
        return self.n.bit_length() - 1 if self.stable else 0

    @property
    def _item_width(self):
        return self.payload_width + self._index_width + self.key_width

    def circuit(self):
        m = Module()
        vector = self.unsorted.payload
        if self.layers_per_stage:
            pipe = Pipeline(m, source=self.unsorted, sink=self.sorted)
            pipe.valid_chain(self.latency)
            vector = pipe.register(vector, name="accepted")
        else:
            m.d.comb += [self.sorted.valid.eq(self.unsorted.valid), self.unsorted.ready.eq(self.sorted.ready)]

        items = self._items(vector)
        for number, pairs in enumerate(NETWORKS[self.network](self.n), start=1):
            items = self._layer(m, number, pairs, items)
            if self.layers_per_stage and number % self.layers_per_stage == 0 and number < self.n_layers:
                row = pipe.register(Cat(items), name=f"after_layer_{number}")
                items = split(m, row, self._item_width, f"item_after_layer_{number}")

        ordered = self._vector(m, items)
        if self.layers_per_stage:
            ordered = pipe.register(ordered, name="ordered_register")
        m.d.comb += self.sorted.payload.eq(ordered)
        return m

    def _items(self, vector):
        """One value for each element, compared from the top: key, index if stable, payload below."""
        items = []
        for i in range(self.n):
            # Among equal keys the lower index comes first, so it is inverted if the largest key comes first.
            index = Const(self.n - 1 - i if self.descending else i, self._index_width)
            payload = vector.payloads[i] if self.payload_width else Const(0, 0)
            items.append(Cat(payload, index, vector.keys[i]))
        return items

    def _layer(self, m, number, pairs, items):
        """The items after one layer of comparators."""
        m.submodules[f"layer_{number}"] = row = CompareExchangeRow(
            n_lanes=len(pairs),
            rank_width=self.key_width + self._index_width,
            payload_width=self.payload_width,
            signed=self.signed,
            descending=self.descending,
        )
        m.d.comb += [
            row.first.eq(Cat(items[first] for first, _ in pairs)),
            row.second.eq(Cat(items[second] for _, second in pairs)),
        ]
        items = list(items)
        leading = split(m, row.leading, self._item_width, f"layer_{number}_leading")
        trailing = split(m, row.trailing, self._item_width, f"layer_{number}_trailing")
        for lane, (first, second) in enumerate(pairs):
            items[first], items[second] = leading[lane], trailing[lane]
        return items

    def _vector(self, m, items):
        """The items as keys and payloads, without their indices."""
        vector = Signal(self.sorted.payload.shape(), name="ordered")
        for i, item in enumerate(items):
            m.d.comb += vector.keys[i].eq(item[self.payload_width + self._index_width :])
            if self.payload_width:
                m.d.comb += vector.payloads[i].eq(item[: self.payload_width])
        return vector
