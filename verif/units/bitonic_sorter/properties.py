"""Bitonic sorter: sorted, a permutation of the pairs, stable where promised, and the stream contract."""

from itertools import pairwise

from amaranth.hdl import Array, Cat, Const

from hw.units.bitonic_sorter.unit import BitonicSorter
from verif.formal.properties import Property
from verif.formal.streams import moves, one_to_one, stable


def sorts(c, block):
    """Each payload carries its key again, the index at which it came in, and a bit of its vector.

    If the payloads come out with all indices, each beside its own key, then the pairs are those that went in; if they
    all carry the bit of the vector whose turn it is, they are that vector's.
    """
    index_width = block.n.bit_length() - 1
    keys = c.free(block.n * block.key_width, "keys")
    mark = c.free(1, "mark")
    c.drive(
        block.unsorted.payload,
        Cat(keys, *(Cat(Const(i, index_width), keys.word_select(i, block.key_width), mark) for i in range(block.n))),
    )
    stable(c, sorted=block.sorted)
    capacity = max(1, block.latency)
    one_to_one(
        c,
        block.unsorted,
        block.sorted,
        capacity=capacity,
        latency=block.latency,
        expected=lambda payload: payload.payloads[0][-1],
        shown=lambda payload: payload.payloads[0][-1],
    )
    _claim_sorted(c, block)
    valid, payloads = block.sorted.valid, block.sorted.payload.payloads
    indices = [payload[:index_width] for payload in payloads]
    key_copies = [payload[index_width:-1] for payload in payloads]
    marks = Cat(payload[-1] for payload in payloads)
    c.claim(
        "each payload is beside its key",
        ~valid
        | Cat(
            copy == key.as_unsigned() for copy, key in zip(key_copies, block.sorted.payload["keys"], strict=False)
        ).all(),
    )
    c.claim(
        "each payload comes out", ~valid | Cat(Cat(index == i for index in indices).any() for i in range(block.n)).all()
    )
    c.claim("all payloads are of one vector", ~valid | marks.all() | ~marks.any())


def sorts_any_order(c, block):
    """Keys of log2(n) bits, every vector of them: in whatever order n keys are, and whichever are equal, so are those.

    Each payload is its index. What comes out beside it is its key, and all indices come out.
    """
    index_width = block.n.bit_length() - 1
    keys = _enumerated_keys(c, block, [Const(i, index_width) for i in range(block.n)])
    expected = Cat(keys)
    for stage in range(block.latency):
        expected = c.register(expected, f"keys_{stage}", enable=block.unsorted.ready)
    _claim_sorted(c, block)
    result = block.sorted.payload
    places = Array(expected.word_select(i, block.key_width) for i in range(block.n))
    c.claim(
        "each payload is beside its key",
        ~block.sorted.valid
        | Cat(
            places[payload] == key.as_unsigned() for payload, key in zip(result.payloads, result["keys"], strict=False)
        ).all(),
    )
    c.claim(
        "each payload comes out",
        ~block.sorted.valid | Cat(Cat(payload == i for payload in result.payloads).any() for i in range(block.n)).all(),
    )


def _enumerated_keys(c, block, payloads):
    """Every vector of keys, one after the other, with stalls; the keys in a few parts that are enumerated each."""
    width = block.n * block.key_width
    parts = [c.free(min(16, width - low), f"keys_{low}") for low in range(0, width, 16)]
    c.drive(block.unsorted.payload, Cat(parts, payloads))
    c.drive(block.unsorted.valid, 1)
    # The last choice is the fast one: it has to be large.
    c.enumerate(
        *((part, range(1 << len(part))) for part in reversed(parts)),
        taken=moves(block.unsorted),
        checked=moves(block.sorted),
    )
    return parts


def sorts_zeros_and_ones(c, block):
    """One-bit keys: sorted, and as many ones as went in. By the 0-1 principle the network then sorts any keys."""
    expected = popcount(block.unsorted.payload["keys"])
    for stage in range(block.latency):
        expected = c.register(expected, f"ones_{stage}", enable=block.unsorted.ready)
    c.claim("as many ones as before", ~block.sorted.valid | (popcount(block.sorted.payload["keys"]) == expected))
    _claim_sorted(c, block)
    _enumerated_keys(c, block, [Const(i, block.payload_width) for i in range(block.n)] if block.stable else [])


def popcount(bits):
    """The number of ones, as a balanced sum."""
    terms = list(bits)
    while len(terms) > 1:
        terms = [sum(terms[at : at + 2]) for at in range(0, len(terms), 2)]
    return terms[0]


def _claim_sorted(c, block):
    keys, valid = list(block.sorted.payload["keys"]), block.sorted.valid
    pairs = list(pairwise(keys))
    in_order = [first >= second if block.descending else first <= second for first, second in pairs]
    c.claim("sorted", ~valid | Cat(in_order).all())
    c.cover("keys that differ", valid & (keys[0] != keys[-1]))
    if block.stable:
        index_width = block.n.bit_length() - 1
        indices = [payload[:index_width] for payload in block.sorted.payload.payloads]
        c.claim(
            "equal keys keep their order",
            ~valid
            | Cat(
                (first != second) | (index < following)
                for (first, second), (index, following) in zip(pairs, pairwise(indices), strict=False)
            ).all(),
        )


def _size(n, key_width, **options):
    return {"n": n, "key_width": key_width, "payload_width": n.bit_length() - 1 + key_width + 1, **options}


SMALL = [_size(2, 3), _size(4, 3), _size(4, 2, layers_per_stage=1, network="odd_even", signed=True, descending=True)]

PROPERTIES = [
    Property("bitonic_sorter", "sorted; a permutation of the pairs; stream contract", BitonicSorter, SMALL, sorts),
    Property(
        "bitonic_sorter",
        "every order of the keys: sorted, a permutation of the pairs, stable where promised",
        BitonicSorter,
        [
            {"n": n, "key_width": n.bit_length() - 1, "payload_width": n.bit_length() - 1, **options}
            for n in (2, 4, 8)
            for options in (
                {},
                {"network": "odd_even", "stable": True, "descending": True},
                {"stable": True, "signed": True, "layers_per_stage": 1},
                {"network": "odd_even", "signed": True, "descending": True, "layers_per_stage": 0},
            )
        ],
        sorts_any_order,
        engine="exhaustive",
    ),
    Property(
        "bitonic_sorter",
        "0-1 principle: sorted, as many ones as before; equal keys keep their order",
        BitonicSorter,
        [
            {"n": 16, "key_width": 1, "payload_width": 4, "network": network, "stable": True}
            for network in ("bitonic", "odd_even")
        ],
        sorts_zeros_and_ones,
        engine="exhaustive",
    ),
    Property(
        "bitonic_sorter",
        "0-1 principle: sorted, as many ones as before",
        BitonicSorter,
        [
            {"n": n, "key_width": 1, "payload_width": 0, "network": network}
            for n in (16, 32)
            for network in ("bitonic", "odd_even")
        ],
        sorts_zeros_and_ones,
        engine="exhaustive",
    ),
]
