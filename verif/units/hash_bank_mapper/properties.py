"""Hash bank mapper: the map is the one that is specified, a bijection, and both directions keep the stream contract."""

from amaranth.hdl import Cat, Const, Signal, unsigned

from hw.arith.modular_inverse import ModularInverse
from hw.units.hash_bank_mapper.unit import HashBankMapper
from verif.formal.properties import Property
from verif.formal.streams import bits, moves, obey, one_to_one, stable


def _fixed_multiplier(c, block):
    """A multiplier given at run time is chosen once, any odd one; returns it, or the constant."""
    p = block.parameters
    if not p.is_runtime:
        return Const(p.constant or 0, max(1, p.index_width))
    multiplier = c.constant(len(block.hash_multiplier), "multiplier")
    c.drive(block.hash_multiplier, multiplier)
    return multiplier | 1


def _location(p, index, multiplier):
    """Bank and address by the formula of the block's documentation, a port's width each."""
    w, b = p.index_width, p.bank_width
    index = index[:w]
    hashed = (index * multiplier)[:w] if p.hash == "multiplicative" else index
    if p.hash in ("multiplicative", "range"):
        bank, address = hashed >> (w - b), hashed[: w - b]
    else:
        bank, address = index[:b], index >> b
        if p.hash == "xor_fold":
            for low in range(b, w, b or 1):
                bank = bank ^ index[low : low + b]
    return Cat((bank + Const(0, 1))[: max(1, b)], (address + Const(0, 1))[: max(1, w - b)])


def specification(c, block):
    """Forward: the location is that of the formula; each lane by itself."""
    p = block.parameters
    multiplier = _fixed_multiplier(c, block)
    obey(c, block.index)
    stable(c, location=block.location)

    def expected(indices):
        lanes = [_location(p, indices.index[lane], multiplier) for lane in range(p.n_indices)]
        banks = max(1, p.bank_width)
        return Cat(Cat(lane[:banks] for lane in lanes), Cat(lane[banks:] for lane in lanes))

    one_to_one(c, block.index, block.location, capacity=1, latency=1, expected=expected)


def all_indices(c, block):
    """Every index, for every odd k where that is an input, through both directions, with stalls.

    k changes while nothing is inside. Every index comes back from its location: so no two of them share one, and since
    there are as many locations as indices, none is left over.
    """
    m, p = c.m, block.parameters
    index = c.free(max(1, p.index_width), "indices")
    choices, offers = [(index, range(1 << p.index_width))], c.free(1, "offers")
    inside = Signal(2)
    m.d.sync += inside.eq(inside + moves(block.index) - moves(block.column))
    multiplier = Const(p.constant or 0, max(1, p.index_width))
    if p.is_runtime:
        choice = c.free(len(block.hash_multiplier), "multiplier")
        choices.insert(0, (choice, range(1, 1 << len(choice), 2)))
        multiplier = Signal.like(choice, name="multiplier_in_use", reset_less=True)
        with m.If(inside == 0):
            m.d.sync += multiplier.eq(choice)
        offers = offers & (multiplier == choice)
        c.drive(block.hash_multiplier, multiplier)
    c.drive(block.index.payload, index)
    c.drive(block.index.valid, offers)
    c.drive(block.slot.payload, block.location.payload)
    c.drive(block.slot.valid, block.location.valid)
    c.drive(block.location.ready, block.slot.ready)
    location = c.register(_location(p, index, multiplier), "location", enable=moves(block.index))
    first = c.register(index, "index_of_location", enable=moves(block.index))
    second = c.register(first, "index_of_column", enable=moves(block.location))
    is_column = Cat(second, Const(0, 1)) < p.n_columns
    c.claim("location is that of the formula", ~block.location.valid | (bits(block.location.payload) == location))
    c.claim(
        "column of location is the index", ~block.column.valid | (bits(block.column.payload) == Cat(second, is_column))
    )
    c.cover("a column comes out", moves(block.column))
    c.enumerate(*choices, taken=moves(block.index), checked=moves(block.column))


