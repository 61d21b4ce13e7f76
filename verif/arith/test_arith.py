"""The arithmetic blocks by themselves, in Amaranth's simulator, against Python integers and the rounding model."""

import random
from functools import partial

import numpy as np
import pytest
from amaranth.hdl import Const, Fragment, Module
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from golden.arith import floats
from golden.spec.formats import float_format
from hw.arith.compressor import Heap, dadda_heights, n_levels, reduced_heights, row_spans
from hw.arith.leading_zeros import LeadingZeroCounter
from hw.arith.maximum import DigitMaximum
from hw.arith.multiplier import RecodedMultiplier, UnsignedMultiplier, add_signed_product
from hw.arith.rounding import FloatRounder
from hw.arith.shifter import LogShifter
from hw.lib.block import Block

SEED = 11


def simulate(block, vectors, outputs):
    """What a combinational block gives: for each ``{input: value}``, the tuple of the outputs named."""
    results = []

    async def bench(ctx):
        for vector in vectors:
            for name, value in vector.items():
                port = getattr(block, name)
                for one, part in zip(port, value, strict=False) if isinstance(port, list) else [(port, value)]:
                    ctx.set(one, part)
            await ctx.delay(1e-9)
            results.append(tuple(ctx.get(getattr(block, name)) for name in outputs))

    simulator = Simulator(block)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(results) == len(vectors) > 0
    return results


def signed(value, width):
    return value - (value >> width - 1 << width)


@pytest.mark.parametrize("kind", [UnsignedMultiplier, partial(RecodedMultiplier, registered=False)])
@pytest.mark.parametrize("widths", [(11, 11), (8, 8), (1, 1), (1, 5), (24, 24), (3, 7), (2, 2), (2, 3), (7, 1)])
def test_unsigned_multiplier(kind, widths):
    rng = random.Random(SEED)
    pairs = [tuple(rng.getrandbits(width) for width in widths) for _ in range(60)]
    pairs += [tuple((1 << width) - 1 for width in widths), (0, 0)]
    block = kind(multiplicand_width=widths[0], multiplier_width=widths[1])
    results = simulate(block, [{"multiplicand": a, "multiplier": b} for a, b in pairs], ["product"])
    assert results == [(a * b,) for a, b in pairs]


class SumOfProducts(Block):
    """Signed products summed in one heap, which is reduced in two steps."""

    def __init__(self, n, widths, total):
        self.n, self.widths, self.total = n, widths, total
        super().__init__()

    def members(self, p):
        left, right = self.widths
        return {"left": In(self.n * left), "right": In(self.n * right), "sum": Out(self.total)}

    def circuit(self):
        m = Module()
        heap = Heap(m, "heap", len(self.sum))
        for index in range(self.n):
            left = self.left.word_select(index, self.widths[0])
            right = self.right.word_select(index, self.widths[1])
            add_signed_product(m, heap, left, right, f"partial_{index}")
        rest = Heap(m, "rest", len(self.sum))
        for offset, row in heap.reduce(levels=2):
            rest.add(row, offset)
        m.d.comb += self.sum.eq(rest.total())
        return m


@pytest.mark.parametrize("n, widths, total", [(1, (8, 8), 16), (5, (8, 8), 20), (3, (4, 6), 32), (4, (8, 8), 9)])
def test_signed_products_in_a_heap(n, widths, total):
    rng = random.Random(SEED)
    lowest = [1 << width - 1 for width in widths]
    vectors = [[[rng.getrandbits(width) for width in widths] for _ in range(n)] for _ in range(80)]
    vectors.append([lowest] * n)
    inputs = [
        {
            role: sum(pair[at] << widths[at] * index for index, pair in enumerate(pairs))
            for at, role in enumerate(("left", "right"))
        }
        for pairs in vectors
    ]
    expected = [sum(signed(a, widths[0]) * signed(b, widths[1]) for a, b in pairs) % (1 << total) for pairs in vectors]
    assert simulate(SumOfProducts(n, widths, total), inputs, ["sum"]) == [(value,) for value in expected]


def test_dadda_levels():
    assert dadda_heights(13) == [9, 6, 4, 3, 2]
    assert [n_levels(height) for height in (1, 2, 3, 4, 6, 9, 16)] == [0, 0, 1, 2, 3, 4, 6]
    assert n_levels(16, 9) == 2


