"""Resynthesis of a region of a mapped netlist by ABC, which is given arrival and required times at the region's ports.

Yosys' own interface to ABC cannot tell that: to ABC every input of a piece of logic then arrives at once, be it a
register or the end of a chain of adder cells.
"""

import subprocess

from hw.emit.yosys import abc_program


class Region:
    """Some gates of one module of a :class:`hw.synthesis.netlist.Netlist`, as a network of its own."""

    def __init__(self, netlist, module, names):
        self._netlist, self._name = netlist, module
        self._cells = netlist.modules[module]["cells"]
        self._names = sorted(names)
        self._inputs, self._outputs = self._boundary()

    def _boundary(self):
        """The nets that come in and those that go out."""
        inside, driven, read = set(self._names), set(), set()
        outside = set()
        for port in self._netlist.modules[self._name]["ports"].values():
            if port["direction"] != "input":
                outside.update(port["bits"])
        for name, cell in self._cells.items():
            for pin, bits in cell["connections"].items():
                if not self._netlist.is_output(cell, pin):
                    (read if name in inside else outside).update(bits)
                elif name in inside:
                    driven.update(bits)
        return sorted(read - driven, key=str), sorted(driven & outside, key=str)

    def blif(self, arrivals, requireds):
        """The network for ABC, with arrival and required times in ps of the nets of which they are known."""
        signals = [f"n{bit}" for bit in self._inputs if isinstance(bit, int)]
        lines = [".model region", ".inputs " + " ".join(signals)]
        lines += [".outputs " + " ".join(f"n{bit}" for bit in self._outputs), ".default_input_arrival 0 0"]
        for directive, nets, times in (
            ("input_arrival", self._inputs, arrivals),
            ("output_required", self._outputs, requireds),
        ):
            lines += [f".{directive} n{bit} {times[bit]:.0f} {times[bit]:.0f}" for bit in nets if bit in times]
        for constant in self._inputs:
            if not isinstance(constant, int):
                lines.append(f".names n{constant}" + ("\n1" if constant == "1" else ""))
        for name in self._names:
            cell = self._cells[name]
            pins = " ".join(f"{pin}=n{bits[0]}" for pin, bits in sorted(cell["connections"].items()))
            lines.append(f".gate {cell['type']} {pins}")
        return "\n".join([*lines, ".end\n"])

    def replace(self, blif, mark):
        """Put ABC's mapped network in the gates' place; ``mark`` begins the names of the new cells."""
        for name in self._names:
            del self._cells[name]
        nets = {f"n{bit}": bit for bit in (*self._inputs, *self._outputs)}
        gates, aliases = _parse(blif)

        def net(signal):
            while signal in aliases:
                signal = aliases[signal]
            if signal in ("0", "1"):
                return signal
            if signal not in nets:
                nets[signal] = self._netlist.new_net(self._name)
            return nets[signal]

        for number, (kind, pins) in enumerate(gates):
            self._netlist.add_cell(self._name, f"{mark}{number}", kind, {pin: [net(pins[pin])] for pin in pins})
        self._netlist.alias(self._name, {nets[signal]: net(signal) for signal in aliases if signal in nets})


def _parse(blif):
    """``([(cell, {pin: signal})], {signal: the signal or constant that it is})`` of a mapped network."""
    gates, aliases = [], {}
    lines = blif.replace("\\\n", " ").splitlines()
    for words, following in zip(map(str.split, lines), [*lines[1:], ""], strict=True):
        if words[:1] == [".gate"]:
            gates.append((words[1], dict(word.split("=") for word in words[2:])))
        elif words[:1] == [".names"] and len(words) == 2:
            aliases[words[1]] = "1" if following.split() == ["1"] else "0"
        elif words[:1] == [".names"]:
            if len(words) != 3 or following.split() != ["1", "1"]:
                raise ValueError(f"ABC left a node without a gate: {' '.join(words)}")
            aliases[words[2]] = words[1]
    return gates, aliases


def run_abc(folder, blif, script):
    """Map a network with the gates of ``cells.lib`` in a folder; returns the mapped network, None if ABC fails."""
    (folder / "region.blif").write_text(blif)
    result = folder / "region_mapped.blif"
    result.unlink(missing_ok=True)
    commands = f"read_lib -w cells.lib; read_blif -n region.blif; {script}; write_blif {result.name}"
    run = subprocess.run(
        [abc_program(), "-c", commands], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    (folder / "abc.log").write_text(run.stdout + run.stderr)
    return result.read_text() if result.exists() else None


def gates_of(names, netlist, module):
    """Those of some cells that are gates of one output, which :class:`Region` can take."""
    cells, library = netlist.modules[module]["cells"], netlist.library.cells

    def is_gate(name):
        kind = library.get(cells[name]["type"]) if name in cells else None
        return kind is not None and not kind.storage and kind.behaviour is not None and len(kind.functions) == 1

    return list(filter(is_gate, names))
