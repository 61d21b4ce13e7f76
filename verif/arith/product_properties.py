"""Multipliers and trees of adders and comparators: products and sums of all words, for the widths that blocks use."""

from types import SimpleNamespace

from amaranth.hdl import Const, Mux, Signal

from hw.arith.modular_multiplier import ConstantModularMultiplier, ModularMultiplier
from hw.arith.multiplier import RecodedMultiplier, TruncatedMultiplier, UnsignedMultiplier
from hw.arith.trees import MaximumTree, SumTree
from verif.formal.lockstep import delayed, lock_step
from verif.formal.properties import Property


def multiplies(c, block):
    c.enumerate(
        (block.multiplier, range(1 << len(block.multiplier))), (block.multiplicand, range(1 << len(block.multiplicand)))
    )
    product = (block.multiplicand * block.multiplier)[: len(block.product)]
    c.claim("product", block.product == product)
    c.cover("a product", block.product != 0)


def multiplies_registered(c, block):
    """The product of the operands of an advance ago."""
    operands = block.multiplier, block.multiplicand
    filled = lock_step(c, block, *((operand, range(1 << len(operand))) for operand in operands))
    c.claim("product", ~filled | (block.product == delayed(c, block, block.multiplicand * block.multiplier)))


def sums(c, block):
    """The sum, `latency` advances later."""
    total = Signal(len(block.total))
    c.m.d.comb += total.eq(sum(addend.as_signed() for addend in block.addends))
    addends = c.free(len(block.addends.as_value()), "addends")
    c.drive(block.addends, addends)
    filled = lock_step(c, block, (addends, range(1 << len(addends))))
    c.claim("total", ~filled | (block.total == delayed(c, block, total).as_signed()))


def maximum(c, block):
    """The largest value, `latency` advances later."""
    largest = Const(0, block.width)
    for index, value in enumerate(block.values):
        so_far = Signal(block.width, name=f"largest_{index}")
        c.m.d.comb += so_far.eq(Mux(value > largest, value, largest))
        largest = so_far
    filled = lock_step(c, block)
    c.claim("the largest", ~filled | (block.largest == delayed(c, block, largest)))


def multiplies_partly(words):
    """The kept columns of the array of partial products, and the constant."""

    def check(c, block):
        stage = SimpleNamespace(latency=int(block.pipelined), advance=block.advance if block.pipelined else Const(1))
        filled = lock_step(
            c,
            stage,
            (block.multiplier, range(1 << block.multiplier_width)),
            (block.multiplicand, words(block.multiplicand_width)),
        )
        rows = []
        for index, bit in enumerate(block.multiplier):
            kept = block.multiplicand >> max(0, block.dropped - index) << max(0, index - block.dropped)
            rows.append(Mux(bit, kept, 0))
        total = (sum(rows) + block.centre)[: len(block.product)]
        c.claim("product", ~filled | (block.product == delayed(c, stage, total)))

    return check


def constant_product(c, block):
    c.claim("product", block.product == (block.multiplicand * block.multiplier)[: block.width])


PROPERTIES = [
    Property(
        "building_blocks",
        "product with a constant modulo a power of two",
        ConstantModularMultiplier,
        [
            {"width": width, "multiplier": multiplier}
            for width, multiplier in (
                (6, 23),
                (6, 39),
                (8, 159),
                (8, 95),
                (10, 633),
                (10, 969),
                (12, 2531),
                (16, 40503),
                (5, 0),
                (4, 8),
            )
        ],
        constant_product,
        engine="sat",
        quick=True,
    ),
    Property(
        "building_blocks",
        "product of all pairs",
        UnsignedMultiplier,
        [
            {"multiplicand_width": a, "multiplier_width": b}
            for a, b in ((11, 11), (8, 8), (9, 1), (9, 5), (5, 11), (6, 11), (12, 9), (12, 11))
        ],
        multiplies,
        engine="exhaustive",
        quick=True,
    ),
    Property(
        "building_blocks",
        "product of all pairs",
        RecodedMultiplier,
        [
            {"multiplicand_width": a, "multiplier_width": b, "registered": False}
            for a, b in ((9, 1), (9, 5), (1, 6), (2, 3))
        ],
        multiplies,
        engine="exhaustive",
        quick=True,
    ),
    Property(
        "building_blocks",
        "product of all pairs an advance ago",
        RecodedMultiplier,
        [{"multiplicand_width": a, "multiplier_width": b} for a, b in ((11, 11), (2, 3))],
        multiplies_registered,
        engine="exhaustive",
        quick=True,
    ),
    Property(
        "building_blocks",
        "product of all pairs modulo a power of two",
        ModularMultiplier,
        [{"width": width} for width in (1, 2, 6, 9, 12)],
        multiplies,
        engine="exhaustive",
        quick=True,
    ),
    Property(
        "building_blocks",
        "sum of any numbers, full adders first",
        SumTree,
        [{"n_inputs": n, "width": width} for n, width in ((1, 3), (2, 8), (3, 5), (4, 5), (5, 4), (7, 2), (16, 1))],
        sums,
        engine="exhaustive",
        quick=True,
    ),
    Property(
        "building_blocks",
        "sum of any numbers, full adders first",
        SumTree,
        [{"n_inputs": n, "width": width} for n, width in ((2, 47), (3, 47), (4, 47), (4, 49), (4, 27), (4, 33))],
        sums,
        quick=True,
    ),
    Property(
        "building_blocks",
        "the largest of any numbers",
        MaximumTree,
        [{"n_inputs": n, "width": width, "n_stages": stages} for n, width, stages in ((4, 7, 2), (5, 4, 0), (1, 7, 2))],
        maximum,
        quick=True,
    ),
    Property(
        "building_blocks",
        "product of all pairs, without its last columns",
        TruncatedMultiplier,
        [
            {"multiplicand_width": a, "multiplier_width": b, **more}
            for a, b, more in (
                (14, 11, {"dropped": 0, "pipelined": True}),
                (14, 14, {"dropped": 9, "centre": 4}),
                (15, 15, {"dropped": 0, "pipelined": True}),
                (16, 13, {"dropped": 0, "pipelined": True}),
                (10, 13, {"dropped": 0, "pipelined": True}),
                (12, 13, {"dropped": 0, "pipelined": True}),
                (14, 15, {"dropped": 10, "centre": 4, "pipelined": True}),
            )
        ],
        multiplies_partly(lambda width: range(1 << width)),
        engine="exhaustive",
    ),
    Property(
        "building_blocks",
        "product with every 61st word, without its last columns",
        TruncatedMultiplier,
        [{"multiplicand_width": 19, "multiplier_width": 16, "dropped": 12, "centre": 5, "pipelined": True}],
        multiplies_partly(lambda width: range(0, 1 << width, 61)),
        engine="class",
    ),
]
