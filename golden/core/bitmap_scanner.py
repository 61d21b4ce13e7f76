"""The scan order of the set bits of hash-ordered mask rows: all banks in parallel, each by rising slot."""

from typing import NamedTuple

import numpy as np

__all__ = ["Steps", "scan"]


class Steps(NamedTuple):
    """One entry a step; a row takes as many steps as its fullest bank has set bits, at least one."""

    row: np.ndarray  # [steps]
    slot: np.ndarray  # [steps, banks], the slot of each bank, -1 for none
    first: np.ndarray  # [steps], begins its row
    last: np.ndarray  # [steps], ends its row


def scan(bitmap):
    """Steps through ``bitmap`` [rows, banks, slots], row after row."""
    bitmap = np.asarray(bitmap, dtype=bool)
    length = np.maximum(bitmap.sum(axis=2).max(axis=1), 1)
    end = np.cumsum(length)
    slot = np.full((int(length.sum()), bitmap.shape[1]), -1, np.int64)
    row, bank, at = np.nonzero(bitmap)
    rank = np.cumsum(bitmap, axis=2)[row, bank, at] - 1
    slot[(end - length)[row] + rank, bank] = at
    first, last = np.zeros((2, len(slot)), bool)
    first[end - length], last[end - 1] = True, True
    return Steps(np.repeat(np.arange(len(bitmap)), length), slot, first, last)
