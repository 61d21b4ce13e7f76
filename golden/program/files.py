"""Programs as JSON files, which people and other tools can write: commands by the names of docs/commands.md.

    {"format": "sparse-dit program 1",
     "core": {"n_banks": 4, "n_lanes": 4, ...},
     "commands": [
       {"opcode": "LOAD", "function": "ROWS", "n_rows": 2, "n_in": 8, "destination": 0, "destination_stride": 1,
        "load": ["3c003c00...", ...]},
       {"opcode": "ELEMENTWISE", "function": "GELU", "n_rows": 2, "n_in": 8, ...},
       {"opcode": "STORE", "function": "ROWS", ...}]}

``core`` has parameters of the core, those left out have their defaults. A command has the fields of its opcode, those
left out are 0; ``opcode`` and ``function`` are names or numbers, ``flags`` a list of names. ``load`` are the beats that
a LOAD or CTR takes, in hexadecimal digits, element 0 in the last four.
"""

import json
import re
from typing import Any

import numpy as np

from golden.core.streams import TokenCompare, n_load_beats
from golden.program.assembler import Program
from golden.program.data import Stored
from golden.spec.commands import FLAGS, Command, Opcode, fields_of, flags_of, forms_of
from golden.spec.sizes import CoreSizes

__all__ = ["FORMAT", "needed_beats", "read_program", "write_program"]

FORMAT = "sparse-dit program 1"


def needed_beats(command, sizes):
    """Beats of the load stream that a legal command takes."""
    if command.opcode == Opcode.CTR:
        return TokenCompare(sizes).n_beats
    return n_load_beats(command, sizes) if command.opcode == Opcode.LOAD else 0


def write_program(program, file):
    """Write a program into a text file that is open for writing: one command a line."""
    beats = iter(program.load_beats)
    lines = []
    for command in program.commands:
        entry = _entry(command)
        if count := needed_beats(command, program.sizes):
            entry["load"] = [_hex(next(beats)) for _ in range(count)]
        lines.append(json.dumps(entry))
    core = json.dumps(program.sizes.to_dict())
    file.write(f'{{"format": "{FORMAT}",\n"core": {core},\n"commands": [\n' + ",\n".join(lines) + "\n]}\n")


def _entry(command):
    """The fields of a command by name."""
    opcode = Opcode(command.opcode)
    entry: dict[str, Any] = {"opcode": opcode.name}
    for name in fields_of(opcode):
        value = getattr(command, name)
        if name == "function":
            entry[name] = next((item.name for item in _functions(opcode) if item == value), value)
        elif name == "flags":
            entry |= {"flags": [flag for flag in flags_of(opcode) if command.has(flag)]} if value else {}
        elif value:
            entry[name] = int(value)
    return entry


def _functions(opcode):
    """The functions of an opcode that have names."""
    return [item for form in forms_of(opcode) for item in form.functions if hasattr(item, "name")]


def _hex(beat):
    return beat.astype("<u2").tobytes()[::-1].hex()


def read_program(path, sizes=None):
    """The :class:`golden.program.assembler.Program` of a file, for its own core or for one of given ``sizes``.

    ``OSError`` if it cannot be read, ``ValueError`` if it is no program or one that the core would refuse.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} is not a JSON file: {error}") from None
    where = f"program {str(path)!r}"
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f'{where} must be an object whose "format" is {FORMAT!r}')
    _only(content, ("format", "core", "commands"), where)
    entries = content.get("commands")
    if not isinstance(entries, list) or not entries:
        raise ValueError(f'{where} must have "commands", a list of at least one')
    program = Program(_sizes(content.get("core", {}), where) if sizes is None else sizes)
    for number, entry in enumerate(entries):
        try:
            _append(program, entry)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{where}, command {number}: {error}") from None
    return program


def _only(entry, legal, where):
    for name in entry:
        if name not in legal:
            raise ValueError(f"{where} has no {name!r}: legal are {', '.join(legal)}")


def _sizes(core, where):
    if not isinstance(core, dict):
        raise ValueError(f'{where} must have an object as "core", not {core!r}')
    _only(core, tuple(CoreSizes().to_dict()), f'"core" of {where}')
    try:
        return CoreSizes(**core)
    except (ValueError, TypeError) as error:
        raise ValueError(f'"core" of {where}: {error}') from None


def _append(program, entry):
    if not isinstance(entry, dict):
        raise ValueError(f"it must be an object, not {entry!r}")
    opcode = _named("opcode", entry.get("opcode"), Opcode)
    legal = fields_of(opcode)
    _only(entry, ("opcode", *legal, "load"), opcode.name)
    values: dict[str, int] = {"opcode": opcode}
    for name in legal:
        value = entry.get(name, 0)
        if name == "function":
            functions = _functions(opcode)
            value = _named(name, value, functions) if functions else _integer(name, value)
        elif name == "flags":
            value = _flags(opcode, entry.get(name, []))
        values[name] = _integer(name, value)
    command = Command(**values)
    beats = [_beat(text, program.sizes) for text in _list("load", entry.get("load", []))]
    if reason := program.reason(command):
        raise ValueError(f"{opcode.name} would be refused: {reason}")
    if len(beats) != (needed := needed_beats(command, program.sizes)):
        raise ValueError(f'{opcode.name} needs {needed} beats in "load", not {len(beats)}')
    program.append(command, np.array(beats, np.uint16).reshape(-1, program.sizes.row_word) if needed else None)
    if opcode == Opcode.STORE:
        program.stored.append(Stored(len(program.commands) - 1, lambda values: values))


def _integer(name, value):
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be an integer, not {value!r}")
    return int(value)


def _named(field, value, members):
    """The member that a name or a number means."""
    for member in members:
        if value == member.name or (value == int(member) and type(value) is int):
            return member
    raise ValueError(f"{field} must be one of {', '.join(member.name for member in members)}, not {value!r}")


def _list(name, value):
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, not {value!r}")
    return value


def _flags(opcode, names):
    legal = flags_of(opcode)
    for name in _list("flags", names):
        if name not in legal:
            raise ValueError(f"{opcode.name} has no flag {name!r}: legal are {', '.join(legal) or 'none'}")
    return sum(FLAGS[name] for name in set(names))


def _beat(text, sizes):
    digits = 4 * sizes.row_word
    if not isinstance(text, str) or not re.fullmatch(rf"[0-9a-fA-F]{{{digits}}}", text):
        shown = repr(text) if len(repr(text)) <= 40 else repr(text)[:40] + "..."
        raise ValueError(f"a beat of load must be {digits} hexadecimal digits, not {shown}")
    return np.frombuffer(bytes.fromhex(text)[::-1], "<u2")
