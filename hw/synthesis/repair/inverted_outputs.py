"""Inverted (QN) outputs of flip-flops in place of inverters before and behind them.

Neither Yosys nor ABC uses that output. A flip-flop may as well store the complement of its value, if its loads move to
the other output: then an inverter that only feeds a flip-flop is removed, and an AND there becomes a NAND, which is
smaller. After that an inverter behind a flip-flop is removed, if its few loads can be driven by the other output.
"""

from functools import cached_property

MOST_LOADS = 8  # of an inverter that is removed; one with more is there for its strength


class InvertedOutputs:
    """What a library offers for this: flip-flops with two outputs, and gates that have a smaller inverted form."""

    def __init__(self, library):
        self._library = library

    def use(self, netlist, module):
        """Change the flip-flops of a module, and the gates before and behind them, where that saves area."""
        cells = netlist.modules[module]["cells"]
        registers = [name for name, cell in cells.items() if cell["type"] in self._flip_flops]
        if registers:
            self._store_inverted(netlist, module, registers)
            self._drop_inverters(netlist, module, registers)

    @cached_property
    def _flip_flops(self):
        """``{cell: (data pin, output, inverted output)}`` of the flip-flops without set, reset and the like."""
        found = {}
        for name, cell in self._library.cells.items():
            rules, outputs = dict(cell.state), {function: pin for pin, function in cell.functions.items()}
            is_plain = set(rules) == {"next_state", "clocked_on"} and rules["next_state"] in cell.inputs
            if is_plain and set(outputs) == set(cell.state_names):
                held, inverse = cell.state_names
                found[name] = rules["next_state"], outputs[held], outputs[inverse]
        return found

    @cached_property
    def _inverters(self):
        return {name for name, cell in self._gates() if cell.truth(*cell.functions) == (1, 0)}

    @cached_property
    def _smaller_inverted(self):
        """``{gate: the smallest gate of the inverted function, with the same input pins}``, if that is smaller."""
        smallest = {}
        for name, cell in self._gates():
            ((_, table),) = cell.behaviour[1]
            key = cell.behaviour[0], table
            if cell.usable and (key not in smallest or cell.area < self._library.cells[smallest[key]].area):
                smallest[key] = name
        found = {}
        for name, cell in self._gates():
            ((_, table),) = cell.behaviour[1]
            other = smallest.get((cell.behaviour[0], tuple(1 - bit for bit in table)))
            if other is not None and self._library.cells[other].area < cell.area:
                found[name] = other
        return found

    def _gates(self):
        """The gates with one output."""
        for name, cell in self._library.cells.items():
            if not cell.storage and cell.behaviour is not None and len(cell.functions) == 1 and cell.area > 0:
                yield name, cell

    def _store_inverted(self, netlist, module, registers):
        cells = netlist.modules[module]["cells"]
        drivers, loads = _drivers_and_loads(netlist, module)
        for name in registers:
            data, held, inverse = self._flip_flops[cells[name]["type"]]
            pins = cells[name]["connections"]
            driver = drivers.get(pins[data][0])
            if driver is None or loads[pins[data][0]] != 1:
                continue
            kind = cells[driver]["type"]
            if kind in self._inverters:
                pins[data] = next(cells[driver]["connections"][pin] for pin in self._library.cells[kind].inputs)
                del cells[driver]
            elif kind in self._smaller_inverted:
                other = self._smaller_inverted[kind]
                old, new = (next(iter(self._library.cells[gate].functions)) for gate in (kind, other))
                connections = cells[driver]["connections"]
                connections[new] = connections.pop(old)
                cells[driver]["type"] = other
            else:
                continue
            exchanged = {to: pins.pop(pin) for pin, to in ((held, inverse), (inverse, held)) if pin in pins}
            pins.update(exchanged)

    def _drop_inverters(self, netlist, module, registers):
        cells = netlist.modules[module]["cells"]
        _, loads = _drivers_and_loads(netlist, module)
        other_output = {}  # {net of an output: (flip-flop, its other output)}
        for name in registers:
            _, held, inverse = self._flip_flops[cells[name]["type"]]
            pins = cells[name]["connections"]
            for pin, other in ((held, inverse), (inverse, held)):
                if pin in pins:
                    other_output[pins[pin][0]] = name, other
        aliases = {}
        for name in [name for name, cell in cells.items() if cell["type"] in self._inverters]:
            kind = self._library.cells[cells[name]["type"]]
            (source,), (inverted,) = (cells[name]["connections"][pin] for pin in (*kind.inputs, *kind.functions))
            if source in other_output and loads.get(inverted, 0) <= MOST_LOADS:
                register, pin = other_output[source]
                pins = cells[register]["connections"]
                if pin not in pins:
                    pins[pin] = [netlist.new_net(module)]
                aliases[inverted] = pins[pin][0]
                del cells[name]
        netlist.alias(module, aliases)


def _drivers_and_loads(netlist, module):
    """``({net: the cell that drives it}, {net: pins and ports that read it})``."""
    content = netlist.modules[module]
    drivers, loads = {}, {}
    for name, cell in content["cells"].items():
        for pin, bits in cell["connections"].items():
            if netlist.is_output(cell, pin):
                drivers |= dict.fromkeys(bits, name)
            else:
                for bit in bits:
                    loads[bit] = loads.get(bit, 0) + 1
    for port in content["ports"].values():
        if port["direction"] != "input":
            for bit in port["bits"]:
                loads[bit] = loads.get(bit, 0) + 1
    return drivers, loads
