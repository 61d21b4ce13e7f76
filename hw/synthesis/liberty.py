"""Liberty cell libraries: what the synthesis flow needs to know of a cell. Cells are found by function, not by name."""

import gzip
import hashlib
import re
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from pathlib import Path

from hw.synthesis.liberty_functions import truth_table
from hw.synthesis.liberty_text import femtofarad, parse, without_comments

# Timing and power tables are nine tenths of a library and of no use here.
_TABLES = re.compile(r"\b(?:values|index_\d)\s*\([^)]*\)\s*;?")


@dataclass(frozen=True)
class Adder:
    """A full- or half-adder cell: its name and pins; an output in ``inverted`` has the complement of sum or carry."""

    name: str
    inputs: tuple
    sum: str
    carry: str
    inverted: frozenset


@dataclass
class Cell:
    """One library cell; ``functions`` maps an output pin to its Liberty expression, ``inputs`` a pin to its fF."""

    name: str
    area: float
    usable: bool = True
    storage: str | None = None  # "flip-flop", "latch", "clock gate" or None
    inputs: dict = field(default_factory=dict)
    functions: dict = field(default_factory=dict)
    state: tuple = ()  # how the flip-flop changes, as the library says it, as (rule, expression)
    state_names: tuple = ()  # what expressions call its value and its complement
    clock_gate: dict = field(default_factory=dict)  # of a clock gate, the pins by role: clock, enable, test, out

    def truth(self, pin):
        """The truth table of an output over ``inputs``, first input slowest; None if it is not a plain function."""
        return truth_table(self.functions[pin], list(self.inputs)) if self.functions[pin] else None

    @cached_property
    def behaviour(self):
        """What two cells have in common that can replace each other pin by pin; None if that cannot be told."""
        if self.storage == "flip-flop":
            known = tuple(sorted(self.inputs)), tuple(sorted(self.functions.items())), self.state
            return known if self.state else None
        if self.storage or not self.functions or any(self.truth(pin) is None for pin in self.functions):
            return None
        pins = sorted(self.inputs)
        return tuple(pins), tuple((pin, truth_table(text, pins)) for pin, text in sorted(self.functions.items()))

    @cached_property
    def interchangeable(self):
        """The pairs of input pins that may be exchanged without changing any output."""
        if self.storage or self.behaviour is None:
            return []

        def exchanged(first, second):
            pins = list(self.inputs)
            at, to = pins.index(first), pins.index(second)
            pins[at], pins[to] = pins[to], pins[at]
            return all(truth_table(text, pins) == self.truth(pin) for pin, text in self.functions.items())

        return [pair for pair in combinations(self.inputs, 2) if exchanged(*pair)]


@dataclass(frozen=True)
class Library:
    """A cell library: where it came from and its cells by name."""

    path: Path
    sha256: str
    name: str
    cells: dict
    wire_load: str | None
    corner: str

    def _smallest(self, accepts):
        cells = (cell for cell in self.cells.values() if cell.usable and not cell.storage and cell.area > 0)
        return min(filter(accepts, cells), key=lambda cell: (cell.area, cell.name), default=None)

    def _gate(self, table, n_inputs):
        def accepts(cell):
            return len(cell.inputs) == n_inputs and [cell.truth(pin) for pin in cell.functions] == [table]

        return self._smallest(accepts)

    @cached_property
    def nand2(self):
        """The smallest two-input NAND: the gate equivalent."""
        return self._gate((1, 1, 1, 0), 2)

    @cached_property
    def buffer(self):
        """The smallest buffer: the driver that is assumed at every input."""
        return self._gate((0, 1), 1)

    @property
    def output_load(self):
        """The load assumed at every output: four of the smallest buffers, in fF."""
        return 4 * next(iter(self.buffer.inputs.values()))

    @cached_property
    def strengths(self):
        """``{cell: [cells of the same function, smallest first]}``, where there are several."""
        families = {}
        for cell in self.cells.values():
            if cell.usable and cell.behaviour and cell.area > 0:
                families.setdefault(cell.behaviour, {}).setdefault(cell.area, cell)  # of equal ones the first
        names = [[family[area].name for area in sorted(family)] for family in families.values()]
        return {name: family for family in names if len(family) > 1 for name in family}

    @cached_property
    def full_adder(self):
        return self._adder(3, lambda bits: sum(bits) & 1, lambda bits: sum(bits) >> 1)

    @cached_property
    def half_adder(self):
        return self._adder(2, lambda bits: sum(bits) & 1, lambda bits: sum(bits) >> 1)

    def _adder(self, n_inputs, sum_of, carry_of):
        rows = list(product((0, 1), repeat=n_inputs))
        wanted = {}
        for role, function in (("sum", sum_of), ("carry", carry_of)):
            table = tuple(map(function, rows))
            wanted[table] = (role, False)
            wanted[tuple(1 - bit for bit in table)] = (role, True)

        def roles(cell):
            if len(cell.inputs) != n_inputs or len(cell.functions) != 2:
                return None
            found = {wanted.get(cell.truth(pin), (None, False)): pin for pin in cell.functions}
            return found if {role for role, _ in found} == {"sum", "carry"} else None

        cell = self._smallest(roles)
        if cell is None:
            return None
        pins = {role: pin for (role, _), pin in roles(cell).items()}
        inverted = frozenset(pin for (_, inverts), pin in roles(cell).items() if inverts)
        return Adder(cell.name, tuple(cell.inputs), pins["sum"], pins["carry"], inverted)

    def describe(self):
        """What a report must say of the library."""
        return {"name": self.name, "file": self.path.name, "sha256": self.sha256, "corner": self.corner}


