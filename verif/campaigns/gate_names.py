"""Names for the gates of emitted Verilog that outlive an edit: the operation, and the signal that it computes."""

import json
import re

__all__ = ["gate_names"]

_UNNAMED = re.compile(r"\$|_\d+_$")


def gate_names(path):
    """``{(module, cell): name}`` from a JSON netlist of Yosys: ``and to sum[3]``, or an instance's own name.

    The signal is the nearest one with a name that the gate drives, itself or through other gates.
    """
    names = {}
    for module, content in json.loads(path.read_text())["modules"].items():
        signals, readers = _signals(content), _readers(content)
        for cell, body in content["cells"].items():
            is_gate = body["type"].startswith("$")
            names[module, cell] = _gate(body, signals, readers) if is_gate else cell
    return names


def _signals(module):
    """``{bit: name[index]}`` of the bits that have a name; that of the narrowest signal where they have several."""
    signals = {}
    for name, net in sorted(module["netnames"].items(), key=lambda item: (-len(item[1]["bits"]), item[0])):
        if not _UNNAMED.match(name):
            for index, bit in enumerate(net["bits"]):
                signals[bit] = f"{name}[{index}]" if len(net["bits"]) > 1 else name
    return signals


def _readers(module):
    readers = {}
    for cell in module["cells"].values():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                for bit in bits:
                    readers.setdefault(bit, []).append(cell)
    return readers


def _outputs(cell):
    return [
        bit for port, bits in cell["connections"].items() if cell["port_directions"][port] == "output" for bit in bits
    ]


def _gate(cell, signals, readers):
    operation = cell["type"].removeprefix("$")
    level, seen = _outputs(cell), set()
    while level:
        named = sorted(signals[bit] for bit in level if bit in signals)
        if named:
            return f"{operation} to {named[0]}"
        seen.update(level)
        following = [bit for old in level for reader in readers.get(old, ()) for bit in _outputs(reader)]
        level = [bit for bit in dict.fromkeys(following) if bit not in seen]
    return f"{operation} to nothing"
