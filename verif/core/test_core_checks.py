"""What the core refuses: every condition from both sides of its bound, their order, and what a refusal leaves."""

from dataclasses import replace

import numpy as np
import pytest

from golden.core.checks import WrittenState, check, extents
from golden.core.core import Core, Refusal
from golden.spec.commands import Command, ErrorCode, Memory, Opcode
from verif.core.check_cases import (
    ADD,
    CASES,
    FUNCTION,
    GATED,
    KNOWN,
    MAKE,
    MASK,
    MASS,
    MATMUL,
    OK,
    OVERLAP,
    PROJECT,
    RANGE,
    RESTART,
    ROWS,
    SIZE,
    SIZES,
    SOFTMAX,
    TOKEN,
    USE,
    command,
    load,
    store,
)


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
