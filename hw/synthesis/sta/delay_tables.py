"""The delay tables of a Liberty library as NumPy arrays: what a timing analysis looks up for thousands of arcs at once.

An arc leads from an edge of an input to an edge of an output; its delay and the output's slew are tables over the
input's slew and the output's load. Between the points of a table values are interpolated, beyond them extrapolated.
All times are in ps, all capacitances in fF.
"""

import re
from dataclasses import dataclass, field

import numpy as np

from hw.synthesis.liberty_text import femtofarad, parse

EDGES = ("rise", "fall")
_TIME_PS = {"ps": 1.0, "ns": 1000.0, "us": 1e6}
_APART = 1e7  # more than any slew or load
_POWER = re.compile(r"\b(?:internal_power|leakage_power)\s*\([^)]*\)\s*\{(?:[^{}]|\{[^{}]*\})*\}")
_LOAD = "total_output_net_capacitance"
_CLOCK_SLEW = "related_pin_transition"
_LEFT_OUT = (
    "three_state",
    "clear",
    "preset",
    "hold",
    "recovery",
    "removal",
    "min_pulse",
    "non_seq",
    "skew",
    "nochange",
)


def read(path, text):
    """The :class:`DelayTables` of a library's text; ValueError in one sentence if it has none that can be read."""
    try:
        return DelayTables(text)
    except (AttributeError, IndexError, KeyError, ValueError) as error:
        raise ValueError(f"library {path} has delay tables that cannot be read: {error}") from None


@dataclass
class CellTables:
    """The arcs of a cell.

    ``shape`` has (input pin, output pin, input edge, output edge) of each, ``first`` is the number of the first; setup
    times likewise, with (pin, edge); ``capacitance`` of a pin is on both edges.
    """

    shape: list = field(default_factory=list)
    first: int = 0
    setup_shape: list = field(default_factory=list)
    first_setup: int = 0
    capacitance: dict = field(default_factory=dict)
    maximum_load: float = np.inf


class DelayTables:
    """All tables of a library; ``cells`` maps a name to :class:`CellTables`.

    ``arcs`` are the tables of delay and slew of every arc, ``setups`` those of every setup time.
    """

    def __init__(self, text):
        group = parse(_POWER.sub("", text))
        self.cells = {}
        self._time = _unit(group.values.get("time_unit", "1ns"), _TIME_PS)
        self._load = femtofarad(group)
        self._templates = {child.name: child.values for child in group.groups if child.kind == "lu_table_template"}
        arcs, setups = [], []
        for child in group.groups:
            if child.kind == "cell":
                self.cells[child.name] = self._cell(child, arcs, setups)
        self.arcs = TableStack(arcs)
        self.setups = TableStack(setups)

    def _cell(self, group, all_arcs, all_setups):
        cell = CellTables(first=len(all_arcs), first_setup=len(all_setups))
        arcs, setups = [], []
        for pin in (child for child in group.groups if child.kind == "pin"):
            plain = pin.values.get("capacitance", 0)
            cell.capacitance[pin.name] = tuple(
                float(pin.values.get(f"{edge}_capacitance", plain)) * self._load for edge in EDGES
            )
            if pin.values.get("direction") == "output" and "max_capacitance" in pin.values:
                cell.maximum_load = min(cell.maximum_load, float(pin.values["max_capacitance"]) * self._load)
            for timing in (child for child in pin.groups if child.kind == "timing"):
                kind = timing.values.get("timing_type", "combinational")
                if kind.startswith("setup"):
                    setups += self._setups(pin.name, timing)
                elif not kind.startswith(_LEFT_OUT):
                    for related in timing.values.get("related_pin", "").split():
                        arcs += self._arcs(related, pin.name, timing, kind)
        # In an order that does not depend on the library's, so that cells of one function agree.
        arcs.sort(key=lambda arc: arc[0])
        setups.sort(key=lambda setup: setup[0])
        arcs = _worst(arcs)
        cell.shape, cell.setup_shape = [key for key, *_ in arcs], [key for key, *_ in setups]
        all_arcs += [grids for _, *grids in arcs]
        all_setups += [grids for _, *grids in setups]
        return cell

    def _arcs(self, related, pin, timing, kind):
        tables = {child.kind: child for child in timing.groups}
        sense = timing.values.get("timing_sense", "non_unate")
        for to, edge in enumerate(EDGES):
            if f"cell_{edge}" not in tables or f"{edge}_transition" not in tables:
                continue
            if kind == "rising_edge":
                origins = (0,)
            elif kind == "falling_edge":
                origins = (1,)
            else:
                origins = {"positive_unate": (to,), "negative_unate": (1 - to,)}.get(sense, (0, 1))
            grids = [self._grid(tables[name], self._time) for name in (f"cell_{edge}", f"{edge}_transition")]
            yield from (((related, pin, origin, to), *grids) for origin in origins)

    def _setups(self, pin, timing):
        for child in timing.groups:
            if child.kind in ("rise_constraint", "fall_constraint"):
                yield (pin, int(child.kind.startswith("fall"))), self._grid(child, self._time)

    def _grid(self, group, unit):
        """``(slews, loads, values)``; for a setup time ``(slews of data, slews of the clock, values)``."""
        template = self._templates.get(group.name, {})
        rows = [_numbers(row) for row in group.rows]
        values = np.array([number for row in rows for number in row]) * unit
        axes, second_first = [], False
        for axis in (1, 2):
            kind = template.get(f"variable_{axis}")
            if kind is None:
                continue
            points = _numbers(group.values.get(f"index_{axis}", template.get(f"index_{axis}", "")))
            axes.append(np.array(points) * (self._load if kind == _LOAD else self._time))
            second_first |= axis == 1 and kind in (_LOAD, _CLOCK_SLEW)
        axes += [np.zeros(1)] * (2 - len(axes))
        values = values.reshape(len(axes[0]), len(axes[1]))
        if not all(np.isfinite(part).all() for part in (*axes, values)) or any(
            (np.diff(axis) <= 0).any() for axis in axes
        ):
            raise ValueError(f"a {group.kind} table whose points are no rising numbers")
        return (axes[1], axes[0], values.T) if second_first else (axes[0], axes[1], values)


