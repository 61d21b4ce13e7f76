"""The assembler: memory that is given back, refusals with their reasons, attention in blocks of rows."""

import numpy as np
import pytest

from golden.core.attention import attention_reference
from golden.core.core import Core
from golden.program.assembler import Program
from golden.spec.sizes import CoreSizes

SIZES = CoreSizes()


def head(seed, n, d):
    return np.random.default_rng(seed).standard_normal((3, n, d)).astype(np.float16)


@pytest.mark.parametrize("on_array", [False, True], ids=["engines", "dot-product units"])
def test_attention_in_blocks_has_the_bits_of_attention_at_once(on_array):
    query, key, value = head(1, 61, 13)
    mask = np.random.default_rng(2).random((61, 61)) < 0.4
    results = []
    for block in (None, 61, 7, 1):
        program = Program(CoreSizes(omem_depth=61 * 16 if block == 61 else 256))
        rows, keys = program.load_rows(query), program.load_keys(key)
        program.load_mask(mask, 1)
        how = {"columns": program.load_columns(value)} if on_array else {}
        values = None if on_array else program.load_values(value)
        out = program.attention(rows, keys, values, 13**-0.5, mask=1, block=block, **how)
        stored = program.store_rows(out)
        run = Core(program.sizes).execute(program.commands, program.load_beats)
        assert run.executed == [True] * len(program.commands) and stored.defined(run).all()
        results.append(stored.of(run))
    assert all(np.array_equal(results[0], other) for other in results[1:])
    exact = attention_reference(query, key, value, mask)
    assert np.abs(results[0].view(np.float16) - exact).max() < 4e-3


def test_blocks_of_listed_rows():
    """A block of the token list: rows that are not listed stay, also where a block has fewer entries or none."""
    query, key, value = head(3, 20, 8)
    tokens = [1, 2, 5, 7, 11, 19]
    outputs = []
    for block in (20, 4):
        program = Program(SIZES)
        rows, keys, values = program.load_rows(query), program.load_keys(key), program.load_values(value)
        program.load_mask(np.ones((1, 20)))
        program.load_tokens(tokens)
        out = program.load_rows(np.zeros((20, 8)))
        for first in range(0, 20, block):
            with program.scope():
                part = rows.rows(0, block)
                scores = program.sddmm(part, keys, gated=True, first_row=first)
                program.spmm(program.softmax(scores, 8**-0.5), values, out)
        stored = program.store_rows(out)
        run = Core(SIZES).execute(program.commands, program.load_beats)
        assert run.executed == [True] * len(program.commands)
        outputs.append(stored.of(run))
    assert np.array_equal(*outputs)
    assert set(np.flatnonzero(outputs[0].any(axis=1))) == set(tokens)


def test_memory_is_given_back():
    program = Program(SIZES)
    first = program.matrix(16, 32)
    with program.scope():
        inner = program.matrix(16, 32)
    assert program.matrix(4, 32).first == inner.first
    program.free(first)
    assert program.matrix(3, 32).first == first.first
    with pytest.raises(ValueError, match="imem: a matrix of 64 rows of 64 needs 512 words; of 512 there, .* are free"):
        program.matrix(64, 64)
    with pytest.raises(ValueError, match="imem: no allocation begins at word 77"):
        program.free(type(first)(77, 1, 1, 1))


def test_a_refusal_says_why_and_where():
    program = Program(SIZES)
    rows = program.load_rows(np.zeros((8, 16)))
    with pytest.raises(ValueError, match=r"command 2, SDDMM, would be refused at test_assembler.py:\d+: MASK_MISSING"):
        program.sddmm(rows, program.load_keys(np.zeros((4, 16)), at=0), mask=1)
    program = Program(SIZES)
    with pytest.raises(ValueError, match="imem has 512 words, and words 508 to 523 are needed"):
        program.load_rows(np.zeros((8, 16)), into=program.matrix(8, 16, at=508))
    assert not program.commands
    Program(SIZES, checked=False).load_rows(np.zeros((8, 16)), into=program.matrix(8, 16, at=508))


def test_parts_of_matrices():
    program = Program(SIZES)
    whole = program.load_rows(np.arange(12 * 24, dtype=np.uint16).reshape(12, 24))
    part = program.store_rows(whole.rows(3, 4).columns(8, 11))
    run = Core(SIZES).execute(program.commands, program.load_beats)
    assert np.array_equal(part.of(run), np.arange(12 * 24).reshape(12, 24)[3:7, 8:19])
    for wrong, message in (
        (lambda: whole.rows(3, 10), "rows 3 to 12 are not in a matrix of 12 rows"),
        (lambda: whole.columns(20, 5), "columns 20 to 24 are not in a matrix of 24 columns"),
        (
            lambda: program.store_rows(whole.columns(4, 5)),
            "source of STORE must begin with a word of IMEM, 8 elements, not at element 4 of one",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


def test_a_product_in_pieces():
    """The sum in FP32 is closer to the exact one than the roundings of each piece, and has the bits of no order."""
    sizes = CoreSizes(pmem_depth=64, max_dim=32)
    rng = np.random.default_rng(5)
    rows, weights = (rng.standard_normal(shape).astype(np.float16) for shape in ((7, 96), (96, 20)))
    program = Program(sizes)

    def pair(index):
        part = slice(32 * index, 32 * index + 32)
        return program.load_rows(rows[:, part], into=places[0]), program.load_weights(weights[part], at=places[1])

    places = program.matrix(7, 32), program.place("wmem", 40)
    out = program.store_rows(program.sum_of_products(3, pair))
    run = Core(sizes).execute(program.commands, program.load_beats)
    assert run.executed == [True] * len(program.commands)
    exact = rows.astype(np.float64) @ weights.astype(np.float64)
    assert np.abs(out.of(run).view(np.float16) - exact).max() <= 2.0**-11 * np.abs(exact).max() * 1.01
    assert program.place("partial", 64) == 0
    with pytest.raises(ValueError, match="partial: 7 rows of sums needs 35 words; of 0 there"):
        other = Program(CoreSizes(max_dim=32))
        other.sum_of_products(2, lambda _: (other.load_rows(rows[:, :32]), other.load_weights(weights[:32])))


@pytest.mark.parametrize("sizes", [CoreSizes(), CoreSizes(n_lanes=9, simd_lanes=3)], ids=["words", "straddling groups"])
def test_results_side_by_side(sizes):
    """Products whose columns begin anywhere in a row: what lies before and behind stays."""
    rng = np.random.default_rng(6)
    rows, weights = rng.standard_normal((5, 12)), rng.standard_normal((12, 20)).astype(np.float16)
    results = []
    for widths in ((20,), (8, 12), (4, 4, 12)):
        program = Program(sizes)
        source, out = (
            program.load_rows(rows),
            program.load_rows(np.ones((5, 36)) if sizes.max_dim > 35 else np.ones((5, 32))),
        )
        first = 4
        for width in widths:
            part = program.load_weights(weights[:, first - 4 : first - 4 + width])
            program.matmul(source, part, into=out.columns(first, width))
            first += width
        stored = program.store_rows(out)
        run = Core(sizes).execute(program.commands, program.load_beats)
        assert run.executed == [True] * len(program.commands)
        results.append(stored.of(run).view(np.float16))
    assert all(np.array_equal(results[0], other) for other in results)
    assert (results[0][:, :4] == 1).all() and (results[0][:, 24:] == 1).all()
    assert np.allclose(results[0][:, 4:24], rows.astype(np.float16).astype(np.float64) @ weights, atol=2e-2)
