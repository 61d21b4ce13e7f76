"""Dot-product unit and array: the stream contract, where dot products begin and end, products of all pairs of words."""

import numpy as np
from amaranth.hdl import Cat, Mux, Signal

from golden.spec.formats import FP32, float_format
from golden.units.dot_product_unit import dot_products
from hw.units.dot_product_unit.unit import DotProductUnit
from verif.arith.lane_properties import ALL_WORDS, corner_words
from verif.formal.properties import Property
from verif.formal.reference import Number, exact_integer, rounded
from verif.formal.streams import moves, pipeline, stable

_LOW = 2
"""Low bits of an INT8 dot product that are followed: sums and products modulo 4 know nothing of higher bits."""


def contract(c, block):
    stable(c, score=block.score)
    pipeline(c, block.operands, block.score, latency=block.latency, gives=block.operands.payload.last)


def _sum_so_far(c, accepted, first, last, contribution):
    """The sum of the present beat and those before it of its dot product, modulo ``2**_LOW``."""
    total, kept, fresh = Signal(_LOW), Signal(_LOW), Signal(init=1)
    c.m.d.comb += total.eq(Mux(first | fresh, 0, kept) + contribution)
    with c.m.If(accepted):
        c.m.d.sync += [kept.eq(total), fresh.eq(last)]
    return total


def integer_sums(c, block):
    """INT8 modulo 4: every product of a dot product is in its score, none of another one."""
    stable(c, score=block.score)
    beat = block.operands.payload
    products = sum(query[:_LOW] * key[:_LOW] for query, key in zip(beat.query, beat.key, strict=False))
    total = _sum_so_far(c, moves(block.operands), beat.first, beat.last, products)
    pipeline(
        c,
        block.operands,
        block.score,
        latency=block.latency,
        gives=beat.last,
        expected=total,
        shown=lambda score: score.wide[:_LOW],
    )


def single_products(c, block):
    """Dot products of one term: exact in the window, so both roundings are those of the exact product."""
    m, fmt = c.m, float_format(block.format)
    query, key = c.free(fmt.width, "query"), c.free(fmt.width, "key")
    c.drive(block.operands.payload, Cat(query, key, 1, 1))
    c.drive(block.operands.valid, 1)
    x, y = Number(fmt, query), Number(fmt, key)
    left, right = exact_integer(m, fmt, x, "query"), exact_integer(m, fmt, y, "key")
    product = Signal(len(left) + len(right))
    m.d.comb += product.eq((x.significand * y.significand) << (x.places + y.places))
    infinite = x.is_inf | y.is_inf
    is_nan = x.is_nan | y.is_nan | (infinite & (x.is_zero | y.is_zero))
    words = []
    for target in (FP32, fmt):
        below = 2 * (fmt.bias + fmt.fraction_width - 1) - (target.bias + target.fraction_width - 1)
        magnitude = rounded(m, target, product << max(-below, 0), max(below, 0), target.name)
        sign = (x.sign ^ y.sign) & (infinite | (product != 0))  # a sum of zero is +0
        words.append(Mux(is_nan, target.nan, Cat(Mux(infinite, target.infinity, magnitude), sign)))
    expected = Signal(FP32.width + fmt.width)
    m.d.comb += expected.eq(Cat(words))
    for stage in range(block.latency):
        expected = c.register(expected, f"expected_{stage}", enable=block.operands.ready)
    c.claim("both roundings of the exact product", ~block.score.valid | (block.score.payload.as_value() == expected))
    c.cover("a score waits", block.score.valid & ~block.score.ready)
    c.enumerate((query, ALL_WORDS), (key, ALL_WORDS), taken=moves(block.operands), checked=moves(block.score))


def two_products(fractions):
    """Dot products of two terms, lane by lane from a few words of every exponent and sign."""

    def check(c, block):
        fmt = float_format(block.format)
        words = corner_words(fmt, fractions)
        ports = {name: c.free(fmt.width, name) for name in ("query_0", "query_1", "key_0", "key_1")}
        c.drive(block.operands.payload, Cat(*ports.values(), 1, 1))
        c.drive(block.operands.valid, 1)
        few = words[:: len(words) // 24 | 1]  # an odd step, which comes by all signs and fractions
        c.enumerate(
            (ports["query_0"], few),
            (ports["key_0"], few),
            (ports["query_1"], few),
            (ports["key_1"], words),
            taken=moves(block.operands),
            checked=moves(block.score),
        )
        c.result(block.score.payload)
        c.cover("a score waits", block.score.valid & ~block.score.ready)

    return check


def _two_products(block, query_0, key_0, query_1, key_1):
    wide, narrow = dot_products(
        np.stack([query_0, query_1], axis=-1)[:, None].astype(np.uint16),
        np.stack([key_0, key_1], axis=-1)[:, None].astype(np.uint16),
        format=block.format,
    )
    return wide.astype(np.uint64) | narrow.astype(np.uint64) << np.uint64(FP32.width)


INTEGERS = [{"n_lanes": n, "format": "int8"} for n in (1, 2, 3)]
"""All for the contract; the sums of one lane, which have the same beats."""

PROPERTIES = [
    Property(
        "dot_product_unit",
        "a pipeline in lock step, one score for each last beat",
        DotProductUnit,
        [{"n_lanes": 1}, {"n_lanes": 4}, {"n_lanes": 3, "format": "bf16"}, *INTEGERS],
        contract,
    ),
    Property(
        "dot_product_unit",
        "INT8: each score holds its own products, first and last (modulo 4)",
        DotProductUnit,
        INTEGERS[:1],
        integer_sums,
    ),
    Property(
        "dot_product_unit",
        "one term: both roundings of the exact product, all pairs of words",
        DotProductUnit,
        [{"n_lanes": 1}],
        single_products,
        engine="exhaustive",
        timeout=1800,
    ),
    Property(
        "dot_product_unit",
        "two terms: the golden model's scores for corner words",
        DotProductUnit,
        [{"n_lanes": 2}, {"n_lanes": 2, "format": "bf16"}],
        two_products(3),
        engine="class",
        expected=_two_products,
    ),
]
