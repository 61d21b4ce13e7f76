"""Proves that emitted Verilog computes what Yosys had made of the design, module by module.

Both are made combinational: registers, memories and instances become inputs for what they give and outputs for what
they are given, matched by the names that the writer of the Verilog reports. Wrong names cannot lead to a wrong proof:
they only make one fail. ABC then proves that all outputs are equal.
"""

import re
import tempfile
from pathlib import Path

from hw.emit.naming import port_names
from hw.emit.netlist import Bits, Cell, Part, cut, read_rtlil, width_of
from hw.emit.yosys import run_abc, run_yosys

_MEMORIES = ["opt_mem_priority", "memory_share -nosat -nowiden", "memory_collect", "dffunmap"]
_TO_GATES = ["setundef -undriven -zero", "opt_expr", "wreduce", "simplemap", "techmap", "opt_expr", "aigmap", "clean"]
_OF_CLOCKED_READS = {"RD_CLK", "RD_EN", "RD_ARST", "RD_SRST", "RD_CLK_POLARITY"}  # there are none


def prove(
    netlist, matches, verilog, seconds=60, undecided=lambda module, right, left: None, progress=lambda stage: None
):
    """``{module: True, False or None}``: proved equal, or they differ, or it is not known after so many seconds.

    ``netlist`` and ``matches`` are those of an :class:`~hw.emit.emission.Emission`, ``verilog`` is the text of all its
    modules. What is not known is asked of ``undecided(module, graph, graph)``, with the paths of two and-inverter
    graphs.
    """
    progress("reading")
    with tempfile.TemporaryDirectory(prefix="proof-") as name:
        folder = Path(name)
        (folder / "given.il").write_text(netlist)
        (folder / "given.v").write_text(verilog)
        run_yosys(folder, ["read_rtlil given.il", *_MEMORIES, "write_rtlil gold.il"])
        run_yosys(folder, ["read_verilog given.v", "proc", *_MEMORIES, "write_rtlil gate.il"])
        gold, gate = (
            {module.name: module for module in read_rtlil((folder / f"{side}.il").read_text())}
            for side in ("gold", "gate")
        )
        verdicts, texts, pairs = {}, [], []
        for number, (module, right) in enumerate(gold.items()):
            if "blackbox" in right.attributes:
                continue
            sides = _Combinational(right, gold, matches[module]), _Combinational(gate.get(module), gate)
            verdicts[module] = sides[0].shape == sides[1].shape
            if verdicts[module] and sides[0].has_outputs:
                pairs.append((module, number))
                texts += [side.text(f"{name}_{number}") for side, name in zip(sides, ("gold", "gate"), strict=True)]
        if pairs:
            (folder / "both.il").write_text("".join(texts))
            # As one file for all, since Yosys checks the whole design at every command.
            run_yosys(folder, ["read_rtlil both.il", *_TO_GATES, "write_blif both.blif"])
            for model in re.split(r"^(?=\.model )", (folder / "both.blif").read_text(), flags=re.M)[1:]:
                (folder / f"{model.split(maxsplit=2)[1]}.blif").write_text(model)
            for module, number in pairs:
                progress(module)
                gold, gate = (_graph(folder, f"{side}_{number}") for side in ("gold", "gate"))
                verdict = _compare(gold, gate, seconds)
                verdicts[module] = undecided(module, gold, gate) if verdict is None else verdict
        return verdicts


def _graph(folder, name):
    run_abc(folder, f"read_blif {name}.blif; strash; write_aiger {name}.aig")
    return folder / f"{name}.aig"


def _compare(gold, gate, seconds):
    output = run_abc(gold.parent, f"&read {gold.name}; &cec -T {seconds} {gate.name}")
    words = {"equivalent": True, "NOT EQUIVALENT": False, "UNDECIDED": None}
    found = re.search(r"Networks are (equivalent|NOT EQUIVALENT|UNDECIDED)", output)
    if not found:
        raise RuntimeError(f"ABC stopped: {output[-300:]}")
    return words[found[1]]


def differ_in_simulation(gold, gate, frames=1000):
    """Whether random patterns, 2048 a frame, show that two combinational and-inverter graphs differ."""
    output = run_abc(gold.parent, f"miter {gold.name} {gate.name}; sim -W 64 -F {frames}")
    if "asserted output" in output:
        return True
    if "did not assert the outputs" not in output:
        raise RuntimeError(f"ABC stopped: {output[-300:]}")
    return False


