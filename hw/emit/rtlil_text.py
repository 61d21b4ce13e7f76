"""Rewrites the RTLIL text that Amaranth writes: no power-up values, plain names of modules, ports in order."""

import itertools
import re

_WIRE = re.compile(r"^  wire width (\d+) (input|output) \d+ +((?:signed )?)(\\\S+)$", re.MULTILINE)


def normalise(text, port_order):
    """Make Amaranth's RTLIL plain: no power-up values, plain names of modules, clk and rst first and only where used.

    Returns ``{module name: text}``, the top first, and the set of clocking ports that the top has.
    """
    text = re.sub(r"^ *attribute \\(init|generator|top|src|full_case) .*\n", "", text, flags=re.MULTILINE)
    # Amaranth calls the submodules of a module that are no blocks "module.submodule".
    for name in re.findall(r"^module (\\\S+)", text, re.MULTILINE):
        plain = re.sub(r"\W", "_", name[1:])
        text = re.sub(rf"{re.escape(name)}(?=\s)", rf"\\{plain}", text)
    modules = {}
    for module in re.split(r"(?=^module )", text, flags=re.MULTILINE)[1:]:
        name = re.match(r"module \\(\S+)", module)[1]
        if not modules:
            module = _without_unused_clocking(module)
        modules[name] = _with_ports_in_order(module, port_order)
    top = next(iter(modules.values()))
    return modules, {match[4][1:] for match in _WIRE.finditer(top)} & {"clk", "rst"}


def _without_unused_clocking(text):
    for port in ("clk", "rst"):
        if len(re.findall(rf"\\{port}(?=\s)", text)) == 1:  # nothing but its declaration
            text = re.sub(rf"^  wire width 1 input \d+ +\\{port}\n", "", text, flags=re.MULTILINE)
    return text


def _with_ports_in_order(text, port_order):
    rank = {name: index for index, name in enumerate(["clk", "rst", *port_order], start=1)}
    count = itertools.count(len(rank) + 1)

    def renumber(match):
        return f"  wire width {match[1]} {match[2]} {rank.get(match[4][1:]) or next(count)} {match[3]}{match[4]}"

    return _WIRE.sub(renumber, text)


def black_box(text):
    """Keep a module's ports and drop its body."""
    name = re.search(r"^module (\S+)", text, re.MULTILINE)[1]
    wires = "\n".join(match[0] for match in _WIRE.finditer(text))
    return f"attribute \\blackbox 1\nmodule {name}\n{wires}\nend\n"
