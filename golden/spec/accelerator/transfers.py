"""How the data of LOAD, STORE and CTR lie in memory: without gaps, elements of 16 bits, little-endian.

``TRANSFERS`` says it for each memory of the core; everything but rows of IMEM is one run of bytes.
"""

from typing import NamedTuple

from golden.spec.commands import Memory
from golden.spec.counters import COUNTERS

__all__ = ["COMPARE_TRANSFER", "ELEMENT_BYTES", "TRANSFERS", "Transfer", "mask_elements", "piece_elements"]

ELEMENT_BYTES = 2


class Transfer(NamedTuple):
    """The bytes of a row in memory, as text, and whether there are several rows, ``pitch`` bytes apart."""

    length: str
    has_rows: bool = False


TRANSFERS = {
    Memory.ROWS: Transfer("2 n_in", has_rows=True),
    Memory.WEIGHTS: Transfer("2 n_rows N L"),
    Memory.VALUES: Transfer("2 n_rows N S"),
    Memory.SCORES: Transfer("2 n_rows N"),
    Memory.PROBABILITIES: Transfer("2 n_rows N"),
    Memory.MASK: Transfer("n_rows N key_slots / 8"),
    Memory.TOKENS: Transfer("LOAD: 2 n_rows; STORE: at least 2 (max_tokens + 1), of which 2 (entries + 1) are written"),
    Memory.MASS: Transfer("2 n_rows"),
    Memory.COUNTERS: Transfer(f"{4 * len(COUNTERS)}, of 4 bytes each"),
}
"""``length`` must be what is said here."""

COMPARE_TRANSFER = Transfer("LATENT_LENGTH, a register: pieces of N values of the latent, or of both in turn")
"""The same for CTR."""


def mask_elements(sizes):
    """Elements of 16 bits of a row of a mask."""
    return sizes.n_banks * sizes.key_slots // 16


def piece_elements(memory, sizes):
    """Elements of a piece of a memory: what LOAD never cuts between two beats, and what STORE sends a beat.

    A row of a mask that is longer than a beat is an exception: it takes several beats. None for rows of IMEM.
    """
    return {
        Memory.ROWS: None,
        Memory.WEIGHTS: sizes.n_lanes,
        Memory.VALUES: sizes.simd_lanes,
        Memory.SCORES: sizes.n_banks,
        Memory.PROBABILITIES: sizes.n_banks,
        Memory.MASK: mask_elements(sizes),
        Memory.TOKENS: 1,
        Memory.MASS: 1,
        Memory.COUNTERS: 2,
    }[memory]
