"""Runs one synthesis job in a process of its own: Yosys commands, and the few steps that look at the netlist.

``python -m hw.synthesis.worker job.json``, with a job of ``commands``, ``trace`` and ``peek`` (two paths). An entry of
the commands is a Yosys command, a comment that is shown as progress, or ``["step", arguments ...]`` for a function of
``STEPS`` that looks at the netlist and returns the commands it wants run. The trace holds every command that was run:
Yosys repeats the job from it. A Yosys error ends the process, hence the process.
"""

import json
import sys
from pathlib import Path

from hw.synthesis.adders import ROW_INPUTS, addition_rules, row_rules
from hw.synthesis.groups import part_of

# A rough count of gates a bit of output, good enough to tell a large module from a small one.
_GATES_A_BIT = {"$add": 5, "$sub": 5, "$alu": 5, "$mux": 2, "$dff": 6, "$dffe": 7, "$sdff": 7, "$sdffe": 8}

_SHIFTS = ("$shift", "$shiftx", "$shl", "$shr", "$sshl", "$sshr")


def _design(path):
    return json.loads(Path(path).read_text())["modules"]


def _bits(cell, port):
    return len(cell["connections"].get(port, ()))


def _gates(cell):
    kind = cell["type"]
    if kind == "$mul":
        return 6 * _bits(cell, "A") * _bits(cell, "B")
    if kind in _SHIFTS and not any(isinstance(bit, int) for bit in cell["connections"]["A"]):
        return _bits(cell, "A") / 4  # a table, of which a bit is looked up
    if kind in _SHIFTS:
        return 2 * max(_bits(cell, "A"), _bits(cell, "Y")) * _bits(cell, "B")
    if kind == "$pmux":
        return 2 * _bits(cell, "B")
    return _GATES_A_BIT.get(kind, 1) * max(_bits(cell, "Y"), _bits(cell, "Q"), 1)


def _census(modules, top):
    """``{module: (instances, gates with everything below)}`` of a hierarchy."""
    gates, order = {}, []

    def visit(name):
        if name not in gates:
            gates[name] = 0
            cells = modules[name]["cells"].values()
            for cell in cells:
                if cell["type"] in modules:
                    visit(cell["type"])
            gates[name] = sum(gates[cell["type"]] if cell["type"] in modules else _gates(cell) for cell in cells)
            order.append(name)

    visit(top)
    instances = dict.fromkeys(order, 0) | {top: 1}
    for name in reversed(order):
        for cell in modules[name]["cells"].values():
            if cell["type"] in modules:
                instances[cell["type"]] += instances[name]
    return {name: (instances[name], gates[name]) for name in order}


def flatten(modules, top, mode, whole, part, most):
    """Flatten everything, nothing, or ("auto") all but the large modules that occur more than once.

    A design of up to ``whole`` gates is flattened entirely; in a larger one, modules of at least ``part`` gates stay
    if they have two or more instances, or are a part of a core (:mod:`hw.synthesis.groups`). Of those that repeat, one
    that has up to ``most`` gates with all that is in it is not divided further: its paths are better for it.
    """
    if mode == "hierarchy":
        return []
    census = _census(modules, top)
    preserved = _preserved(modules, census, top, part, most) if mode == "auto" and census[top][1] > whole else ()
    return [*(f"setattr -mod -set keep_hierarchy 1 {name}" for name in sorted(preserved)), "flatten", "opt_clean"]


def _preserved(modules, census, top, part, most):
    preserved, divided = set(), {top}  # divided: the modules whose inside is looked at
    for name in reversed(census):
        count, gates = census[name]
        if name != top and gates >= part and (part_of(modules[name]) or (count > 1 and name in divided)):
            preserved.add(name)
        if name in divided and not (name in preserved and gates <= most):
            divided.update(cell["type"] for cell in modules[name]["cells"].values() if cell["type"] in modules)
    return preserved


def black_boxes(modules):
    """Make the memories black boxes.

    Each by its name: a selection by attribute makes the attribute known to a design that has none, and the order in
    which Yosys goes over a design, and with it ABC's result, depends on all the names that it knows.
    """
    names = [name for name, module in modules.items() if module["attributes"].get("role") == "memory"]
    return [f"blackbox {' '.join(names)}"] if names else []