def both_directions(c, block):
    """Each direction by itself keeps the contract while the other one, and the multiplier, do what they like."""
    obey(c, block.slot, block.index)
    stable(c, location=block.location, column=block.column)
    for name, source, sink in (("location", block.index, block.location), ("column", block.slot, block.column)):
        inside = Signal(2, name=f"{name}s_inside")
        c.m.d.sync += inside.eq(inside + (source.valid & source.ready) - (sink.valid & sink.ready))
        c.claim(f"{name}: valid when a beat is inside, of which there is at most one", (inside == sink.valid))
    c.claim("a free place makes index ready", block.index.ready == (~block.location.valid | block.location.ready))


def inverse(c, block):
    """A ready inverse is that of the present number, and it is ready width + 1 clocks after a change."""
    number = Signal(unsigned(block.width))
    c.drive(block.number, number)
    c.m.d.comb += number.eq(c.free(block.width, "choice") | 1)
    product = Signal(block.width)
    c.m.d.comb += product.eq(number * block.inverse)
    c.claim("number times inverse is one", ~block.ready | (product == 1))
    before = c.register(number, "number_before")
    unchanged = Signal(range(block.width + 2))
    same = Signal()
    c.m.d.comb += same.eq((before == number) & (unchanged != 0))
    with c.m.If(~same):
        c.m.d.sync += unchanged.eq(1)
    with c.m.Elif(unchanged <= block.width):
        c.m.d.sync += unchanged.eq(unchanged + 1)
    c.claim("ready width + 1 clocks after the change", block.ready == (same & (unchanged == block.width + 1)))
    c.cover("ready", block.ready)


def _all_widths(**common):
    """Every legal pair of widths (w, b) up to w = 8, three b for larger w, and columns that are no power of two."""
    pairs = [(w, b) for w in range(17) for b in (range(w + 1) if w <= 8 else (1, w // 2, w))]
    return [{"n_columns": 1 << w, "n_banks": 1 << b, **common} for w, b in pairs] + [
        {"n_columns": columns, "n_banks": banks, **common} for columns, banks in ((5, 8), (33, 2), (200, 16))
    ]


EVERY_INDEX = [size for hash in ("multiplicative", "modular", "range", "xor_fold") for size in _all_widths(hash=hash)]

CONSTANTS = [
    {"n_columns": 64, "n_banks": 4},
    {"n_columns": 100, "n_banks": 8},
    {"n_columns": 5, "n_banks": 8},
    {"n_columns": 64, "n_banks": 8, "multiplier": 45},
    {"n_columns": 200, "n_banks": 16, "n_indices": 2},
    {"n_columns": 1000, "n_banks": 16},
    *({"n_columns": 100, "n_banks": 8, "hash": hash} for hash in ("modular", "range", "xor_fold")),
]
RUNTIME = [
    {"n_columns": columns, "n_banks": banks, "multiplier": "runtime"}
    for columns, banks in ((8, 2), (13, 4), (16, 16), (1, 1))
]

PROPERTIES = [
    Property(
        "hash_bank_mapper",
        "every index: location is that of the formula, column of location is the index",
        HashBankMapper,
        EVERY_INDEX,
        all_indices,
        engine="exhaustive",
    ),
    Property(
        "hash_bank_mapper",
        "the same for every index and every odd k",
        HashBankMapper,
        _all_widths(multiplier="runtime"),
        all_indices,
        engine="exhaustive",
        timeout=1800,
    ),
    Property(
        "hash_bank_mapper", "location is that of the formula; stream contract", HashBankMapper, CONSTANTS, specification
    ),
    Property(
        "hash_bank_mapper",
        "location is that of the formula for every odd k (free); stream contract",
        HashBankMapper,
        RUNTIME,
        specification,
    ),
    Property(
        "hash_bank_mapper",
        "both directions keep the contract while k changes at any time",
        HashBankMapper,
        RUNTIME + CONSTANTS,
        both_directions,
    ),
    Property(
        "hash_bank_mapper",
        "inverse of every odd k, whenever it changes",
        ModularInverse,
        [{"width": width} for width in (1, 2, 3, 4, 5)],
        inverse,
    ),
]
