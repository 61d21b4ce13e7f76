"""A mapped netlist as Yosys writes it in JSON, and the small changes that timing repair makes to it."""

import copy
import json
import re
from collections import Counter


class Netlist:
    """The modules of a mapped design."""

    def __init__(self, text, library):
        self.modules = json.loads(text)["modules"]
        self.library = library
        self._last_net = {}

    def copy(self, module):
        """A netlist of which one module may be changed without changing this one's."""
        other = copy.copy(self)
        content = self.modules[module]
        own = {
            "cells": {
                name: {**cell, "connections": dict(cell["connections"])} for name, cell in content["cells"].items()
            },
            "ports": {name: dict(port) for name, port in content["ports"].items()},
            "netnames": {name: dict(net) for name, net in content["netnames"].items()},
        }
        other.modules = {**self.modules, module: {**content, **own}}
        other._last_net = dict(self._last_net)
        return other

    def is_output(self, cell, pin):
        """Whether a pin of a cell, black box or module instance is an output."""
        kind = cell["type"]
        if kind in self.library.cells:
            return pin in self.library.cells[kind].functions
        if kind not in self.modules:  # a memory that Yosys inferred, boxed with the pins of its own cell
            return pin == "RD_DATA"
        return self.modules[kind]["ports"][pin]["direction"] == "output"

    def verilog(self):
        """Plain structural Verilog for a timing analyser: modules, cells and nets; black boxes are empty."""
        return "".join(_module_text(name, module) for name, module in self.modules.items())

    def cells_below(self, top):
        """``(scope, instance, type, {pin: net})`` of every library cell, with the nets' names in :meth:`verilog`.

        A scope is the tuple of the instances below ``top`` that the cell is in.
        """
        names = {module: net_names(self.modules[module]) for module in self.modules_below(top)}

        def walk(module, scope):
            for label, cell in self.modules[module]["cells"].items():
                if cell["type"] in self.library.cells:
                    pins = {pin: names[module][bits[0]] for pin, bits in cell["connections"].items() if bits}
                    yield scope, label, cell["type"], pins
                elif cell["type"] in names:
                    yield from walk(cell["type"], (*scope, label))

        return walk(top, ())

    def alias(self, module, nets):
        """Let every net that is another net or a constant (``{net: what it is}``) be that."""
        if not nets:
            return
        content = self.modules[module]
        for cell in content["cells"].values():
            for pin, bits in cell["connections"].items():
                if not self.is_output(cell, pin):
                    cell["connections"][pin] = [nets.get(bit, bit) for bit in bits]
        for group in (*content["ports"].values(), *content["netnames"].values()):
            group["bits"] = [nets.get(bit, bit) for bit in group["bits"]]

    def add_cell(self, module, name, kind, connections):
        """A new cell of the library."""
        self.modules[module]["cells"][name] = {
            "hide_name": 0,
            "type": kind,
            "parameters": {},
            "attributes": {},
            "connections": connections,
        }

    def modules_below(self, top):
        """The modules that make up a design, leaves first; without library cells and black boxes."""
        order = []

        def visit(name):
            for kind in self.kinds(name):
                if kind in self.modules and kind not in order and not self._is_black_box(kind):
                    visit(kind)
            order.append(name)

        visit(top)
        return order

    def _is_black_box(self, module):
        return int(self.modules[module]["attributes"].get("blackbox", "0"), 2)

    def kinds(self, module):
        """How many cells of each type a module holds."""
        return Counter(cell["type"] for cell in self.modules[module]["cells"].values())

    def new_net(self, module):
        """The number of a net that the module does not use yet."""
        if module not in self._last_net:
            content = self.modules[module]
            groups = [group["bits"] for group in (*content["ports"].values(), *content["netnames"].values())]
            groups += [bits for cell in content["cells"].values() for bits in cell["connections"].values()]
            self._last_net[module] = max((bit for bits in groups for bit in bits if isinstance(bit, int)), default=1)
        self._last_net[module] += 1
        return self._last_net[module]


def _escaped(name):
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"\\{name} "


def net_names(module):
    """``{bit: name}`` of the nets of a module in Verilog: a port's name, or ``n`` and the bit's number."""
    nets = {"0": "1'b0", "1": "1'b1", "x": "1'b0", "z": "1'bz"}
    for port, content in module["ports"].items():
        for index, bit in enumerate(content["bits"]):
            # A net is called after the input that it is, or after the first output.
            if content["direction"] != "output" or bit not in nets:
                nets[bit] = _port_bit(port, content, index)
    for cell in module["cells"].values():
        for bits in cell["connections"].values():
            nets.update({bit: f"n{bit}" for bit in bits if bit not in nets})
    return nets


def _port_bit(port, content, index):
    return f"{_escaped(port)}[{index}]" if len(content["bits"]) > 1 else _escaped(port)


def _module_text(name, module):
    nets, aliases, declarations = net_names(module), [], []
    for port, content in module["ports"].items():
        width = len(content["bits"])
        span = f"[{width - 1}:0] " if width > 1 else ""
        declarations.append(f"  {content['direction']} {span}{_escaped(port)};\n")
        for index, bit in enumerate(content["bits"]):
            text = _port_bit(port, content, index)
            if content["direction"] == "output" and nets[bit] != text:
                aliases.append(f"  assign {text} = {nets[bit]};\n")
    at_ports = {bit for content in module["ports"].values() for bit in content["bits"]}
    declarations += [f"  wire {net};\n" for bit, net in nets.items() if isinstance(bit, int) and bit not in at_ports]
    cells = []
    for label, cell in module["cells"].items():
        pins = []
        for pin, bits in cell["connections"].items():
            names = [nets[bit] for bit in reversed(bits)]
            pins.append(f".{_escaped(pin)}({names[0] if len(names) == 1 else '{' + ', '.join(names) + '}'})")
        cells.append(f"  {_escaped(cell['type'])} {_escaped(label)} ({', '.join(pins)});\n")
    ports = ", ".join(map(_escaped, module["ports"]))
    return f"module {_escaped(name)} ({ports});\n{''.join(declarations + aliases + cells)}endmodule\n"
