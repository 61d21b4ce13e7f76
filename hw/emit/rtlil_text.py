"""Rewrites the RTLIL text that Amaranth writes so that the Verilog made from it has plain names and no power-up values."""

import itertools
import re
from collections import Counter

from hw.emit.verilog_subset import RESERVED

_WIRE = re.compile(r"^  wire width (\d+) (input|output) \d+ +((?:signed )?)(\\\S+)$", re.MULTILINE)


def normalise(text, port_order):
    """Make Amaranth's RTLIL plain: no power-up values, plain identifiers, clk and rst first and only where used.

    Returns ``{module name: text}``, the top first, and the set of clocking ports that the top has.
    """
    text = re.sub(r"^ *attribute \\(init|generator|top|src|full_case) .*\n", "", text, flags=re.MULTILINE)
    # Amaranth calls the submodules of a module that are no blocks "module.submodule".
    for name in re.findall(r"^module (\\\S+)", text, re.MULTILINE):
        text = re.sub(rf"{re.escape(name)}(?=\s)", lambda match, plain=re.sub(r"[^\w\\]", "_", name): plain, text)
    modules = {}
    for module in re.split(r"(?=^module )", text, flags=re.MULTILINE)[1:]:
        name = re.match(r"module \\(\S+)", module)[1]
        if not modules:
            module = _without_unused_clocking(module)
        modules[name] = _normalise_module(module, port_order)
    top = next(iter(modules.values()))
    return modules, {match[4][1:] for match in _WIRE.finditer(top)} & {"clk", "rst"}


def _without_unused_clocking(text):
    for port in ("clk", "rst"):
        if len(re.findall(rf"\\{port}(?=\s)", text)) == 1:  # nothing but its declaration
            text = re.sub(rf"^  wire width 1 input \d+ +\\{port}\n", "", text, flags=re.MULTILINE)
    return text


def _normalise_module(text, port_order):
    text = _instance_nets(_plain_names(text))
    rank = {name: index for index, name in enumerate(["clk", "rst", *port_order], start=1)}
    count = itertools.count(len(rank) + 1)

    def renumber(match):
        return f"  wire width {match[1]} {match[2]} {rank.get(match[4][1:]) or next(count)} {match[3]}{match[4]}"

    return _WIRE.sub(renumber, text)


# Not what is in a string, such as the name of a memory at its ports.
_NAME = re.compile(r"(?<![\"\\])\\[^\s]+")


def _plain_names(module):
    """Replace what Verilog would have to escape in public names, without making two names one."""
    names = dict.fromkeys(_NAME.findall(module))
    taken = {name for name in names if re.fullmatch(r"\\\w+", name) and name[1:] not in RESERVED}
    table = {}
    for name in names:
        if name in taken:
            continue
        plain = "\\" + re.sub(r"_{3,}", "__", re.sub(r"\W", "_", name[1:])).rstrip("_")
        plain += "_net" if plain[1:] in RESERVED else ""
        candidate, count = plain, 2
        while candidate in taken:
            candidate, count = f"{plain}_{count}", count + 1
        taken.add(candidate)
        table[name] = candidate
    return _NAME.sub(lambda match: table.get(match[0], match[0]), module) if table else module


_INSTANCE = re.compile(r"^  cell (\\\S+) (\\\S+)\n((?:    connect .*\n)*)  end$", re.MULTILINE)


def _instance_nets(module):
    """Name the nets at an instance's ports ``instance_port``; Amaranth has them as ``port`` and ``port_17``."""
    ports = {match[4] for match in _WIRE.finditer(module)}
    taken = set(re.findall(r"\\[^\s]+", module))
    instances = [
        (instance, re.findall(r"connect (\\\S+) (\\\S+)(?: \[[\d:]+\])?$", connections, re.MULTILINE))
        for _, instance, connections in _INSTANCE.findall(module)
    ]
    uses = Counter(net for _, connections in instances for _, net in connections)
    table = {}
    for instance, connections in instances:
        for port, net in connections:
            name = f"{instance}_{port[1:]}"
            # A plain name at several instances is a signal that the parent named itself.
            of_the_port = re.fullmatch(re.escape(port) + r"_\d+", net) or net == port and uses[net] == 1
            if of_the_port and net not in ports and net not in table and name not in taken:
                table[net] = name
                taken.add(name)
    # Not the port in "connect port net", which belongs to the child.
    return (
        re.sub(r"(?<!    connect )\\[^\s]+", lambda match: table.get(match[0], match[0]), module) if table else module
    )


def black_box(text):
    """Keep a module's ports and drop its body."""
    name = re.search(r"^module (\S+)", text, re.MULTILINE)[1]
    wires = "\n".join(match[0] for match in _WIRE.finditer(text))
    return f"attribute \\blackbox 1\nmodule {name}\n{wires}\nend\n"
