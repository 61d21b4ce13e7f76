"""Model of the SpMM array: the rows of a sparse product, pass by pass, and their timing."""

from dataclasses import dataclass

import numpy as np

from golden.arith.accumulator import Accumulator
from golden.spec.spmm_array import ISSUE_TO_STATUS

__all__ = ["Schedule", "accumulator_of", "schedule", "sparse_product", "values_in_banks"]

_QUEUE_LATENCY = 2
"""Clocks from the acceptance of a bitmap until an engine can use it."""

_CHUNK = 1 << 21


def accumulator_of(p):
    """The accumulator of a lane of an array with the parameters ``p``."""
    return Accumulator(format=p.format, align_width=p.align_width, max_terms=p.max_terms)


def values_in_banks(banks, base, stride, n_slots, n_passes):
    """Values ``[engines, slots, passes, lanes]`` of banks ``[engines, words, lanes]``."""
    return np.asarray(banks)[:, base + np.arange(n_passes) * stride + np.arange(n_slots)[:, None]]


def sparse_product(bitmap, coefficients, values, accumulator):
    """``(single, rounded)``, both ``[rows, passes, lanes]``: sums of coefficients times values over the set bits.

    ``bitmap`` and the words ``coefficients`` are ``[rows, engines, slots]``, the words ``values`` ``[engines, slots,
    passes, lanes]``. Every engine accumulates its set bits by rising slot, then the engines' sums are aligned, added,
    and rounded once (golden.arith.accumulator says how). A row without set bits is +0.
    """
    bitmap, values = np.asarray(bitmap, bool), np.asarray(values)
    # Axes of the terms: slot, row, engine, pass, lane.
    taken = np.moveaxis(bitmap, 2, 0)[..., None, None]
    factor = np.where(taken, np.moveaxis(np.asarray(coefficients), 2, 0)[..., None, None], 0)
    words = np.moveaxis(values, 1, 0)[:, None]
    step = max(1, _CHUNK // max(1, values.size))
    single, rounded = [], []
    for low in range(0, len(bitmap), step):
        part = slice(low, low + step)
        terms = accumulator.products(factor[:, part], np.where(taken[:, part], words, 0))
        sums = accumulator.align(accumulator.accumulate(terms, [0]), 2)
        for chunks, found in zip((single, rounded), accumulator.round(sums), strict=True):
            chunks.append(found[0])
    empty = np.zeros((0, *values.shape[2:]), np.int64)
    return np.concatenate([empty, *single]), np.concatenate([empty, *rounded])


@dataclass(frozen=True)
class Schedule:
    """Timing of a run in which nothing stalls and no input idles; clock 0 is that of the first bitmap's transfer.

    ``issue`` ``[passes, engines]`` is the clock in which an engine issues the last term of a pass (of a pass without
    terms, the clock that it takes), ``result`` ``[passes]`` the clock in which a pass's result is taken.
    """

    issue: np.ndarray
    result: np.ndarray

    @property
    def cycles(self):
        """Clocks from the first bitmap to the last result, both included."""
        return int(self.result[-1]) + 1 if len(self.result) else 0


def schedule(counts, n_passes, p, available=None):
    """The :class:`Schedule` of ``[rows, engines]`` counts of set bits on an array with the parameters ``p``.

    ``available`` [rows] are the clocks in which the bitmaps come at the earliest, by default 0.
    """
    counts = np.asarray(counts, np.int64)
    n_engines, depth = counts.shape[1], p.queue_depth
    accepted, begins, issues, took = [], [], [], []
    before = np.full(n_engines, -1)
    issued = moved = before
    for row, count in enumerate(counts):
        # A place in the queue of bitmaps is free one clock after its row's last pass began.
        room = begins[row - p.bitmap_depth].max() + 1 if row >= p.bitmap_depth else 0
        here = 0 if available is None else int(available[row])
        accepted.append(max(accepted[-1] + 1 if row else 0, room, here))
        for _ in range(n_passes):
            begin = np.maximum(accepted[row] + _QUEUE_LATENCY, moved)
            first_move = np.maximum(begin + 1, issued)
            number, terms = len(issues), np.maximum(count, 1)
            freed = took[number - depth] + p.freed_delay + 1 if number >= depth else 0
            moved = first_move + terms - 1
            issued = np.maximum(first_move + terms, freed)
            issues.append(issued)
            took.append(_next_take(p, took, int(issued.max()) + ISSUE_TO_STATUS))
        begins.append(begin)
    shape = (len(issues), n_engines)
    return Schedule(np.array(issues, np.int64).reshape(shape), np.array(took, np.int64) + p.to_result)


def _next_take(p, took, clock):
    """The first clock from ``clock`` on in which the reduction can take another pass."""
    if took:
        clock = max(clock, took[-1] + p.reduction_clocks)
    if len(took) >= p.result_depth:
        clock = max(clock, took[-p.result_depth] + p.to_result + 1)
    # Passes that follow each other keep to multiples of reduction_clocks: at others a second read meets a first one.
    while took and clock - took[-1] < p.second_read + 1 and (clock - took[-1]) % p.reduction_clocks:
        clock += 1
    return clock