@pytest.mark.parametrize("height", [2, 4, 9])
def test_heights_are_foretold(height):
    """The heights of a reduced heap are known without building it."""
    m = Module()
    heap = Heap(m, "heap", 12)
    heights = [3, 17, 0, 1, 9, 9, 20, 2, 2, 5, 0, 30]
    for column, amount in enumerate(heights):
        for _ in range(amount):
            heap.add(Const(1, 1), column)
    assert row_spans(reduced_heights(heights, height)) == [(low, len(row)) for low, row in heap.reduce(height)]
    Fragment.get(m, platform=None)  # a module that is never elaborated warns


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 13, 26, 32, 47])
def test_leading_zeros(width):
    rng = random.Random(SEED)
    values = [rng.getrandbits(width) >> rng.randrange(width + 1) for _ in range(60)] + [0, 1, (1 << width) - 1]
    results = simulate(LeadingZeroCounter(width=width), [{"value": value} for value in values], ["count"])
    assert results == [(width - value.bit_length(),) for value in values]


@pytest.mark.parametrize("small_steps_first", [True, False])
@pytest.mark.parametrize("width, amount_width", [(1, 1), (5, 3), (26, 5), (26, 3)])
def test_shifter(width, amount_width, small_steps_first):
    rng = random.Random(SEED)
    sizes = {"width": width, "amount_width": amount_width, "small_steps_first": small_steps_first}
    pairs = [(rng.getrandbits(width), rng.getrandbits(amount_width)) for _ in range(60)]
    inputs = [{"value": value, "amount": amount} for value, amount in pairs]
    mask = (1 << width) - 1
    assert simulate(LogShifter(sticky=True, **sizes), inputs, ["shifted", "lost"]) == [
        (value >> amount, value & ((1 << amount) - 1) != 0) for value, amount in pairs
    ]
    assert simulate(LogShifter(direction="left", **sizes), inputs, ["shifted"]) == [
        (value << amount & mask,) for value, amount in pairs
    ]
    assert simulate(LogShifter(arithmetic=True, **sizes), inputs, ["shifted"]) == [
        (signed(value, width) >> amount & mask,) for value, amount in pairs
    ]
    kept = max(1, width - 4)
    fitting = [entry for entry in inputs if entry["value"] >> entry["amount"] < 1 << kept]
    assert simulate(LogShifter(result_width=kept, **sizes), fitting, ["shifted"]) == [
        (entry["value"] >> entry["amount"],) for entry in fitting
    ]


@pytest.mark.parametrize("n, width", [(1, 1), (3, 5), (16, 6), (7, 2)])
def test_digit_maximum(n, width):
    rng = random.Random(SEED)
    block = DigitMaximum(n=n, width=width)
    inputs, expected = [], []
    for _ in range(60):
        values = [rng.getrandbits(width) >> rng.randrange(width) for _ in range(n)]
        candidates = [rng.random() < 0.6 for _ in range(n)]
        largest = max([value for value, takes_part in zip(values, candidates, strict=False) if takes_part], default=0)
        inputs.append(
            {
                "plane": [
                    sum((value >> bit & 1) << index for index, value in enumerate(values)) for bit in range(width)
                ],
                "candidates": sum(flag << index for index, flag in enumerate(candidates)),
            }
        )
        equal = sum(
            (flag and value == largest) << index
            for index, (value, flag) in enumerate(zip(values, candidates, strict=False))
        )
        expected.append((largest, equal))
    assert simulate(block, inputs, ["maximum", "largest"]) == expected


@pytest.mark.parametrize("width", [5, 11, 12, 13, 24, 25, 40])
@pytest.mark.parametrize("format", ["fp16", "bf16", "fp32"])
def test_rounder(format, width):
    rng = random.Random(SEED)
    fmt = float_format(format)
    inputs, expected = [], []
    for _ in range(150):
        top = 1 << width - 1
        significand = top | rng.choice([0, rng.getrandbits(width), -1 << rng.randrange(width)]) & (top - 1)
        exponent = rng.choice([rng.randrange(-40, 10), 2 * fmt.bias + rng.randrange(-3, 4), rng.randrange(-500, 500)])
        sticky = rng.getrandbits(1) if width > fmt.fraction_width + 1 else 0
        if rng.random() < 0.05:
            significand = sticky = 0
        is_inf, is_nan = rng.random() < 0.05, rng.random() < 0.05
        sign = rng.getrandbits(1)
        inputs.append(
            {
                "sign": sign,
                "exponent": exponent,
                "significand": significand,
                "sticky": sticky,
                "is_inf": is_inf,
                "is_nan": is_nan,
            }
        )
        # The sticky bit as one more bit of the magnitude: it stands for anything below the half of the last place.
        magnitude = np.uint64(2 * significand + sticky)
        word = floats.round_pack(fmt, sign, magnitude, exponent - fmt.bias - width, nan=is_nan, inf=is_inf)
        expected.append((int(word),))
    block = FloatRounder(format=format, width=width, exponent_width=10)
    assert simulate(block, inputs, ["word"]) == expected
