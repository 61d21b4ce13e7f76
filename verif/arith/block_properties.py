"""Shifters, counters, adders, comparators, rounding: each against a line of arithmetic, for the widths in use."""

from amaranth.hdl import Cat, Const, Mux, Signal

from golden.spec.formats import float_format
from hw.arith.compare import FloatCompare
from hw.arith.compressor import FullAdderRow, HalfAdderRow
from hw.arith.end_around import EndAroundAdder
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.maximum import DigitMaximum
from hw.arith.prefix_adder import PrefixAdder
from hw.arith.rounding import RoundPack, SubnormalDistance, SubnormalShift
from hw.arith.shifter import LogShifter
from hw.arith.sorting_network import CompareExchangeRow
from verif.formal.properties import Property
from verif.formal.reference import Number


def full_adders(c, block):
    c.claim(
        "sum and carry",
        Cat(
            Cat(sum_bit, carry_bit) == a + b + x
            for a, b, x, sum_bit, carry_bit in zip(block.a, block.b, block.c, block.sum, block.carry, strict=False)
        ).all(),
    )


def half_adders(c, block):
    c.claim(
        "sum and carry",
        Cat(
            Cat(sum_bit, carry_bit) == a + b
            for a, b, sum_bit, carry_bit in zip(block.a, block.b, block.sum, block.carry, strict=False)
        ).all(),
    )


def adder(c, block):
    c.claim("sum", block.sum == (block.a + block.b)[: block.width])


def leading_zeros(c, block):
    expected = Const(block.width, len(block.count))
    for index, bit in enumerate(block.value):
        expected = Mux(bit, block.width - 1 - index, expected)
    c.claim("count of leading zeros", block.count == expected)


def shifter(c, block):
    value, amount = block.value, block.amount
    if block.direction == "left":
        c.claim("shifted left", block.shifted == (value << amount)[: block.width])
        return
    exact = (value.as_signed() if block.arithmetic else value) >> amount
    fits = 1 if block.result_width is None else (exact >> block.result_width) == 0
    c.claim(
        "shifted right",
        ~fits | (block.shifted == exact[: len(block.shifted)])
        if block.result_width is not None
        else block.shifted == exact[: block.width],
    )
    lost = (value & ((Const(1, 1) << amount) - 1)[: block.width]) != 0
    c.claim("whether a one was lost", block.lost == (lost if block.sticky else 0))


def end_around(c, block):
    """The sum; or with b = ~x the magnitude of a - x, one less if it is positive and x has a fraction below."""
    a, x, width = block.a, (~block.b)[: block.width], block.width
    positive = a > x
    magnitude = Mux(positive, a - x - block.lost, x - a)
    c.claim("sum", block.subtract | (block.magnitude == (a + block.b)[:width]))
    c.claim("magnitude of the difference", ~block.subtract | (block.magnitude == magnitude[:width]))
    c.claim("whether it is negative or zero", ~block.subtract | (block.negative == ~positive))


def digit_maximum(c, block):
    values = [Cat(plane[index] for plane in block.plane) for index in range(block.n)]
    largest = Const(0, block.width)
    for index, value in enumerate(values):
        candidate, so_far = Signal(block.width), Signal(block.width)
        c.m.d.comb += [
            candidate.eq(Mux(block.candidates[index], value, 0)),
            so_far.eq(Mux(candidate > largest, candidate, largest)),
        ]
        largest = so_far
    c.claim("the largest candidate", block.maximum == largest)
    c.claim(
        "who is as large",
        block.largest == Cat(block.candidates[index] & (value == largest) for index, value in enumerate(values)),
    )


def exchange(c, block):
    """Each pair in order, items whole, equal ranks not exchanged."""
    width = block.rank_width + block.payload_width
    for lane in range(block.n_lanes):
        first, second, leading, trailing = (
            port.word_select(lane, width) for port in (block.first, block.second, block.leading, block.trailing)
        )
        ranks = [item[block.payload_width :] for item in (first, second)]
        ranks = [rank.as_signed() if block.signed else rank for rank in ranks]
        swap = ranks[1] > ranks[0] if block.descending else ranks[1] < ranks[0]
        c.claim(f"pair {lane}", (leading == Mux(swap, second, first)) & (trailing == Mux(swap, first, second)))


