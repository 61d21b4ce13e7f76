"""What the core refuses: every condition from both sides of its bound, their order, and what a refusal leaves."""

from dataclasses import replace

import numpy as np
import pytest

from golden.core.checks import WrittenState, check, extents
from golden.core.core import Core, Refusal
from golden.spec.commands import FLAGS, Command, Elementwise, ErrorCode, Memory, Opcode
from golden.spec.sizes import CoreSizes

SIZES = CoreSizes()  # W = 8, T = 64, D = 16, max_dim = 32; words: 512, 256, 64, 1024; two masks
MASKS, TOKENS, MASSES = [1, 30], [4, 9, 2], 20
KNOWN = WrittenState(MASKS, MASSES, TOKENS)

OK, FUNCTION, SIZE, RANGE, OVERLAP = (
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_FUNCTION,
    ErrorCode.SIZE,
    ErrorCode.RANGE,
    ErrorCode.OVERLAP,
)
MASK, TOKEN, MASS = ErrorCode.MASK_MISSING, ErrorCode.TOKENS_MISSING, ErrorCode.MASS_MISSING
GATED, BIAS, MAKE, USE, RESTART = (FLAGS[name] for name in ("gated", "bias", "make_mask", "use_mass", "restart"))


def command(opcode, **fields):
    return Command(opcode=opcode, **fields)


def load(memory, **fields):
    return command(Opcode.LOAD, function=memory, **fields)


def store(memory, **fields):
    return command(Opcode.STORE, function=memory, **fields)


MATMUL = command(
    Opcode.MATMUL, n_rows=20, n_in=20, n_out=10, source=100, source_stride=3, destination=300, destination_stride=2
)
PROJECT = command(Opcode.PROJECT, n_rows=20, n_in=20, n_out=10, source=100, source_stride=3, destination=15)
SDDMM = command(Opcode.SDDMM, mask=1, n_rows=20, n_in=10, n_out=30, source_stride=2)
SOFTMAX = command(Opcode.SOFTMAX, mask=1, n_rows=20, n_out=30)
SPMM = command(Opcode.SPMM, mask=1, n_rows=20, n_in=10, n_out=30, destination_stride=2)
WEIGH = command(Opcode.WEIGHTED_SUM, mask=1, n_rows=20, n_in=10, n_out=30, destination_stride=2)
ADD = command(
    Opcode.ELEMENTWISE,
    n_rows=20,
    n_in=10,
    source_stride=2,
    source_2=40,
    source_2_stride=2,
    destination=80,
    destination_stride=2,
)
NORM = command(
    Opcode.LAYER_NORM,
    n_rows=20,
    n_in=10,
    source_stride=2,
    source_2=40,
    source_2_stride=2,
    destination=44,
    destination_stride=2,
)
ROWS = load(Memory.ROWS, n_rows=20, n_in=10, destination_stride=2)
STORE_ROWS = store(Memory.ROWS, n_rows=20, n_in=10, source_stride=2)

