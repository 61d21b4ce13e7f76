"""Writes a module of RTLIL as Verilog that reads well: ANSI ports, expressions, registers grouped by their control."""

import re
from collections import defaultdict
from typing import NamedTuple

from hw.emit.dataflow import Dataflow
from hw.emit.naming import Names, port_names
from hw.emit.netlist import Bits, cut, width_of
from hw.emit.operators import ASSOCIATIVE, constant

MAX_LINE = 118
_LONGEST = 100
"""Characters of an expression, about, up to which results are written where they are used."""
_DEEPEST = 4
"""Operators one inside another up to which they are."""

_YOSYS_ATTRIBUTES = {"top", "blackbox", "cells_not_processed", "dynports", "hdlname", "src", "generator", "full_case"}


def split_modules(text):
    """``{name: text of one module}`` in the order of the file."""
    return {match[1]: match[0] for match in re.finditer(r"^module (\S+?)\s*\(.*?^endmodule$", text, re.M | re.S)}


# What Verilator's -Wall says of every generated design, and why it is no fault there.
WAIVERS = {
    "DECLFILENAME": "a file holds a block and the modules that only this block uses",
    "SYMRSVDWORD": "a port may be called as a word of C++, such as reference",
    "TIMESCALEMOD": "nothing here depends on a time scale, which other files may have",
    "UNUSEDSIGNAL": "shared modules have all ports and full widths, whoever uses them",
}


def as_file(header, modules):
    """The text of a file of modules, complete in itself: implicit nets are errors here, and nowhere else."""
    waivers = "".join(f"/* verilator lint_off {name} */ // {reason}\n" for name, reason in WAIVERS.items())
    opening = f"/* verilator lint_save */\n{waivers}`default_nettype none\n"
    body = "\n".join(modules)
    return f"{header}\n{opening}\n{body}\n`default_nettype wire\n/* verilator lint_restore */\n"


def undriven(text):
    """Tell Verilator that the outputs of these modules are driven by what takes their place."""
    return f"/* verilator lint_off UNDRIVEN */\n{text}/* verilator lint_on UNDRIVEN */\n"


class Matches(NamedTuple):
    """Which name of a module's RTLIL is which in its Verilog: ``{Part of a net: register}``, instances, memories."""

    registers: dict
    instances: dict
    memories: dict


class Written(NamedTuple):
    text: str
    matches: Matches


def write_design(modules, black_boxes):
    """``{module name: Written}``, modules in the form in which they are given to the user."""
    design = {module.name: module for module in modules}
    return {
        name: _black_box(module) if name in black_boxes else _Writer(module, design).written()
        for name, module in design.items()
    }


def _black_box(module):
    return Written(
        undriven(f"(* blackbox *)\nmodule {module.name} (\n{_ports(module, set())}\n);\nendmodule\n"),
        Matches({}, {}, {}),
    )


def _ports(module, registers):
    lines, names = [], port_names(module)
    for name, direction in module.directions.items():
        kind = "reg" if name in registers else "wire"
        keep = "(* keep *) " if name in module.kept else ""
        lines.append(f"  {keep}{direction:6} {kind:4} {_range(module.wires[name])}{names[name[1:]]}")
    return ",\n".join(lines)


def _range(width):
    return f"[{width - 1}:0] " if width > 1 else ""