def adder_rows(modules, rules_path):
    """Split the rows of adders into one-bit adder cells; nothing if the design has none."""
    rows = {}
    for name, module in modules.items():
        if n_inputs := ROW_INPUTS.get(module["attributes"].get("role")):
            ports = module["ports"]
            inputs = [port for port in ports if ports[port]["direction"] == "input"]
            outputs = {port for port in ports if ports[port]["direction"] == "output"}
            if outputs != {"sum", "carry"} or len(inputs) != n_inputs:
                raise SystemExit(f"ERROR: module {name} is not a row of adders: its ports are {', '.join(ports)}")
            rows[name] = (inputs, len(ports["sum"]["bits"]))
    if not rows:
        return []
    Path(rules_path).write_text(row_rules(rows))
    return [f"techmap -map {rules_path}"]


def plain_adders(modules, rules_path):
    """Make additions of the modules with the role "adder": their structure is for flows that would undo another."""
    adders = {
        name: len(module["ports"]["sum"]["bits"])
        for name, module in modules.items()
        if module["attributes"].get("role") == "adder" and "top" not in module["attributes"]
    }
    if not adders:
        return []
    Path(rules_path).write_text(addition_rules(adders))
    return [f"techmap -map {rules_path}"]


def half_used_adders(modules, selection_path):
    """Tell the adders of which only the sum or only the carry is used: half of the cell would be idle."""
    found = {}
    for name, module in modules.items():
        used = {bit for port in module["ports"].values() if port["direction"] != "input" for bit in port["bits"]}
        for cell in module["cells"].values():
            for port, direction in cell.get("port_directions", {}).items():
                if direction != "output":
                    used.update(cell["connections"][port])
        for label, cell in module["cells"].items():
            if cell["type"] in ("full_adder_bit", "half_adder_bit"):
                for role, other in (("sum", "carry"), ("carry", "sum")):
                    if not used.intersection(cell["connections"].get(other, ())):
                        kind = cell["type"].replace("bit", role)
                        found.setdefault(kind, []).append(f"{name}/{label}")
                        break
    commands = []
    for kind, cells in sorted(found.items()):
        path = Path(f"{selection_path}.{kind}")
        path.write_text("".join(f"{cell}\n" for cell in cells))
        commands += [f"select -read {path}", f"chtype -set {kind}", "select -clear"]
    return commands


def box_memories(modules, report_path):
    """Turn inferred memories into black boxes and write ``{box: bits}`` to the report."""
    commands, report = [], {}
    for name, module in modules.items():
        for label, cell in module["cells"].items():
            if cell["type"] == "$mem_v2":
                values = cell["parameters"]
                size, width = (int(values[key], 2) for key in ("SIZE", "WIDTH"))
                box = f"memory_{size}x{width}"
                report[box] = size * width
                # Parameters mean nothing to a black box, and timing analysers trip over them.
                unset = " ".join(f"-unset {parameter}" for parameter in values)
                commands += [f"setattr -set keep 1 {name}/{label}", f"setparam {unset} {name}/{label}"]
                commands += [f"chtype -set {box} {name}/{label}"]
    Path(report_path).write_text(json.dumps(report))
    return commands


STEPS = {
    step.__name__: step for step in (flatten, black_boxes, adder_rows, plain_adders, half_used_adders, box_memories)
}


def main(job_path):
    from pyosys import libyosys

    job = json.loads(Path(job_path).read_text())
    design = libyosys.Design()
    with Path(job["trace"]).open("w") as trace:

        def run(command):
            print(command, file=trace, flush=True)
            libyosys.run_pass(command, design)

        for entry in job["commands"]:
            if not isinstance(entry, str):
                libyosys.run_pass(f"write_json -noscopeinfo {job['peek']}", design)
                for command in STEPS[entry[0]](_design(job["peek"]), *entry[1:]):
                    run(command)
            elif entry.startswith("# "):
                print(f"progress {entry[2:]}", file=sys.stderr, flush=True)
                print(entry, file=trace)
            else:
                run(entry)


if __name__ == "__main__":
    main(sys.argv[1])