CASES = [
    # Functions and flags
    (command(Opcode.CLEAR), {"function": 1}, {OK: [{}], FUNCTION: [{"function": 2}, {"flags": GATED}]}),
    (ROWS, {}, {FUNCTION: [{"function": 8}, {"function": 9}, {"flags": GATED}, {"flags": 128}]}),
    (STORE_ROWS, {}, {FUNCTION: [{"function": 1}, {"function": 2}, {"function": 9}, {"flags": BIAS}]}),
    (
        MATMUL,
        {"flags": GATED | BIAS},
        {RANGE: [{"function": 1}, {"function": 3}], FUNCTION: [{"function": 4}, {"flags": MAKE}, {"flags": 32}]},
    ),
    (
        PROJECT,
        {"flags": BIAS, "destination": 18},
        {OK: [{"function": 1}, {"function": 2}], FUNCTION: [{"function": 3}, {"flags": GATED}]},
    ),
    (SDDMM, {"flags": GATED}, {FUNCTION: [{"flags": BIAS}, {"flags": USE}]}),
    (SOFTMAX, {"flags": USE | GATED}, {FUNCTION: [{"flags": USE | MAKE}, {"flags": BIAS}, {"flags": RESTART}]}),
    (SPMM, {"flags": GATED}, {FUNCTION: [{"flags": MAKE}]}),
    (WEIGH, {"flags": GATED}, {FUNCTION: [{"flags": MAKE}, {"flags": BIAS}]}),
    (
        ADD,
        {"flags": GATED},
        {
            OK: [{"function": item} for item in Elementwise],
            FUNCTION: [{"function": item} for item in (4, 7, 11, 16, 255)],
        },
    ),
    (NORM, {"flags": GATED}, {FUNCTION: [{"flags": USE}]}),
    (command(Opcode.CTR), {"flags": RESTART}, {OK: [{"n_rows": 0, "theta": 0xFFFF}], FUNCTION: [{"flags": GATED}]}),
    # Sizes
    (
        ROWS,
        {},
        {
            OK: [{"n_rows": 64, "n_in": 32, "destination_stride": 4}],
            SIZE: [
                {"n_rows": 0},
                {"n_rows": 65},
                {"n_in": 0},
                {"n_in": 33, "destination_stride": 9},
                {"destination_stride": 1},
                {"n_rows": 1, "destination_stride": 0},
            ],
        },
    ),
    (
        STORE_ROWS,
        {},
        {SIZE: [{"n_rows": 0}, {"n_rows": 65}, {"n_in": 0}, {"n_in": 33, "source_stride": 9}, {"source_stride": 1}]},
    ),
    (load(Memory.WEIGHTS, n_rows=1), {}, {OK: [{"n_rows": 256}], SIZE: [{"n_rows": 0}]}),
    (load(Memory.VALUES, n_rows=1), {}, {OK: [{"n_rows": 64}], SIZE: [{"n_rows": 0}]}),
    (load(Memory.SCORES, n_rows=1), {}, {OK: [{"n_rows": 1024}], SIZE: [{"n_rows": 0}]}),
    (store(Memory.PROBABILITIES, n_rows=1), {}, {OK: [{"n_rows": 1024}], SIZE: [{"n_rows": 0}]}),
    (
        load(Memory.MASK, n_rows=64, mask_out=1),
        {},
        {
            OK: [{"n_rows": 1, "mask_out": 0}],
            SIZE: [{"n_rows": 0}, {"n_rows": 65}, {"mask_out": 2}, {"n_rows": 2, "mask_out": 0}],
        },
    ),
    (
        store(Memory.MASK, n_rows=30, mask=1),
        {},
        {OK: [{"n_rows": 1, "mask": 0}], SIZE: [{"mask": 2}, {"n_rows": 2, "mask": 0}]},
    ),
    (load(Memory.TOKENS, n_rows=64), {}, {OK: [{"n_rows": 0}], SIZE: [{"n_rows": 65}]}),
    (store(Memory.TOKENS), {}, {OK: [{"n_rows": 999}]}),
    (load(Memory.MASS, n_rows=64), {}, {SIZE: [{"n_rows": 0}, {"n_rows": 65}]}),
    (store(Memory.COUNTERS), {}, {OK: [{"n_rows": 999}]}),
    (
        MATMUL,
        {},
        {
            OK: [
                {"n_rows": 64, "n_in": 1, "n_out": 1, "source_stride": 1, "destination_stride": 1},
                {"n_in": 32, "n_out": 32, "source_stride": 4, "destination_stride": 4, "n_rows": 1},
            ],
            SIZE: [
                {"n_rows": 0},
                {"n_rows": 65},
                {"n_in": 0},
                {"n_out": 0},
                {"n_in": 33, "source_stride": 9},
                {"n_out": 33, "destination_stride": 9},
                {"source_stride": 2},
                {"destination_stride": 1},
            ],
        },
    ),
    (
        PROJECT,
        {},
        {
            OK: [{"n_out": 16, "destination": 20}, {"n_in": 32, "source_stride": 4, "destination": 24}],
            SIZE: [
                {"n_rows": 0},
                {"n_rows": 65},
                {"n_in": 33, "source_stride": 9},
                {"n_out": 17},
                {"source_stride": 2},
            ],
        },
    ),
    (
        SDDMM,
        {},
        {
            OK: [{"n_in": 16, "n_out": 64}, {"mask": 0, "n_rows": 64}],
            SIZE: [
                {"n_rows": 0},
                {"n_in": 17, "source_stride": 9},
                {"n_out": 0},
                {"n_out": 65},
                {"source_stride": 1},
                {"mask": 2},
                {"mask": 15},
            ],
        },
    ),
    (
        SOFTMAX,
        {},
        {
            OK: [{"n_out": 64}, {"mask_out": 9}, {"mask": 0, "flags": MAKE, "mask_out": 1}],
            SIZE: [
                {"n_rows": 0},
                {"n_out": 65},
                {"mask": 2},
                {"flags": MAKE, "mask_out": 0},
                {"flags": MAKE, "mask_out": 2},
            ],
        },
    ),
    (
        SPMM,
        {},
        {
            OK: [{"n_in": 16}],
            SIZE: [
                {"n_in": 0},
                {"n_in": 17, "destination_stride": 9},
                {"n_out": 65},
                {"destination_stride": 1},
                {"mask": 2},
            ],
        },
    ),
    (WEIGH, {}, {OK: [{"n_in": 16}], SIZE: [{"n_in": 17, "destination_stride": 9}, {"n_out": 65}, {"mask": 2}]}),
    (
        ADD,
        {},
        {
            OK: [{"n_in": 16}, {"function": Elementwise.GELU, "source_2_stride": 0}],
            SIZE: [
                {"n_rows": 65},
                {"n_in": 0},
                {"n_in": 17},
                {"n_in": 33, "source_stride": 9},
                {"source_2_stride": 1},
                {"source_stride": 1},
                {"destination_stride": 1},
            ],
        },
    ),
    (NORM, {}, {SIZE: [{"n_rows": 0}, {"n_in": 17}, {"source_2_stride": 1}]}),
    # Ranges
    (ROWS, {}, {OK: [{"destination": 472}], RANGE: [{"destination": 473}, {"destination_stride": 65535}]}),
    (STORE_ROWS, {}, {OK: [{"source": 472}], RANGE: [{"source": 473}]}),
    (load(Memory.WEIGHTS, n_rows=16, bank_address=240), {}, {RANGE: [{"n_rows": 17}, {"bank_address": 65535}]}),
    (load(Memory.VALUES, n_rows=16, bank_address=48), {}, {RANGE: [{"n_rows": 17}]}),
    (load(Memory.SCORES, n_rows=24, destination=1000), {}, {RANGE: [{"n_rows": 25}]}),
    (load(Memory.PROBABILITIES, n_rows=24, destination=1000), {}, {RANGE: [{"n_rows": 25}]}),
    (store(Memory.SCORES, n_rows=24, source=1000), {}, {RANGE: [{"n_rows": 25}]}),
    (store(Memory.PROBABILITIES, n_rows=24, source=1000), {}, {RANGE: [{"n_rows": 25}]}),
    (
        MATMUL,
        {"bank_address": 241},
        {
            OK: [{"source": 452, "destination": 0}, {"destination": 472}, {"bank_address": 238, "flags": BIAS}],
            RANGE: [
                {"source": 453, "destination": 0},
                {"destination": 473},
                {"bank_address": 242},
                {"bank_address": 239, "flags": BIAS},
            ],
        },
    ),
    (
        PROJECT,
        {},
        {
            OK: [{"destination": 232}, {"function": 1, "destination": 40}],
            RANGE: [{"destination": 233}, {"function": 1, "destination": 41}, {"bank_address": 242}],
        },
    ),
    (
        SDDMM,
        {},
        {
            OK: [{"destination": 864}, {"bank_address": 232}, {"source": 472}],
            RANGE: [{"destination": 865}, {"bank_address": 233}, {"source": 473}],
        },
    ),
    (SOFTMAX, {}, {OK: [{"destination": 864}, {"source": 864}], RANGE: [{"destination": 865}, {"source": 865}]}),
    (
        SPMM,
        {},
        {
            OK: [{"source": 864}, {"bank_address": 40}, {"destination": 472}],
            RANGE: [{"source": 865}, {"bank_address": 41}, {"destination": 473}],
        },
    ),
    (
        WEIGH,
        {},
        {
            OK: [{"source": 864}, {"bank_address": 232}, {"destination": 472}],
            RANGE: [{"source": 865}, {"bank_address": 233}, {"destination": 473}],
        },
    ),
    (PROJECT, {"function": 2, "destination": 232}, {RANGE: [{"function": 2, "destination": 233}]}),
    (
        ADD,
        {},
        {
            OK: [
                {"source": 472},
                {"source_2": 472},
                {"destination": 472},
                {"function": Elementwise.EXP, "source_2": 65535},
            ],
            RANGE: [{"source": 473}, {"source_2": 473}, {"destination": 473}],
        },
    ),
    (
        NORM,
        {},
        {
            OK: [{"source_2": 508}, {"source_2": 500, "source_2_stride": 10}],
            RANGE: [{"source_2": 509}, {"source_2": 501, "source_2_stride": 10}],
        },
    ),
    # Overlaps
    (
        MATMUL,
        {},
        {OK: [{"destination": 160}, {"destination": 60}], OVERLAP: [{"destination": 159}, {"destination": 61}]},
    ),
    (
        PROJECT,
        {"flags": BIAS, "destination": 18},
        {
            OK: [{"bank_address": 39}, {"bank_address": 39, "destination": 0}, {"function": 1, "destination": 0}],
            OVERLAP: [{"destination": 14}, {"destination": 17, "flags": BIAS}, {"bank_address": 38}],
        },
    ),
    (SDDMM, {}, {OK: [{"source": 0, "destination": 0, "bank_address": 0}]}),
    (SOFTMAX, {}, {OVERLAP: [{"flags": MAKE, "mask_out": 1}]}),
    (SPMM, {}, {OK: [{"source": 0, "destination": 0, "bank_address": 0}]}),
    (
        ADD,
        {},
        {
            OK: [{"source_2": 0}, {"function": Elementwise.EXP, "source_2": 80}],
            OVERLAP: [{"destination": 79}, {"destination": 1}, {"source": 119}, {"source_2": 41}],
        },
    ),
    (NORM, {}, {OVERLAP: [{"destination": 43}, {"source_2": 83}, {"source_2": 30, "source_2_stride": 13}]}),
    # In place: the result lies exactly where an operand lies
    (
        ADD,
        {"destination": 0},
        {
            OK: [
                {"destination": 40},
                {"destination": 0, "source_2": 0},
                {"destination": 0, "function": Elementwise.EXP},
            ],
            OVERLAP: [{"destination": 0, "destination_stride": 3}, {"destination": 40, "source_2_stride": 0}],
        },
    ),
    (NORM, {"destination": 0}, {OVERLAP: [{"destination": 40}, {"destination": 0, "source_2": 10}]}),
    # First rows, of masks, retained mass and the token list
    (
        SDDMM,
        {"first_row": 10},
        {OK: [{"mask": 0, "first_row": 44}], SIZE: [{"mask": 0, "first_row": 45}], MASK: [{"first_row": 11}]},
    ),
    (
        load(Memory.MASK, n_rows=4, mask_out=1),
        {"first_row": 30},
        {SIZE: [{"first_row": 61}, {"n_rows": 1, "first_row": 1, "mask_out": 0}], MASK: [{"first_row": 31}]},
    ),
    (load(Memory.MASS, n_rows=4), {"first_row": 20}, {SIZE: [{"first_row": 61}], MASS: [{"first_row": 21}]}),
    (store(Memory.MASS, n_rows=4), {"first_row": 16}, {MASS: [{"first_row": 17}]}),
    (
        replace(SOFTMAX, mask=0, flags=MAKE, mask_out=1),
        {"first_row": 20},
        {MASS: [{"first_row": 21}], MASK: [{"first_row": 31}], SIZE: [{"first_row": 45}]},
    ),
    (MATMUL, {"first_row": 60000}, {SIZE: [{"first_row": 60, "flags": GATED}, {"first_row": 60000, "flags": GATED}]}),
    # What was never written
    (SDDMM, {"n_rows": 30}, {MASK: [{"n_rows": 31}]}),
    (SOFTMAX, {"n_rows": 30}, {OK: [{"mask": 0, "flags": MAKE, "mask_out": 1, "n_rows": 64}], MASK: [{"n_rows": 31}]}),
    (SPMM, {"n_rows": 30}, {MASK: [{"n_rows": 31}]}),
    (WEIGH, {"n_rows": 30}, {MASK: [{"n_rows": 31}]}),
    (store(Memory.MASK, n_rows=30, mask=1), {}, {MASK: [{"n_rows": 31}]}),
    (
        MATMUL,
        {"flags": GATED, "n_rows": 2, "source": 482, "destination": 0},
        {RANGE: [{"flags": GATED, "n_rows": 2, "source": 483, "destination": 0}]},
    ),
    (SOFTMAX, {"flags": USE, "n_rows": 20}, {MASS: [{"flags": USE, "n_rows": 21}]}),
    (store(Memory.MASS, n_rows=20), {}, {MASS: [{"n_rows": 21}]}),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_conditions(number):
    base, legal, variants = CASES[number]
    assert check(base, SIZES, KNOWN) == OK
    assert check(replace(base, **legal), SIZES, KNOWN) == OK
    for code, changes in variants.items():
        for change in changes:
            assert check(replace(base, **change), SIZES, KNOWN) == code, change


def test_every_opcode_is_checked_and_no_other_one_is_known():
    assert {base.opcode for base, _, _ in CASES} == set(Opcode)
    for opcode in {*range(256)} - set(Opcode):
        assert check(Command(opcode=opcode, flags=255), SIZES, KNOWN) == ErrorCode.UNKNOWN_OPCODE


def test_the_first_reason_counts():
    """A command with every fault at once, which are put right one after the other."""
    nothing = WrittenState([0, 0])
    wrong = replace(SOFTMAX, flags=USE | GATED | RESTART, n_rows=0, source=65535)
    mask = replace(SOFTMAX, flags=MAKE | GATED, mask_out=1, n_rows=31)
    for step, code in (
        (wrong, FUNCTION),
        (replace(wrong, flags=USE | GATED), SIZE),
        (replace(wrong, flags=USE | GATED, n_rows=20), RANGE),
        (mask, OVERLAP),
        (replace(mask, mask=0), MASK),
    ):
        assert check(step, SIZES, nothing) == code
    gated = replace(mask, mask=0)
    assert check(gated, SIZES, WrittenState([1, 31])) == TOKEN
    assert check(gated, SIZES, WrittenState([1, 31], tokens=[])) == MASS
    assert check(gated, SIZES, WrittenState([1, 31], 31, tokens=[])) == OK


def test_token_lists():
    """What is needed of matrices, masks and the retained mass goes as far as the largest entry."""
    gated = replace(MATMUL, flags=GATED, n_rows=3, source=470, destination=0)
    for tokens, code in ((None, TOKEN), ([], OK), ([2], OK), ([0, 1, 13], OK), ([13, 1, 1, 1], OK), ([14], RANGE)):
        assert check(gated, SIZES, WrittenState([0, 0], tokens=tokens)) == code, tokens
    gated = replace(SOFTMAX, flags=GATED | MAKE, mask=0, mask_out=1, n_rows=3)
    for rows, code in (([1, 9], MASK), ([1, 10], OK)):
        assert check(gated, SIZES, WrittenState(rows, 10, tokens=[4, 9])) == code
    assert check(gated, SIZES, WrittenState([1, 10], 9, tokens=[4, 9])) == MASS
    assert check(store(Memory.TOKENS), SIZES, WrittenState([0, 0])) == TOKEN
    assert check(store(Memory.TOKENS), SIZES, WrittenState([0, 0], tokens=[])) == OK


def test_a_core_with_one_mask_makes_none():
    sizes = replace(SIZES, n_masks=1)
    assert check(replace(SOFTMAX, mask=0), sizes, WrittenState([1])) == OK
    for mask_out in range(16):
        assert check(replace(SOFTMAX, mask=0, flags=MAKE, mask_out=mask_out), sizes, WrittenState([1])) == SIZE


def test_extents_are_the_words_that_are_written():
    """What a command changes lies in the extents that it names as written, and reaches their ends."""
    rng = np.random.default_rng(1)
    for base in (ROWS, MATMUL, PROJECT, replace(PROJECT, function=1), ADD):
        core = Core(SIZES)
        beats = rng.normal(size=(4096, SIZES.row_word)).astype(np.float16).view(np.uint16)
        for memory, fields in (
            (Memory.ROWS, {"n_rows": 64, "n_in": 32, "destination_stride": 4}),
            (Memory.ROWS, {"n_rows": 64, "n_in": 32, "destination_stride": 4, "destination": 256}),
            (Memory.WEIGHTS, {"n_rows": 256}),
            (Memory.VALUES, {"n_rows": 64}),
        ):
            core.execute([load(memory, **fields)], beats)
        names = ("imem", "wmem", "vmem")
        before = {name: getattr(core.memories, name).data.copy() for name in names}
        assert core.execute([base], beats[::-1]).executed == [True]
        written = [extent for extent in extents(base, SIZES) if extent.is_written]
        assert len(written) == 1
        for name in names:
            differs = before[name] != getattr(core.memories, name).data
            words = np.flatnonzero(differs.any(axis=1) if name == "imem" else differs.any(axis=(0, 2)))
            if name == written[0].memory:
                assert (words.min(), words.max() + 1) == (written[0].first, written[0].end)
            else:
                assert not len(words)


def test_a_refusal_stops_the_core_until_a_clear():
    core = Core(SIZES)
    rows = np.arange(80, dtype=np.uint16).reshape(10, 8)
    good = load(Memory.ROWS, n_rows=2, n_in=8, destination_stride=1)
    bad = replace(good, n_in=33)
    clear, bad_clear = command(Opcode.CLEAR), command(Opcode.CLEAR, function=2)
    stores = store(Memory.ROWS, n_rows=2, n_in=8, source_stride=1)
    commands = [good, bad, good, stores, bad, bad_clear, clear, stores, bad_clear, stores, clear, good, stores]
    run = core.execute(commands, rows)
    executed = [True, False, False, False, False, False, True, True, False, False, True, True, True]
    assert run.executed == executed
    assert run.refusals == [Refusal(SIZE, 1), Refusal(FUNCTION, 8)]
    assert run.load_beats == 4 and core.refusal is None
    assert np.array_equal(run.store.values, rows[:4])
    assert run.store.command.tolist() == [7, 7, 12, 12] and run.store.last.tolist() == [False, True, False, True]
    assert core.counters["commands"] == sum(executed)
    assert core.execute([bad, good]).refusals == [Refusal(SIZE, len(commands))]
    assert core.refusal == Refusal(SIZE, len(commands))
