"""Two circuits with the ports of a block side by side, and a proof by ABC that they answer alike."""

import re

from hw.emit.contract import flat_ports
from verif.formal import solver
from verif.formal.netlist import run_yosys

__all__ = ["answer_alike", "clocking"]

_PASSES = [
    "hierarchy -check -top checker",
    "proc",
    "flatten",
    "opt_expr",
    "opt_clean",
    "memory -nordff",
    "opt_clean",
    "setundef -zero -init",
    "opt",
    "techmap",
    "simplemap",
    "opt -full",
    "setundef -zero",
    "dffunmap",
    "aigmap",
    "opt_clean",
    "write_aiger -zinit -symbols checker.aig",
]


def clocking(verilog, top):
    """Which of clk and rst a module of Verilog has."""
    head = re.search(rf"^module {top}\s*\(.*?^endmodule", verilog, re.M | re.S)[0]
    return [name for name in ("clk", "rst") if re.search(rf"\binput +(?:wire +)?{name}\b", head)]


def answer_alike(folder, block, reads, circuits, clocking, timeout):
    """True if two circuits are proved to answer alike, False if they are proved to differ, None if time was too short.

    All registers start at zero, reset comes first and again at will, inputs are free. Compared are every ready, valid
    and plain output, and payloads while they are valid. ``circuits`` are two ``(module, {further pin: value})``, which
    the Yosys commands ``reads`` bring in.
    """
    (folder / "checker.v").write_text(_checker(block, circuits, clocking))
    run_yosys(folder, [*reads, "read_verilog checker.v", *_PASSES])
    return solver.prove(folder / "checker.aig", timeout).holds


def _checker(block, circuits, clocking):
    ports = {name: (direction, f"[{len(value) - 1}:0]") for name, (direction, value) in flat_ports(block).items()}
    inputs = {name: width for name, (direction, width) in ports.items() if direction == "input"}
    outputs = {name: width for name, (direction, width) in ports.items() if direction == "output"}
    lines = ["module checker(input clk, input reset_request, output fails"]
    lines += [f"  , input {width} {name}" for name, width in inputs.items()]
    lines += [");", "  reg first = 1'h1;", "  always @(posedge clk) first <= 1'h0;"]
    lines += ["  wire rst = first | reset_request;"]
    for instance, (module, further) in zip(("left", "right"), circuits, strict=True):
        lines += [f"  wire {width} {instance}_{name};" for name, width in outputs.items()]
        pins = {name: name for name in (*clocking, *inputs)} | further
        pins |= {name: f"{instance}_{name}" for name in outputs}
        lines.append(f"  {module} {instance} ({', '.join(f'.{pin}({value})' for pin, value in pins.items())});")
    differ = []
    for name in outputs:
        valid = f"left_{name.removesuffix('__payload')}__valid & " if name.endswith("__payload") else ""
        differ.append(f"({valid}(left_{name} != right_{name}))")
    return "\n".join([*lines, f"  assign fails = ~rst & ({' | '.join(differ)});", "endmodule", ""])
