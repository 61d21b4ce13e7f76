"""Reads RTLIL text, as Yosys writes it, into plain objects, and does arithmetic on its signals.

A signal is a tuple of parts, most significant first, as in Verilog's concatenations: :class:`Part` is a slice of what
a wire or a cell gives, :class:`Bits` a constant.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple


class Part(NamedTuple):
    """Bits ``low`` to ``low + width - 1`` of a wire (by its name) or of a cell's result (by its number)."""

    of: object
    low: int
    width: int


class Bits(NamedTuple):
    """A constant: characters 0, 1 and x, most significant first."""

    bits: str

    @property
    def width(self):
        return len(self.bits)


@dataclass
class Cell:
    """A gate, register, memory port or instance; ``kind`` begins with ``$`` unless it is the name of a module."""

    kind: str
    name: str
    parameters: dict = field(default_factory=dict)
    ports: dict = field(default_factory=dict)


@dataclass
class Module:
    """One module: ``wires`` are ``{name: width}``, ``directions`` ``{port: "input" or "output"}`` in their order;
    ``kept`` are the nets that synthesis is to keep."""

    name: str
    attributes: dict
    wires: dict = field(default_factory=dict)
    directions: dict = field(default_factory=dict)
    memories: dict = field(default_factory=dict)
    cells: list = field(default_factory=list)
    connections: list = field(default_factory=list)
    kept: set = field(default_factory=set)


def constant_of(text, width):
    """A parameter that is a constant, as a signal."""
    digits = text.partition("'")[2].removeprefix("s") or f"{int(text) & 0xFFFFFFFF:b}"
    return fitted((Bits(digits),), width, False)


def memory_of(cell):
    """The name of the memory that a port belongs to."""
    return cell.parameters["MEMID"].strip('"').lstrip("\\")


# Signals -------------------------------------------------------------------------------------------------------------


def is_named(name):
    """Whether a net has a name of the designer's; Amaranth calls a signal without one ``$signal``."""
    return name[0] == "\\" and name[1] != "$"


def width_of(signal):
    return sum(part.width for part in signal)


def joined(parts):
    """The signal of some parts, neighbours of one wire or constant made one; Verilog's replications stay apart."""
    result = []
    for part in parts:
        last = result[-1] if result else None
        if isinstance(part, Bits):
            if isinstance(last, Bits):
                result[-1] = Bits(last.bits + part.bits)
                continue
        elif isinstance(last, Part) and last.of == part.of and part.low + part.width == last.low:
            result[-1] = Part(part.of, part.low, part.width + last.width)
            continue
        result.append(part)
    return tuple(result)


def cut(signal, low, width):
    """``width`` bits of a signal from ``low`` on."""
    if low == 0 and width == width_of(signal):
        return signal
    parts, position = [], 0
    for part in reversed(signal):
        first, last = max(low - position, 0), min(low + width - position, part.width)
        if first < last:
            if isinstance(part, Bits):
                parts.append(Bits(part.bits[part.width - last : part.width - first]))
            else:
                parts.append(Part(part.of, part.low + first, last - first))
        position += part.width
    return joined(reversed(parts))


def fitted(signal, width, signed):
    """A signal cut to a width, or made as wide by its sign or by zeros."""
    missing = width - width_of(signal)
    if missing <= 0:
        return cut(signal, 0, width)
    sign = cut(signal, width - missing - 1, 1) if signed else (Bits("0"),)
    return joined((*sign * missing, *signal))


# Reading -------------------------------------------------------------------------------------------------------------

_PART = re.compile(r"(\d+)'s?([01xzm-]+)|([\\$]\S+)(?: \[(\d+)(?::(\d+))?\])?|(-?\d+)")


def read_rtlil(text):
    """The modules of a design after ``proc``, in the order of the text."""
    modules, attributes = [], {}
    module = cell = known = None
    for line in text.splitlines():
        keyword, _, rest = line.strip().partition(" ")
        if keyword == "parameter":
            name, _, value = rest.removeprefix("signed ").rpartition(" ")
            number = re.fullmatch(r"\d+'s?([01]{1,32})", value)
            cell.parameters[name[1:]] = str(int(number[1], 2)) if number else value
        elif keyword == "connect" and cell is not None:
            port, _, signal = rest.partition(" ")
            cell.ports[port[1:]] = known.get(signal) or _signal(signal, module, known)
        elif keyword == "cell":
            cell = Cell(*rest.split(" ", 1))
            module.cells.append(cell)
        elif keyword == "end":
            cell = None
        elif keyword == "attribute":
            name, _, value = rest.partition(" ")
            attributes[name[1:]] = value
            continue
        elif keyword == "module":
            module, known = Module(rest[1:], attributes), {}
            modules.append(module)
        elif keyword == "wire":
            _wire(rest.split(), module)
            if attributes.get("keep"):
                module.kept.add(rest.split()[-1])
        elif keyword == "memory":
            words = rest.split()
            module.memories[words[-1][1:]] = (_after("width", words, 1), _after("size", words, 1))
        elif keyword == "connect":
            left, right = _sides(rest)
            module.connections.append((_signal(left, module, known), _signal(right, module, known)))
        attributes = {}
    for module in modules:
        module.directions = {name: way for name, (way, _) in sorted(module.directions.items(), key=lambda at: at[1][1])}
    return modules


def _wire(words, module):
    module.wires[words[-1]] = _after("width", words, 1)
    for direction in ("input", "output"):
        if direction in words:
            module.directions[words[-1]] = (direction, _after(direction, words, 0))


def _after(word, words, default):
    return int(words[words.index(word) + 1]) if word in words[:-1] else default


def _sides(text):
    """The two signals of a connection."""
    if text.startswith("{"):
        left, _, right = text.partition(" } ")
        return left + " }", right
    match = re.match(r"\S+(?: \[[\d:]+\])? ", text)
    return match[0].rstrip(), text[match.end() :]


def _signal(text, module, known):
    if text not in known:
        parts = []
        for match in _PART.finditer(text):
            size, bits, name, high, low, _ = match.groups()
            if name:
                high = module.wires[name] - 1 if high is None else int(high)
                low = (0 if match[4] is None else high) if low is None else int(low)
                parts.append(Part(name, low, high - low + 1))
            elif bits:
                bits = re.sub("[zm-]", "x", bits)
                parts.append(Bits(bits.rjust(int(size), "x" if bits[0] == "x" else "0")))
            else:
                parts.append(Bits(f"{int(match[6]) & 0xFFFFFFFF:032b}"))
        known[text] = joined(parts)
    return known[text]