def float_compare(c, block):
    fmt = float_format(block.format)
    left, right = Number(fmt, block.left), Number(fmt, block.right)
    a, b = (Mux(word[-1], -word[:-1], word[:-1]) for word in (block.left, block.right))
    ordered = ~left.is_nan & ~right.is_nan
    c.claim("less", block.less == (ordered & (a < b)))
    c.claim("equal", block.equal == (ordered & (a == b)))
    c.claim("greater", block.greater == (ordered & (a > b)))
    # Of two words that are the same either may be taken; -0 is below +0.
    above = (a > b) | ((a == b) & ~block.left[-1])
    asked = ordered & (block.left != block.right)
    c.claim("maximum", ~asked | (block.left_is_maximum == above))
    c.claim("minimum", ~asked | (block.left_is_minimum == ~above))
    c.claim(
        "a NaN loses",
        ~(left.is_nan ^ right.is_nan)
        | ((block.left_is_maximum == right.is_nan) & (block.left_is_minimum == right.is_nan)),
    )


def subnormal_distance(c, block):
    """How far below 1 the exponent is, saturated at a value that is at least the width."""
    exact = 1 - block.exponent
    short = exact < (1 << len(block.distance))
    c.claim("distance", block.distance == Mux(exact <= 0, 0, Mux(short, exact, (1 << len(block.distance)) - 1)))


def subnormal_shift(c, block):
    distance = Mux(block.exponent >= 1, 0, 1 - block.exponent)[: block.exponent_width]
    c.claim("shifted", block.shifted == block.significand >> distance)
    lost = (block.significand & ((Const(1, 1) << distance) - 1)[: block.width]) != 0
    c.claim("whether a one was lost", block.lost == lost)


def round_pack(c, block):
    """Fraction and field as one number, plus one where the rest is more than a half, or a half beside an odd number."""
    fmt = float_format(block.format)
    below = block.width - fmt.precision
    significand = block.significand << max(-below, 0)
    below = max(below, 0)
    hidden = (significand >> (below + fmt.fraction_width)) != 0
    kept = significand >> below
    rest = Cat(block.sticky, significand[:below])  # in halves of the last bit of the significand
    half = 1 << below
    up = (rest > half) | ((rest == half) & kept[0]) if below else 0
    field = Mux(hidden, block.exponent - 1, 0)
    number = (field << fmt.fraction_width) + kept + up
    too_large = hidden & (block.exponent >= fmt.max_exponent)
    magnitude = Mux(block.is_inf | too_large, fmt.infinity, number)[: fmt.width - 1]
    # A normal number's exponent is positive.
    asked = ~hidden | (block.exponent >= 1)
    c.claim("word", ~asked | (block.word == Mux(block.is_nan, fmt.nan, Cat(magnitude, block.sign))))


def _shifters():
    """The shapes that the blocks use, those for each width of an accumulator among them, and small ones."""
    right = [(26, 5), (28, 5), (33, 6), (12, 4), (17, 4), (18, 5), (32, 5), (34, 3), (42, 4), (45, 4), (50, 4)]
    sticky = [(26, 8), (12, 4), (13, 4), (17, 5), (18, 5), (19, 5), (24, 5), (25, 5), (28, 5), (37, 6), (5, 3), (1, 1)]
    arithmetic = [(width, 6) for width in (*range(33, 53), 29)] + [(29, 5), (33, 5), (5, 2)]
    both = [(14, 4), (27, 5), (3, 2)]
    left = [
        (17, 2),
        (6, 3),
        (7, 3),
        (19, 3),
        (16, 3),
        (21, 3),
        (10, 4),
        (11, 4),
        (13, 4),
        (18, 4),
        (23, 4),
        (25, 4),
        (26, 4),
        (18, 5),
        (19, 5),
        (28, 5),
        (31, 5),
        (40, 5),
        (32, 6),
        (37, 6),
        (44, 6),
        (47, 6),
        (48, 6),
        (49, 6),
        (51, 6),
        (53, 6),
        (55, 6),
        (47, 7),
        (48, 7),
        (54, 7),
        (1, 2),
    ]
    sizes = [{"width": width, "amount_width": amount} for width, amount in right]
    sizes += [{"width": width, "amount_width": amount, "sticky": True} for width, amount in sticky]
    sizes += [{"width": width, "amount_width": amount, "arithmetic": True} for width, amount in arithmetic]
    sizes += [{"width": width, "amount_width": amount, "arithmetic": True, "sticky": True} for width, amount in both]
    sizes += [
        {"width": width, "amount_width": amount, "direction": "left", "small_steps_first": first}
        for width, amount in left
        for first in (True, False)
    ]
    sizes += [{"width": 26, "amount_width": 5, "result_width": 11}]
    return sizes + [{"width": 9, "amount_width": 3, "result_width": 4, "small_steps_first": False}]