def read_text(path):
    """The library's text, unpacked if it is compressed; ValueError in one sentence if that cannot be had."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"library {path} does not exist; give a Liberty file (.lib or .lib.gz)") from None
    except OSError as error:
        raise ValueError(f"library {path} cannot be read: {error.strerror}") from None
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error):
            raise ValueError(f"library {path} is a truncated or damaged gzip file") from None
    return data.decode("utf-8", errors="replace")


def read(path):
    """Read a Liberty file (.lib or .lib.gz); a file that is not one raises ValueError in one sentence."""
    path = Path(path)
    text = read_text(path)
    if not re.match(r"\s*library\s*\(", without_comments(text[:100_000])):
        raise ValueError(f"library {path} is not a Liberty file: it does not begin with library (...)")
    try:
        group = parse(_TABLES.sub("", text))
    except (IndexError, ValueError, RecursionError):
        raise ValueError(f"library {path} is truncated or malformed: its groups do not close") from None
    if not group.name:
        raise ValueError(f"library {path} is malformed: its library group has no name")
    try:
        library = _library(path, hashlib.sha256(text.encode()).hexdigest(), group)
    except (KeyError, ValueError) as error:
        raise ValueError(f"library {path} is malformed: {error}") from None
    if not library.cells:
        raise ValueError(f"library {path} holds no cells")
    return library


def _library(path, sha256, group):
    cells = {child.name: _cell(child, femtofarad(group)) for child in group.groups if child.kind == "cell"}
    corner = "process {}, {} V, {} C".format(
        *(group.values.get(f"nom_{key}", "?") for key in ("process", "voltage", "temperature"))
    )
    return Library(path, sha256, group.name, cells, group.values.get("default_wire_load"), corner)


def _cell(group, unit):
    kinds = {child.kind for child in group.groups}
    area = group.values.get("area", "0")
    try:
        cell = Cell(group.name, float(area))
    except ValueError:
        raise ValueError(f"cell {group.name} has area {area!r}") from None
    # The flow's netlists are bit by bit: cells whose pins are a bus or a bundle are left alone.
    cell.usable = group.values.get("dont_use", "false").lower() != "true" and not kinds & {"bus", "bundle"}
    if "clock_gating_integrated_cell" in group.values:
        cell.storage = "clock gate"
    elif kinds & {"ff", "ff_bank"}:
        cell.storage = "flip-flop"
        for child in group.groups:
            if child.kind == "ff":
                cell.state, cell.state_names = tuple(sorted(child.values.items())), tuple(child.arguments)
    elif kinds & {"latch", "latch_bank", "statetable"}:
        cell.storage = "latch"
    for pin in (child for child in group.groups if child.kind == "pin"):
        if pin.values.get("direction") == "input":
            cell.inputs[pin.name] = float(pin.values.get("capacitance", 0)) * unit
        elif pin.values.get("direction") == "output":
            cell.functions[pin.name] = pin.values.get("function", "")
        for role in ("clock", "enable", "test", "out"):
            if pin.values.get(f"clock_gate_{role}_pin", "").lower() == "true":
                cell.clock_gate[role] = pin.name
    return cell
