"""Model of the dot-product array: the scores of each unit under its part of the mask, and their timing."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from golden.spec.dot_product_array import DotProductArrayParameters
from golden.units.dot_product_unit import dot_products

__all__ = ["QUEUE_LATENCY", "Schedule", "UnitScores", "keys_in_banks", "sampled_scores", "schedule"]

QUEUE_LATENCY = 2
"""Clocks from the acceptance of a mask until a unit can use it."""


class UnitScores(NamedTuple):
    """What one unit sends, in order: one entry a set bit."""

    row: np.ndarray
    slot: np.ndarray
    last_of_row: np.ndarray
    wide: np.ndarray
    narrow: np.ndarray


def keys_in_banks(banks, base, stride, n_slots, n_beats):
    """Keys ``[units, slots, beats, lanes]`` of banks ``[units, words, lanes]``, at ``base + beat * stride + slot``."""
    return np.asarray(banks)[:, base + np.arange(n_beats) * stride + np.arange(n_slots)[:, None]]


def sampled_scores(bitmap, query, keys, *, format, align_width=None, max_terms=None):
    """Scores of each unit: a list of :class:`UnitScores`.

    ``bitmap`` is ``[rows, units, slots]``, ``query`` words ``[rows, beats, lanes]`` and ``keys`` words ``[units,
    slots, beats, lanes]``, of which rows with fewer beats use the first ones. The score of a set bit is that of
    :func:`golden.units.dot_product_unit.dot_products`; rows follow each other, and in a row the slots rise.
    """
    bitmap, query, keys = np.asarray(bitmap, dtype=bool), np.asarray(query), np.asarray(keys)
    DotProductArrayParameters(
        n_units=bitmap.shape[1],
        n_slots=bitmap.shape[2],
        n_lanes=query.shape[2],
        max_beats=query.shape[1],
        format=format,
        align_width=align_width,
        max_terms=max_terms,
    )
    found = []
    for unit in range(bitmap.shape[1]):
        row, slot = np.nonzero(bitmap[:, unit])
        scores = dot_products(
            query[row], keys[unit, slot, : query.shape[1]], format=format, align_width=align_width, max_terms=max_terms
        )
        last_of_row = np.append(row[1:] != row[:-1], True)[: len(row)]
        found.append(UnitScores._make((row, slot, last_of_row, *scores)))
    return found


@dataclass(frozen=True)
class Schedule:
    """Timing of a run in which no input idles and no output stalls; clock 0 is that of the first transfers.

    ``start`` and ``end`` ``[..., rows, units]`` are the clocks of the first and the last beat that a unit issues for
    a row, both -1 where it has no work; ``row_done`` ``[..., rows]`` is the clock in which a row is reported;
    ``waits_for_rows`` ``[..., rows, units]`` marks rows that only the run-ahead limit delayed.
    """

    start: np.ndarray
    end: np.ndarray
    row_done: np.ndarray
    waits_for_rows: np.ndarray

    @property
    def cycles(self):
        """Clocks from the first beat issued to the last one, 0 where there is none."""
        first = np.where(self.start < 0, np.iinfo(np.int64).max, self.start).min(axis=(-2, -1))
        last = self.end.max(axis=(-2, -1))
        return np.where(last < 0, 0, last - first + 1)


def schedule(counts, n_beats, run_ahead, *, query_beats, score_latency, available=None):
    """The :class:`Schedule` of ``[..., rows, units]`` counts of set bits, with ``n_beats`` beats a dot product.

    The ideal is :func:`golden.units.hash_bank_mapper.sddmm_cycles`: a unit starts row i once it has finished row i-1
    and all have finished row i-1-run_ahead. In addition, a row's query takes ``ceil(n_beats / query_beats)`` clocks to
    load into a ring of run_ahead + 2 rows; a unit takes the masks of its rows with set bits, one a clock, from a queue
    of run_ahead + 3; the array accepts and completes at most one row a clock; and rows in flight are limited by the
    width of the row numbers. A score comes ``score_latency`` clocks after the last beat of its dot product.
    ``available`` [rows] are the clocks from which on each row's query can be read, by default 0.
    """
    for name, value in (("max_beats", n_beats), ("query_beats", query_beats), ("run_ahead", run_ahead)):
        DotProductArrayParameters.check_value(name, value)
    by_row = np.moveaxis(np.asarray(counts, dtype=np.int64), -2, 0)
    shape = by_row.shape[1:]
    ring_rows, mask_depth = run_ahead + 2, run_ahead + 3
    in_flight = (1 << (run_ahead + 7 + score_latency - 1).bit_length()) - 1
    transfers = -(-n_beats // query_beats)

    idle = np.full(shape, -1)
    loaded, passed, accepted, reported = ([] for _ in range(4))
    start, end, limited = ([] for _ in range(3))
    rest_until = busy_until = last_score = idle
    mask_taken = [idle] * mask_depth  # when each unit took its last masks
    for row, count in enumerate(by_row):
        here = -1 if available is None else available[row] - 1
        loaded.append(_latest(_at(loaded, row - 1), _at(passed, row - ring_rows), here) + transfers)
        accepted.append(_latest(_at(accepted, row - 1), mask_taken[0].max(axis=-1), _at(reported, row - in_flight)) + 1)
        # The mask of a row is taken when only the slot being issued is left of the row before.
        has_work = count > 0
        seen = np.asarray(accepted[row])[..., None] + QUEUE_LATENCY
        take = np.maximum(np.maximum(mask_taken[-1] + 1, seen), rest_until)
        moves = np.maximum(take + 1, busy_until)
        unlimited = np.maximum(moves, np.asarray(loaded[row])[..., None]) + 1
        begins = np.maximum(unlimited, np.asarray(_at(passed, row - 1 - run_ahead))[..., None] + 1)
        ends = begins + count * n_beats - 1
        start.append(np.where(has_work, begins, -1))
        end.append(np.where(has_work, ends, -1))
        limited.append(has_work & (begins > unlimited))

        mask_taken = [np.where(has_work, *pair) for pair in zip([*mask_taken[1:], take], mask_taken, strict=True)]
        rest_until = np.where(has_work, np.where(count > 1, ends - n_beats, moves), rest_until)
        busy_until = np.where(has_work, ends, busy_until)
        last_score = np.where(has_work, ends + score_latency, last_score)
        done = np.where(has_work, ends, np.maximum(busy_until, seen))
        passed.append(_latest(_at(passed, row - 1) + 1, done.max(axis=-1), loaded[row] + 1))
        reported.append(_latest(_at(reported, row - 1), passed[row], last_score.max(axis=-1)) + 1)
    return Schedule(
        np.stack(start, axis=-2), np.stack(end, axis=-2), np.stack(reported, axis=-1), np.stack(limited, axis=-2)
    )


def _at(clocks, row):
    """The clock of an earlier row; before the first row, the clock before all."""
    return clocks[row] if row >= 0 else np.int64(-1)


def _latest(*clocks):
    return np.maximum.reduce(np.broadcast_arrays(*clocks))
