"""Mixed-precision array: shifts lose no bits; groups enter once, in time; a tile's results come once, in order."""

from amaranth.hdl import Cat, Const, Mux, Signal, signed

from golden.spec.mixed_precision import GROUP, n_keys
from hw.units.mixed_precision_array.element import ProcessingElement
from hw.units.mixed_precision_array.output_lane import OutputLane
from hw.units.mixed_precision_array.sequencer import GroupSequencer
from hw.units.mixed_precision_array.unit import MixedPrecisionArray
from verif.formal.properties import Property
from verif.formal.streams import moves, obey


def _drive_lanes(c, block, lanes):
    """Weights and digits for the first lanes, zeros for the others; gives the sum of their products."""
    m, product, multiples, selects = c.m, 0, [], []
    for index, (code, weight, is_top) in enumerate(lanes):
        product = product + Mux(is_top & code[1], code - 4, code) * weight
        twice, triple = Signal(signed(10), name=f"twice_{index}"), Signal(signed(10), name=f"triple_{index}")
        m.d.comb += [
            twice.eq(Mux(is_top, -weight, weight) << 1),
            triple.eq(Mux(is_top, -weight, weight + (weight << 1))),
        ]
        multiples += [weight, twice, triple]
        selects += [code == 1, code == 2, code == 3]
    left = GROUP - len(lanes)
    c.drive(block.multiples, Cat(multiples, Const(0, left * (len(block.multiples.as_value()) // GROUP))))
    c.drive(block.selects, Cat(selects, Const(0, 3 * left)))
    return product


def multiplies(c, block):
    """Four products a clock, added to zero."""
    m = c.m
    lanes = [(c.free(2, f"digit_{i}"), c.free(signed(8), f"weight_{i}"), c.free(1, f"top_{i}")) for i in range(GROUP)]
    product = Signal(signed(12))
    m.d.comb += product.eq(_drive_lanes(c, block, lanes))
    c.drive(block.control, Cat(Const(1, 1), Const(0, 1)))
    c.drive(block.captures, 1)
    c.drive(block.moves, 0)
    expected = product
    for stage in range(3):
        delayed = Signal.like(expected, name=f"product_{stage}", reset_less=True)
        m.d.sync += delayed.eq(expected)
        expected = delayed
    is_known = c.register(c.register(c.register(1, "one"), "two"), "three")
    c.claim("three clocks later the sum of four products", ~is_known | (block.out == expected))
    c.cover("the least sum", is_known & (block.out == 3 * -128 * GROUP))


def keeps_bits(c, block):
    """The sum is the exact integer, kept with eight more bits, in all runs in which that never leaves its range.

    That it does not for any tile is :func:`golden.spec.mixed_precision.sum_width`, see the test of the largest sums.
    """
    m, width = c.m, block.sum_width
    # One lane is enough: what follows the adders of the lanes sees their sum only, and products are exact, see below.
    digit, weight, is_top = c.free(2, "digit"), c.free(signed(8), "weight"), c.free(1, "is_top")
    product = _drive_lanes(c, block, [(digit, weight, is_top)])
    exact_product = Signal(signed(width + 8), reset_less=True)  # as the product of the element
    m.d.sync += exact_product.eq(product)
    c.assume(~block.control.doubles | (c.register(digit, "digit_before") == 0))
    c.assume(~(block.control.doubles & block.control.clears))

    known, exact = Signal(), Signal(signed(width + 8))
    total = Signal(signed(width + 8))
    m.d.comb += total.eq(Mux(block.control.clears, 0, exact) + Mux(block.control.doubles, exact, exact_product))
    m.d.sync += [known.eq(known | block.control.clears), exact.eq(total)]
    c.assume(~(known | block.control.clears) | ((total >= -(1 << width - 1)) & (total < 1 << width - 1)))
    was_known = c.register(known, "was_known")
    captured = c.register(block.captures, "captured")
    before = c.register(exact, "exact_before")
    c.claim("the captured sum is the exact one", ~(captured & was_known) | (block.out == before))
    moved = c.register(block.moves & ~block.captures, "moved")
    c.claim("an outgoing sum moves on unchanged", ~moved | (block.out == c.register(block.next_out, "next_before")))
    c.cover("a large negative sum", captured & was_known & (before < -(1 << width - 2)))


def sequences(c, block):
    """A group enters once, after as many doublings as its shift; only the last one may wait, while sums leave."""
    m, step, group = c.m, block.step, block.group.payload
    obey(c, block.group)
    is_open, doubled, drains = Signal(), Signal(range(1 << len(group.shift))), Signal()
    m.d.sync += drains.eq((drains & ~block.drained) | (step.adds & step.is_last))
    c.assume(~block.drained | drains)
    m.d.sync += doubled.eq(Mux(step.adds, 0, doubled + step.doubles))
    with m.If(step.adds):
        m.d.sync += is_open.eq(~group.last)
    c.claim("a group is taken when it enters", step.adds == moves(block.group))
    c.claim("sums are doubled or added to", ~(step.adds & step.doubles))
    c.claim("doublings are the shift", ~step.adds | (doubled == Mux(is_open, group.shift, 0)))
    c.claim("nothing is doubled without a group", ~step.doubles | block.group.valid)
    c.claim("marks of first and last", ~step.adds | ((step.is_first == ~is_open) & (step.is_last == group.last)))
    c.claim("sums of one tile leave at a time", ~(step.adds & step.is_last & drains))
    longest = (1 << len(group.shift)) - 1
    patience = Signal(range(longest + 3))
    waits = block.group.valid & ~step.adds & ~(drains & group.last)
    m.d.sync += patience.eq(Mux(waits, patience + (patience <= longest), 0))
    c.claim("no group waits longer than its shift", patience <= longest)
    c.cover("a shift of three", step.adds & (doubled == 3))
    c.cover("a last group waits", block.group.valid & group.last & drains)


def gives_results(c, block):
    """Of every tile exactly as many results as it has outputs, each with its beat of previous, in order."""
    m, p = c.m, block.parameters
    obey(c, block.group, block.previous)
    c.assume(block.group.payload.shift < n_keys(p.n_levels))
    waited = c.register(block.result.valid & ~block.result.ready, "result_waited")
    c.claim("a result waits until it is taken", ~waited | block.result.valid)
    beats = p.n_rows * p.n_columns // p.lanes
    ends = moves(block.group) & block.group.payload.last
    taken, given = moves(block.previous), moves(block.result)
    # Outputs of complete tiles that are not taken yet, and those on their way.
    due, inside = Signal(range(3 * beats)), Signal(range(block.output_latency + 2))
    m.d.sync += [due.eq(due + Mux(ends, beats, 0) - taken), inside.eq(inside + taken - given)]
    c.claim("previous outputs are taken for complete tiles only", ~taken | (due != 0))
    c.claim("one tile leaves at a time", due <= beats)
    c.claim("no result without its previous output", ~block.result.valid | (inside != 0))
    c.claim("no more inside than the pipeline holds", inside <= block.output_latency)
    # No deadlock: with outputs due, previous ones offered and results taken, something moves.
    patience = Signal(range(12))
    stuck = (due != 0) & block.previous.valid & ~taken & ~(block.result.valid & ~block.result.ready)
    m.d.sync += patience.eq(Mux(stuck, patience + (patience < 11), 0))
    c.claim("outputs are taken in time", patience < 8)
    waits = Signal(range(block.output_latency + 3))
    m.d.sync += waits.eq(Mux((inside != 0) & ~block.result.valid, waits + (waits <= block.output_latency), 0))
    c.claim("a result comes in time", waits <= block.output_latency)
    c.cover("the second tile ends while the first one leaves", ends & (due == 0) & (inside != 0))


PROPERTIES = [
    Property(
        "mixed_precision_array",
        "the sum of a processing element is exact: shifts and additions lose no bits",
        ProcessingElement,
        [{"sum_width": 13}],
        keeps_bits,
        engine="bmc",
        depth=8,
        timeout=900,
    ),
    Property(
        "mixed_precision_array",
        "the sum of four products of digits and weights",
        ProcessingElement,
        [{"sum_width": 13}],
        multiplies,
        engine="bmc",
        depth=6,
    ),
    Property(
        "mixed_precision_array",
        "each group once, after the doublings of its shift; no deadlock",
        GroupSequencer,
        [{"n_rows": 1, "n_columns": 1, "n_channels": 2, "n_levels": levels, "weight_depth": 2} for levels in (1, 3)],
        sequences,
    ),
    Property(
        "mixed_precision_array",
        "each tile's results once, each with its previous output; no deadlock (any arithmetic)",
        MixedPrecisionArray,
        [
            {"n_rows": 1, "n_columns": 1, "n_channels": 1, "n_levels": 1, "weight_depth": 1},
            {"n_rows": 2, "n_columns": 2, "n_channels": 1, "n_levels": 2, "weight_depth": 1, "n_output_lanes": 1},
        ],
        gives_results,
        engine="bmc",
        depth=30,
        free=(ProcessingElement, OutputLane),
    ),
]