class _Combinational:
    """A module without registers, memories and instances: RTLIL text, and its ``shape``, which equal modules share."""

    def __init__(self, module, design, matches=None):
        self._design, self._matches = design, matches
        self._ports, self._joins, self._cells, self._parameters = {}, [], [], []
        self._module = module
        if module is None:
            return
        self._used = {part.of for _, right in module.connections for part in right if isinstance(part, Part)}
        for cell in module.cells:
            signals = [signal for port, signal in cell.ports.items() if port != "Q"]
            self._used |= {part.of for signal in signals for part in signal if isinstance(part, Part)}
        names = port_names(module) if matches else {}
        for name, direction in module.directions.items():
            signal = (Part(name, 0, module.wires[name]),)
            self._port(f"port {names.get(name[1:], name[1:])}", direction, signal)
        for cell in module.cells:
            if cell.kind[0] != "$":
                self._instance(cell)
            elif cell.kind == "$dff":
                self._register(cell)
            elif cell.kind == "$mem_v2":
                self._memory(cell)
            else:
                self._cells.append(cell)

    @property
    def shape(self):
        return sorted(self._ports.items()), sorted(self._parameters, key=repr)

    @property
    def has_outputs(self):
        return any(direction == "output" for direction, _ in self._ports.values())

    def _port(self, name, direction, signal):
        name = "\\" + name.replace(" ", "$")
        if name in self._ports:
            raise ValueError(f"two drivers of {name}")
        self._ports[name] = direction, width_of(signal)
        port = (Part(name, 0, width_of(signal)),)
        self._joins.append((signal, port) if direction == "input" else (port, signal))

    def _register(self, cell):
        position = width_of(cell.ports["Q"])
        edge = "rising" if cell.parameters["CLK_POLARITY"] == "1" else "falling"
        for part in cell.ports["Q"]:
            position -= part.width
            if part.of[0] == "$" and part.of not in self._used:
                continue  # what Yosys makes of a write to a memory
            name, low = part.of[1:], part.low
            if self._matches:
                name, low = re.match(r"(\w+)(?:\[(?:\d+:)?(\d+)\])?", self._matches.registers[part]).groups(default=0)
            for bit in range(part.width):
                key = f"{name} {int(low) + bit}"
                self._port(f"register {key}", "input", (Part(part.of, part.low + bit, 1),))
                self._port(f"next {key}", "output", cut(cell.ports["D"], position + bit, 1))
                self._port(f"{edge} {key}", "output", cell.ports["CLK"])

    def _memory(self, cell):
        name = cell.parameters["MEMID"].strip('"').lstrip("\\")
        name = self._matches.memories[name] if self._matches else name
        without = _OF_CLOCKED_READS | {"MEMID"}
        self._parameters.append(sorted(item for item in cell.parameters.items() if item[0] not in without))
        ports = cell.ports
        address, bits = int(cell.parameters["ABITS"]), int(cell.parameters["WIDTH"])
        enables = [cut(ports["WR_EN"], low, bits) for low in range(0, width_of(ports["WR_EN"]), bits)]
        written = tuple(part for enable in reversed(enables) for part in self._gate("$reduce_or", 1, enable) * address)
        ports["WR_ADDR"] = self._gate("$and", width_of(written), ports["WR_ADDR"], written)
        ports["WR_DATA"] = self._gate("$and", width_of(ports["WR_EN"]), ports["WR_DATA"], ports["WR_EN"])
        for port, signal in ports.items():
            if port not in _OF_CLOCKED_READS:
                self._port(f"memory {name} {port}", "input" if port == "RD_DATA" else "output", signal)

    def _gate(self, kind, width, *operands):
        """The result of a further gate: where nothing is written, address and data do not matter."""
        cell = Cell(kind, f"$further{len(self._cells)}", {"Y_WIDTH": width})
        for port, operand in zip("AB", operands, strict=False):
            cell.parameters |= {f"{port}_SIGNED": 0, f"{port}_WIDTH": width_of(operand)}
            cell.ports[port] = operand
        self._module.wires[f"{cell.name}y"] = width
        cell.ports["Y"] = (Part(f"{cell.name}y", 0, width),)
        self._cells.append(cell)
        return cell.ports["Y"]

    def _instance(self, cell):
        child = self._design[cell.kind[1:]]
        names = port_names(child) if self._matches else {}
        name = self._matches.instances[cell.name] if self._matches else cell.name[1:]
        self._parameters.append((name, child.name))
        for port, signal in cell.ports.items():
            is_output = child.directions[f"\\{port}"] == "output"
            self._port(f"instance {name} {names.get(port, port)}", "input" if is_output else "output", signal)

    def text(self, name):
        lines = [f"module \\{name}"]
        lines += [f"  wire width {width} {wire}" for wire, width in self._module.wires.items()]
        for number, (port, (direction, width)) in enumerate(sorted(self._ports.items()), start=1):
            lines.append(f"  wire width {width} {direction} {number} {port}")
        for cell in self._cells:
            lines.append(f"  cell {cell.kind} {cell.name}")
            lines += [f"    parameter \\{parameter} {value}" for parameter, value in cell.parameters.items()]
            lines += [f"    connect \\{port} {_rtlil(signal)}" for port, signal in cell.ports.items()]
            lines.append("  end")
        for left, right in [*self._module.connections, *self._joins]:
            lines.append(f"  connect {_rtlil(left)} {_rtlil(right)}")
        return "\n".join([*lines, "end", ""])


def _rtlil(signal):
    words = [
        f"{part.width}'{part.bits}" if isinstance(part, Bits) else f"{part.of} [{part.low + part.width - 1}:{part.low}]"
        for part in signal
    ]
    return f"{{ {' '.join(words)} }}"