def _sat(statement, block, sizes, check, quick=True):
    return Property("building_blocks", statement, block, sizes, check, engine="sat", quick=quick)


PROPERTIES = [
    _sat(
        "a + b + c = sum + 2 carry in every bit",
        FullAdderRow,
        [{"width": width} for width in range(1, 65)],
        full_adders,
    ),
    _sat("a + b = sum + 2 carry in every bit", HalfAdderRow, [{"width": width} for width in range(1, 33)], half_adders),
    _sat("a + b by a tree", PrefixAdder, [{"width": width} for width in range(1, 65)], adder),
    _sat("counts leading zeros", LeadingZeroCounter, [{"width": width} for width in range(1, 65)], leading_zeros),
    _sat("shifts, and tells whether a one was lost", LogShifter, _shifters(), shifter),
    _sat(
        "sum, or magnitude of a difference",
        EndAroundAdder,
        [{"width": width} for width in (2, 3, 5, 8, 28, 37)],
        end_around,
    ),
    _sat(
        "the largest candidate, and who is as large",
        DigitMaximum,
        [
            {"n": n, "width": width}
            for n, width in (
                (1, 1),
                (3, 5),
                (4, 6),
                (8, 6),
                (16, 6),
                (5, 9),
                (2, 8),
                (4, 2),
                (8, 3),
                (16, 2),
                (64, 2),
                (5, 2),
                (17, 2),
                (65, 2),
                (5, 4),
                (17, 4),
                (65, 4),
                (9, 6),
            )
        ],
        digit_maximum,
        quick=False,
    ),
    _sat(
        "each pair in order, items whole",
        CompareExchangeRow,
        [
            {"n_lanes": 2, "rank_width": 8, "payload_width": 8},
            {"n_lanes": 1, "rank_width": 1, "payload_width": 0},
            {"n_lanes": 3, "rank_width": 5, "payload_width": 2, "signed": True},
            {"n_lanes": 2, "rank_width": 11, "payload_width": 3, "descending": True},
            {"n_lanes": 1, "rank_width": 64, "payload_width": 64, "signed": True, "descending": True},
        ],
        exchange,
    ),
    _sat("order of two words", FloatCompare, [{"format": name} for name in ("fp16", "bf16", "fp32")], float_compare),
    _sat(
        "distance to the smallest exponent, saturated",
        SubnormalDistance,
        [
            {"width": width, "exponent_width": exponent}
            for width, exponent in ((12, 10), (13, 10), (24, 10), (25, 10), (18, 8), (19, 9), (4, 5), (24, 3))
        ],
        subnormal_distance,
    ),
    _sat(
        "shifted to the smallest exponent",
        SubnormalShift,
        [
            {"width": width, "exponent_width": exponent}
            for width, exponent in ((12, 10), (24, 10), (25, 10), (18, 8), (19, 9), (5, 4))
        ],
        subnormal_shift,
    ),
    _sat(
        "rounded to nearest, ties to even",
        RoundPack,
        [
            {"format": name, "width": width, "exponent_width": exponent}
            for name, width, exponent in (
                ("fp16", 12, 10),
                ("fp16", 13, 10),
                ("fp16", 24, 10),
                ("fp16", 25, 10),
                ("fp16", 26, 7),
                ("fp16", 18, 8),
                ("fp32", 25, 10),
                ("fp32", 26, 10),
                ("fp32", 28, 10),
                ("fp32", 31, 10),
                ("bf16", 13, 10),
                ("bf16", 25, 10),
                ("bf16", 9, 10),
                ("fp16", 5, 7),
                ("fp16", 12, 7),
                ("fp16", 19, 9),
            )
        ],
        round_pack,
    ),
]
