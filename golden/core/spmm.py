"""Sparse matrix times dense rows on the vector unit: schedule of the non-zeros, bit-exact results, commands."""

from typing import NamedTuple

import numpy as np

from golden.arith.accumulator import Accumulator
from golden.spec.vector_operations import Scope, VectorOp
from golden.units.vector_unit import Commands

__all__ = ["Schedule", "schedule", "spmm", "spmm_commands"]

_CHUNK = 1 << 21
_DEFAULT = Accumulator()


class Schedule(NamedTuple):
    """One entry a command: row i takes as many as its fullest engine has non-zeros, and one if it has none."""

    column: np.ndarray  # [n, n_engines], the column that each engine works on, -1 for none
    row: np.ndarray  # [n]
    first: np.ndarray  # [n]
    last: np.ndarray  # [n]


def schedule(mask, engine, address, n_engines):
    """Schedule the non-zeros of each row: every engine processes its own by rising address.

    mask [n_rows, n_columns]; engine and address [n_columns] say where the row of values of each column is.
    """
    mask = np.asarray(mask, bool)
    order = np.lexsort((address, engine))
    ordered, owner = mask[:, order], np.asarray(engine)[order]
    count = np.zeros((len(mask), n_engines), np.int64)
    row, at = np.nonzero(ordered)
    np.add.at(count, (row, owner[at]), 1)
    length = np.maximum(count.max(axis=1), 1)
    end = np.cumsum(length)
    begin = end - length
    # The non-zeros come row by row and in a row engine by engine, so a running index gives their rank within an engine.
    group_begin = (np.cumsum(count) - count.ravel())[row * n_engines + owner[at]]
    rank = np.arange(len(row)) - group_begin
    column = np.full((int(length.sum()), n_engines), -1, np.int64)
    column[begin[row] + rank, owner[at]] = order[at]
    first, last = np.zeros((2, len(column)), bool)
    first[begin], last[end - 1] = True, True
    return Schedule(column, np.repeat(np.arange(len(mask)), length), first, last)


def spmm(coefficients, mask, values, engine, address, n_engines, accumulator=_DEFAULT):
    """`out[i] = sum of coefficients[i, j] * values[j] over the mask`: `(single, rounded)`, both [n_rows, width].

    coefficients [n_rows, n_columns] and values [n_columns, width] are words of the accumulator's format. Every engine
    accumulates its columns by rising address, then the bus adds the engines (golden.arith.accumulator says how and how
    exact); `single` is that sum rounded once to FP32, `rounded` once to the format. A row without non-zeros is +0.
    """
    plan = schedule(mask, engine, address, n_engines)
    coefficients, values = np.asarray(coefficients), np.asarray(values)
    begins = np.flatnonzero(plan.first)
    rows_a_chunk = max(1, _CHUNK // (n_engines * values.shape[1] * max(1, len(plan.row) // max(1, len(begins)))))
    single, rounded = [], []
    for start in range(0, len(begins), rows_a_chunk):
        starts = begins[start : start + rows_a_chunk]
        stop = begins[start + rows_a_chunk] if start + rows_a_chunk < len(begins) else len(plan.row)
        part = slice(starts[0], stop)
        column = plan.column[part]
        factor = np.where(column >= 0, coefficients[plan.row[part, None], column], 0)
        rows = np.where(column[..., None] >= 0, values[column], 0)
        sums = accumulator.accumulate(accumulator.products(factor[..., None], rows), starts - starts[0])
        for chunks, words in zip((single, rounded), accumulator.round(accumulator.align(sums, 1)), strict=True):
            chunks.append(words)
    return np.concatenate(single), np.concatenate(rounded)


def spmm_commands(coefficients, mask, values, engine, address, unit):
    """The vector unit's commands for the same product, at most `unit.n_lanes` values wide: write banks, then rows.

    Each row gives one result beat, in `single` and `rounded` of the scope LANES.
    """
    engine, address = np.asarray(engine), np.asarray(address)
    values = np.asarray(values)
    writes = Commands.empty(int(address.max()) + 1, unit.n_engines, unit.n_lanes)
    writes.operation[:] = VectorOp.WRITE_BANK
    writes.address[:] = np.arange(len(writes))[:, None]
    writes.a[address, engine, : values.shape[1]] = values

    plan = schedule(mask, engine, address, unit.n_engines)
    rows = Commands.empty(len(plan.row), unit.n_engines, unit.n_lanes)
    rows.operation[:] = VectorOp.SPMM
    rows.scope[:] = Scope.LANES
    rows.first[:], rows.last[:] = plan.first, plan.last
    rows.enable[:] = plan.column >= 0
    rows.address[:] = np.where(rows.enable, address[plan.column], 0)
    rows.a[..., 0] = np.where(rows.enable, np.asarray(coefficients)[plan.row[:, None], plan.column], 0)
    return Commands.join(writes, rows)