class _Writer:
    def __init__(self, module, design):
        self._module, self._design = module, design
        self._flow = Dataflow(module)
        self._names = Names(self._flow, design)
        self._sizes = {}
        self._folded = set()
        self._functions = {}
        self._choose_folds()
        for number in reversed(self._flow.operations):
            if self._is_net(number):
                self._names.name(number)
        for name in self._flow.nameless:
            self._names.name(name)

    def _is_net(self, number):
        return number not in self._folded and number not in self._flow.targets

    # Which results are written where they are used

    def _choose_folds(self):
        for number, made in self._flow.operations.items():
            self._sizes[number] = self._fold(made.operands)
        for register in self._flow.registers:
            self._fold([register.data])
        for control in self._flow.controls:
            self._fold([control.enable or (), control.clear or ()])
        for write in self._flow.writes:
            self._fold([write.address])
            self._fold([write.data])
            for lane in write.lanes:
                self._fold([lane[2]])
        for _, ports in self._flow.instances:
            for signal in ports.values():
                self._fold([signal])

    def _fold(self, operands):
        """Fold into an expression what fits; returns its length, about, and its depth."""
        length, depth, parts = 3 * len(operands), 0, []
        for operand in operands:
            before = None
            for part in operand:
                if part == before:
                    continue
                before = part
                if isinstance(part, Bits):
                    length += 4 + part.width // 4
                elif isinstance(part.of, int):
                    parts.append(part)
                else:
                    length += len(self._names.of.get(part.of, part.of)) + 4
        for part in sorted(parts, key=lambda part: self._sizes[part.of]):
            size, inner = self._sizes[part.of]
            fits = length + size <= _LONGEST and inner < _DEEPEST
            if part.of in self._folded or fits and self._is_foldable(part.of):
                self._folded.add(part.of)
                length, depth = length + size, max(depth, inner)
            else:
                length += 20
        return length, depth + 1

    def _is_foldable(self, number):
        """Used as a whole, and once, or so short that it may stand there twice: an inverted name."""
        made, users = self._flow.operations[number], self._flow.users[number]
        operand = made.operands[0]
        is_short = made.operator == "~" and len(operand) == 1 and isinstance(getattr(operand[0], "of", 0), str)
        is_whole = all(part.width == made.width for _, part in users)
        return is_whole and (len(users) == 1 or is_short)

    # Expressions: a text, and how it binds: 0 as a name does, 1 as a unary operator, else the operator

    def _signal(self, signal):
        if len(signal) == 1:
            return self._part(signal[0])
        runs = []
        for part in signal:
            if runs and runs[-1][0] == part:
                runs[-1][1] += 1
            else:
                runs.append([part, 1])
        words = []
        for part, count in runs:
            word = self._part(part)[0]
            words.append(f"{{{count}{{{word}}}}}" if count > 1 else word)
        return words[0] if len(words) == 1 else f"{{{', '.join(words)}}}", 0

    def _part(self, part):
        if isinstance(part, Bits):
            return constant(part.bits), 0
        if part.of in self._folded:
            return self._expression(part.of)
        return self._slice(part), 0

    def _slice(self, part):
        name = self._names.of[part.of]
        width = self._flow.operations[part.of].width if isinstance(part.of, int) else self._module.wires[part.of]
        if part.width == width:
            return name
        return f"{name}[{part.low}]" if part.width == 1 else f"{name}[{part.low + part.width - 1}:{part.low}]"

    def _expression(self, number):
        made = self._flow.operations[number]
        operator = made.operator
        if operator == "case":
            return self._choice(number, made)
        words = [self._signal(operand) for operand in made.operands]
        if operator == "?":
            condition, chosen, other = words
            return f"{_inside(condition, '!')} ? {_inside(chosen, '?')} : {_inside(other, ':')}", "?"
        if made.kind == "$memrd_v2":
            return f"{self._names.memories[operator]}[{words[0][0]}]", 0
        if len(words) == 1:
            return (f"{operator}{_inside(words[0], '~')}", "~" if operator == "~" else 1) if operator else words[0]
        words = [
            (f"$signed({text})", 0) if marked else (text, binds)
            for (text, binds), marked in zip(words, made.signed or (False, False), strict=True)
        ]
        first, second = words
        # In the order in which it is computed: a + b + c, but a + (b + c).
        left = first[0] if first[1] == operator in ASSOCIATIVE else _inside(first, operator)
        text = f"{left} {operator} {_inside(second, operator)}"
        is_number = operator not in ("<", "<=", ">", ">=")
        return (f"$unsigned({text})", 0) if any(made.signed) and is_number else (text, operator)

    def _choice(self, number, made):
        """A choice by one of several select bits, as a function: any of them may be 1, but never two."""
        default, values, select = made.operands
        if number not in self._functions:
            target = self._flow.targets.get(number)
            name = self._names.of[target[0].of] if target else self._names.of.get(number)
            self._functions[number] = self._names.free(f"select_{name or self._names.by_use(number)}")
        name = self._functions[number]
        return f"{name}({', '.join(self._signal(signal)[0] for signal in (default, values, select))})", 0

    def _function(self, number):
        made, name = self._flow.operations[number], self._functions[number]
        width, count = made.width, width_of(made.operands[2])
        lines = [
            f"  function {_range(width)}{name};",
            f"    input {_range(width)}mux_default;",
            f"    input {_range(width * count)}mux_values;",
            f"    input {_range(count)}mux_select;",
            "    (* parallel_case *)",
            "    case (1'b1)",
        ]
        for index in range(count):
            span = f"[{(index + 1) * width - 1}:{index * width}]" if width > 1 else f"[{index}]"
            lines.append(f"      mux_select{f'[{index}]' if count > 1 else ''}: {name} = mux_values{span};")
        return [*lines, f"      default: {name} = mux_default;", "    endcase", "  endfunction"]

    # The module

    def written(self):
        text, names = self._text(), self._names
        registers = {register.target: self._target(register) for register in self._flow.registers}
        return Written(text, Matches(registers, names.instances, names.memories))

    def _text(self):
        self._split_registers()
        body = [*self._operations(), *self._always(), *self._writes(), *self._instances()]
        attributes = [name for name in self._module.attributes if name not in _YOSYS_ATTRIBUTES]
        lines = [*(f"(* {name} *)" for name in attributes), f"module {self._module.name} ("]
        lines += [_ports(self._module, self._registers), ");", *self._declarations()]
        for number in self._functions:
            lines += self._function(number)
        return "\n".join([*lines, *body, "endmodule", ""])

    def _split_registers(self):
        """A net that registers drive as a whole is a register; else these have one of their own for their part."""
        driven = defaultdict(int)
        for register in self._flow.registers:
            driven[register.target.of] += register.target.width
        self._registers = {name for name, width in driven.items() if width == self._module.wires[name]}
        self._parts = {}
        for register in self._flow.registers:
            if register.target.of not in self._registers:
                self._parts[register.target] = self._names.free(f"{self._names.of[register.target.of]}_reg")

    def _target(self, register):
        return self._parts.get(register.target) or self._slice(register.target)

    def _declarations(self):
        numbers = filter(self._is_net, self._flow.operations)
        found = {self._names.of[number]: ("wire", self._flow.operations[number].width) for number in numbers}
        for name, width in self._module.wires.items():
            if name in self._names.of and name not in self._module.directions:
                kind = "reg" if name in self._registers else "wire"
                found[self._names.of[name]] = (f"(* keep *) {kind}" if name in self._module.kept else kind, width)
        for part, name in self._parts.items():
            found[name] = ("reg", part.width)
        lines = [f"  {kind} {_range(width)}{name};" for name, (kind, width) in sorted(found.items())]
        for name, (width, size) in self._module.memories.items():
            lines.append(f"  reg {_range(width)}{self._names.memories[name]} [{size - 1}:0];")
        return lines

    def _operations(self):
        lines = []
        for part, name in self._parts.items():
            lines += _wrapped(f"  assign {self._slice(part)} = {name};")
        for number in self._flow.operations:
            if number in self._folded:
                continue
            target = self._flow.targets.get(number)
            left = self._signal(target)[0] if target else self._names.of[number]
            lines += _wrapped(f"  assign {left} = {self._expression(number)[0]};")
            for part, signal in self._flow.slices.get(number, ()):
                lines += _wrapped(f"  assign {self._slice(part)} = {self._signal(signal)[0]};")
        return lines

    def _always(self):
        lines = []
        for control, registers in self._flow.controls.items():
            plain = [f"{self._target(register)} <= {self._signal(register.data)[0]};" for register in registers]
            events = f"{'posedge' if control.rising == '1' else 'negedge'} {self._signal(control.clock)[0]}"
            if control.is_asynchronous:
                clear = f"{'posedge' if control.clears_at == '1' else 'negedge'} {self._signal(control.clear)[0]}"
                events += f" or {clear}"
            lines.append(f"  always @({events})")
            enable = self._condition(control.enable, control.enables_at) if control.enable else None
            if not control.clear:
                if enable:
                    lines += _block(f"    if ({enable}) ", plain)
                elif len(plain) == 1:
                    lines += _wrapped(f"    {plain[0]}")
                else:
                    lines[-1] += " begin"
                    lines += [line for text in plain for line in _wrapped(f"    {text}")] + ["  end"]
                continue
            cleared = [f"{self._target(register)} <= {constant(register.cleared.bits)};" for register in registers]
            clear = self._condition(control.clear, control.clears_at)
            if control.enable_first:
                lines += [*_wrapped(f"    if ({enable}) begin"), *_block(f"      if ({clear}) ", cleared)]
                lines += [*_block("      else ", plain), "    end"]
            else:
                lines += _block(f"    if ({clear}) ", cleared)
                lines += _block(f"    else if ({enable}) " if enable else "    else ", plain)
        return lines

    def _condition(self, signal, value):
        text, binds = self._signal(signal)
        return text if value == "1" else f"!{_inside((text, binds), '~')}"

    def _writes(self):
        lines = []
        for write in self._flow.writes:
            name = self._names.memories[write.memory]
            address = self._signal(write.address)[0]
            edge = "posedge" if write.rising == "1" else "negedge"
            lines.append(f"  always @({edge} {self._signal(write.clock)[0]}) begin")
            whole = self._module.memories[write.memory][0]
            for low, width, enable in write.lanes:
                span = "" if width == whole else f"[{low + width - 1}:{low}]" if width > 1 else f"[{low}]"
                data = self._signal(cut(write.data, low, width))[0]
                assignment = f"{name}[{address}]{span} <= {data};"
                if enable == (Bits("1"),):
                    lines += _wrapped(f"    {assignment}")
                else:
                    lines += [*_wrapped(f"    if ({self._signal(enable)[0]})"), *_wrapped(f"      {assignment}")]
            lines.append("  end")
        return lines

    def _instances(self):
        lines = []
        for cell, ports in self._flow.instances:
            child = cell.kind[1:]
            names = port_names(self._design[child]) if child in self._design else {}
            lines.append(f"  {child} {self._names.instances[cell.name]} (")
            pins = [
                _wrapped(f"    .{names.get(port, port)}({self._signal(signal)[0]}),") for port, signal in ports.items()
            ]
            if pins:
                pins[-1][-1] = pins[-1][-1].removesuffix(",")
            lines += [line for pin in pins for line in pin]
            lines.append("  );")
        return lines


def _inside(word, outer):
    """An operand's text, in parentheses where it could be read in another way."""
    text, binds = word
    if binds == 0 or binds == "~" and outer != "~" or binds == "?" and outer == ":":
        return text
    if outer in ("?", ":") and binds != "?":
        return text
    return f"({text})"


def _block(opening, assignments):
    if len(assignments) == 1:
        return _wrapped(f"{opening}{assignments[0]}")
    indent = opening[: len(opening) - len(opening.lstrip())]
    lines = _wrapped(f"{opening}begin")
    for assignment in assignments:
        lines += _wrapped(f"{indent}  {assignment}")
    return [*lines, f"{indent}end"]


def _wrapped(line):
    """A line of Verilog as lines of at most ``MAX_LINE`` characters where it has spaces to break at."""
    lines, indent = [], " " * (len(line) - len(line.lstrip()) + 4)
    while len(line) > MAX_LINE:
        place = line.rfind(" ", len(indent) + 1, MAX_LINE)
        place = place if place > 0 else line.find(" ", MAX_LINE)
        if place < 0:
            break
        lines.append(line[:place])
        line = indent + line[place + 1 :]
    return [*lines, line]