class TableStack:
    """Tables over slew and load, to be looked up all at once.

    Every entry has one or two tables; the second one is brought to the points of the first, which libraries use for
    both anyway.
    """

    def __init__(self, entries):
        size = max([2, *(len(axis) for grids in entries for axis in grids[0][:2])])
        n_tables = len(entries[0]) if entries else 1
        values = np.zeros((n_tables, len(entries), size, size))
        slews, loads = [], []
        for n, grids in enumerate(entries):
            slew, load, _ = grids[0] = _at_least_two(*grids[0])
            slews.append(tuple(slew))
            loads.append(tuple(load))
            for table, grid in enumerate(grids):
                values[table, n, : len(slew), : len(load)] = _resampled(_at_least_two(*grid), slew, load)
        self._size = size
        self._values = values.reshape(n_tables, -1)
        self._slews, self._loads = _Axes(slews), _Axes(loads)

    def at_loads(self, entries, loads):
        """Where loads lie in the tables of some entries, for :meth:`look_up`."""
        return self._loads.locate(entries, loads)

    def look_up(self, entries, slews, at_loads):
        """The values of the entries' tables, one array a table."""
        at_slew, x, _ = self._slews.locate(entries, slews)
        at_load, y, _ = at_loads
        corner = (entries * self._size + at_slew) * self._size + at_load
        result = []
        for values in self._values:
            low = values[corner]
            low = low + (values[corner + self._size] - low) * x
            high = values[corner + 1]
            high = high + (values[corner + self._size + 1] - high) * x
            result.append(low + (high - low) * y)
        return result

    def gradients(self, entries, slews, at_loads):
        """``(derivative by the slew, derivative by the load)`` of each table of the entries."""
        at_slew, x, by_slew = self._slews.locate(entries, slews)
        at_load, y, by_load = at_loads
        corner = (entries * self._size + at_slew) * self._size + at_load
        result = []
        for values in self._values:
            v00, v01 = values[corner], values[corner + 1]
            v10, v11 = values[corner + self._size], values[corner + self._size + 1]
            along = ((v10 - v00) * (1 - y) + (v11 - v01) * y) * by_slew
            result.append((along, ((v01 - v00) * (1 - x) + (v11 - v10) * x) * by_load))
        return result


class _Axes:
    """One axis of every entry; most are the same."""

    def __init__(self, axes):
        distinct = {axis: n for n, axis in enumerate(dict.fromkeys(axes))}
        self._of = np.array([distinct[axis] for axis in axes], np.intp)
        points = [np.array(axis) for axis in distinct]
        self._first = np.cumsum([0, *map(len, points)])[:-1]
        self._last = np.array([first + len(axis) - 2 for first, axis in zip(self._first, points, strict=True)])
        self._points = np.concatenate(points) if points else np.zeros(0)
        self._steps = 1 / np.diff(self._points, append=np.inf)
        self._keys = np.concatenate([axis + n * _APART for n, axis in enumerate(points)]) if points else np.zeros(0)
        self._single = len(points) == 1

    def locate(self, entries, values):
        """``(index, fraction of the way to the next point, 1 / way)``; below 0 or above 1 beyond the ends."""
        if self._single:
            at = np.searchsorted(self._keys[1:-1], values, side="right")
            step = self._steps[at]
            return at, (values - self._points[at]) * step, step
        axis = self._of[entries]
        at = np.searchsorted(self._keys, values + axis * _APART, side="right") - 1
        first = self._first[axis]
        at = np.minimum(np.maximum(at, first), self._last[axis])
        step = self._steps[at]
        return at - first, (values - self._points[at]) * step, step


def _worst(arcs):
    """Of arcs that differ in their conditions only, one with the larger value at every point, in both tables."""
    merged = {}
    for key, *grids in arcs:
        if key in merged:
            grids = [
                (slews, loads, np.maximum(values, _resampled(_at_least_two(*other), slews, loads)))
                for (slews, loads, values), other in zip(merged[key], grids, strict=True)
            ]
        merged[key] = [_at_least_two(*grid) for grid in grids]
    return [(key, *grids) for key, grids in merged.items()]


def _at_least_two(slews, loads, values):
    """The table with two points at least on each axis."""
    if len(slews) == 1:
        slews, values = np.array([slews[0], slews[0] + 1]), np.repeat(values, 2, axis=0)
    if len(loads) == 1:
        loads, values = np.array([loads[0], loads[0] + 1]), np.repeat(values, 2, axis=1)
    return slews, loads, values


def _resampled(grid, slews, loads):
    own_slews, own_loads, values = grid
    if np.array_equal(own_slews, slews) and np.array_equal(own_loads, loads):
        return values
    values = np.array([np.interp(loads, own_loads, row) for row in values])
    return np.array([np.interp(slews, own_slews, column) for column in values.T]).T


def _numbers(text):
    return [float(word) for word in re.split(r"[\s,]+", text) if word]


def _unit(text, units):
    amount, unit = re.fullmatch(r"\s*([\d.]+)\s*(\w+)\s*", text).groups()
    return float(amount) * units[unit.lower()]
