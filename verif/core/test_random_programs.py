"""Random programs: what they cover, and that they are what the golden core makes of them in one go."""

from collections import Counter

import numpy as np
import pytest

from golden.core.core import Core
from golden.spec.commands import ErrorCode, Opcode
from golden.spec.sizes import CoreSizes
from verif.core.random_programs import RandomPrograms

POINTS = {
    "tiny": CoreSizes(),
    "wide banks": CoreSizes(
        n_banks=8,
        n_lanes=2,
        simd_lanes=4,
        max_tokens=40,
        max_head_dim=13,
        max_dim=29,
        n_masks=3,
        latent_width=9,
        latent_height=11,
        pmem_depth=90,
    ),
    "odd lanes": CoreSizes(
        n_lanes=9, simd_lanes=3, max_tokens=50, max_head_dim=20, max_dim=40, pmem_depth=64, mask_depth=20
    ),
    "one mask": CoreSizes(
        n_banks=4,
        n_lanes=8,
        simd_lanes=8,
        max_tokens=30,
        max_head_dim=20,
        max_dim=20,
        n_masks=1,
        latent_width=7,
        latent_height=5,
        patch=3,
        reference="previous",
    ),
}
PIECES, COMMANDS = 3, 15


def make(sizes, seed):
    programs = RandomPrograms(sizes, np.random.default_rng(seed))
    return programs, [programs.piece(COMMANDS) for _ in range(PIECES)]


@pytest.mark.parametrize("point", POINTS)
def test_pieces_are_one_program(point):
    sizes = POINTS[point]
    for seed in range(3):
        programs, pieces = make(sizes, seed)
        core = Core(sizes)
        run = core.execute(
            [c for piece in pieces for c in piece.commands], np.concatenate([piece.load_beats for piece in pieces])
        )
        assert core.uncertain_from is None and core.refusal is None
        assert run.load_beats == sum(len(piece.load_beats) for piece in pieces)
        assert run.refusals == [refusal for piece in pieces for refusal in piece.refusals]
        for name in ("values", "defined", "last", "command"):
            parts = np.concatenate([getattr(piece.store, name) for piece in pieces])
            assert np.array_equal(getattr(run.store, name), parts)
        assert core.counters == programs.core.counters
        again = make(sizes, seed)[1]
        assert [piece.commands for piece in again] == [piece.commands for piece in pieces]
        assert all(np.array_equal(one.load_beats, other.load_beats) for one, other in zip(again, pieces, strict=True))


def test_integers_are_beats():
    sizes = CoreSizes()
    piece = RandomPrograms(sizes, np.random.default_rng(1)).piece(COMMANDS)
    width = 16 * sizes.row_word
    assert len(piece.command_integers()) == len(piece.commands)
    assert max(piece.load_integers()) < 1 << width
    stored = piece.store_integers()
    assert len(stored) == len(piece.store.values)
    for (value, defined), words, known, last in zip(
        stored, piece.store.values, piece.store.defined, piece.store.last, strict=True
    ):
        assert value >> width == last and defined >> width == 1
        assert [value >> 16 * i & 0xFFFF for i in range(sizes.row_word)] == words.tolist()
        assert [defined >> 16 * i & 0xFFFF for i in range(sizes.row_word)] == (known * 0xFFFF).tolist()


def test_cover():
    """Every opcode, most errors, and the corners come up; most of what is stored is defined and is a number."""
    bins, defined, special = Counter(), [], []
    for seed in range(12):
        for sizes in POINTS.values():
            _, pieces = make(sizes, seed)
            for piece in pieces:
                bins.update(piece.bins)
                defined.append(piece.store.defined.mean())
                words = piece.store.values[piece.store.defined]
                special.append((words & 0x7C00 == 0x7C00).mean())
    print(dict(bins))
    for opcode in Opcode:
        assert bins[opcode.name.lower()] >= 10, opcode
    errors = [code for code in ErrorCode if bins[f"error {code.name.lower()}"]]
    assert len(errors) >= 7
    for name in (
        "no tokens",
        "some tokens",
        "all tokens",
        "empty rows",
        "keys that do not fill the banks",
        "rows that do not fill the lanes",
        "whole chains of three or more",
        "dropped",
    ):
        assert bins[name] >= 10, name
    assert np.mean(defined) > 0.8 and np.mean(special) < 0.1
