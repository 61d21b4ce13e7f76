"""Exact evaluation of tables of linear segments (NumPy)."""

from dataclasses import replace

import numpy as np

__all__ = ["evaluate", "scale_down"]


def evaluate(table, argument):
    """The exact values of a :class:`golden.spec.tables.LinearTable`: integers with ``value_fraction`` fraction bits."""
    argument = np.asarray(argument, dtype=np.int64)
    last = (1 << table.offset_width) - 1
    index, offset = argument >> table.offset_width, argument & last
    offset = last - offset if table.falling else offset
    intercept = np.array(table.intercepts, dtype=np.int64)[index]
    return (intercept << table.slope_shift) + np.array(table.slopes, dtype=np.int64)[index] * offset


def scale_down(table, places):
    """The table divided by 2**places: every intercept and slope shifted right, rounded down."""
    return replace(
        table,
        intercepts=tuple(value >> places for value in table.intercepts),
        slopes=tuple(value >> places for value in table.slopes),
    )
