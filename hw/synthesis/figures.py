"""Counts and areas of a mapped netlist, multiplied out over its hierarchy."""

import json
import re
from collections import Counter

from hw.synthesis import groups

_FLIP_FLOP = re.compile(r"\$_S?DFF")
TRANSISTORS_A_NAND2 = 4


def instance_counts(netlist, top):
    """How often each module occurs below ``top``, itself included."""
    order = []

    def visit(name):
        if name not in order:
            for kind in netlist[name]:
                if kind in netlist:
                    visit(kind)
            order.append(name)

    visit(top)
    counts = dict.fromkeys(reversed(order), 0) | {top: 1}
    for name in reversed(order):
        for kind, number in netlist[name].items():
            if kind in netlist:
                counts[kind] += number * counts[name]
    return counts


def count(mapped, top, folder):
    """The figures of a mapped design, and a row for each of its modules.

    Memories are counted in bits and never in cells or area. An unknown black box is an error: it has no area.
    """
    library = mapped.library
    netlist = {name: mapped.kinds(name) for name in mapped.modules_below(top)}
    counts = instance_counts(netlist, top)
    inferred = json.loads((folder / "memories.json").read_text())
    figures = {"cells": 0, "flip_flops": 0, "latches": 0, "clock_gates": 0, "memory_bits": 0}
    if library:
        figures |= {"area_um2": 0.0, "sequential_um2": 0.0, "combinational_um2": 0.0}
    cells, rows = Counter(), []
    for name, number in counts.items():
        row = {"module": name, "instances": number, "cells": 0, "flip_flops": 0, "area_um2": 0.0}
        for kind, amount in netlist[name].items():
            if kind in netlist:
                continue
            bits = inferred.get(kind) or _memory_bits(kind, mapped.modules.get(kind))
            if bits:
                figures["memory_bits"] += bits * amount * number
                continue
            area, storage = _cell(kind, library)
            cells[kind] += amount * number
            row["cells"] += amount
            row["flip_flops"] += amount * (storage == "flip-flop")
            row["area_um2"] += amount * area
            figures["cells"] += amount * number
            figures["flip_flops"] += amount * number * (storage == "flip-flop")
            figures["latches"] += amount * number * (storage == "latch")
            figures["clock_gates"] += amount * number * (storage == "clock gate")
            if library:
                figures["area_um2"] += amount * number * area
                figures["sequential_um2" if storage else "combinational_um2"] += amount * number * area
        row["area_um2"] = round(row["area_um2"], 3) if library else None
        rows.append(row)
    if library:
        figures = {key: round(value, 3) if isinstance(value, float) else value for key, value in figures.items()}
        figures["gate_equivalents"] = round(figures["area_um2"] / library.nand2.area, 1)
        roots = {name: groups.part_of(mapped.modules[name]) for name in netlist}
        parts = groups.divide(netlist, top, {row["module"]: row["area_um2"] for row in rows}, roots)
        if parts:
            figures["area_by_part_um2"] = {part: round(area, 1) for part, area in parts.items()}
    figures["cells_by_type"] = dict(sorted(cells.items()))
    return figures, rows


def _memory_bits(kind, module):
    """The bits of a module whose role is memory; 0 of anything else."""
    if module is None or module["attributes"].get("role") != "memory":
        return 0
    try:
        return int(module["attributes"]["bits"], 2)
    except (KeyError, ValueError):
        raise ValueError(f"module {kind} has the role memory, but no attribute bits with their number") from None


def _cell(kind, library):
    """``(area, storage)`` of a cell."""
    if library is not None:
        if kind not in library.cells:
            raise ValueError(f"module {kind} has neither a body nor a cell in library {library.name}")
        return library.cells[kind].area, library.cells[kind].storage
    if not kind.startswith("$_"):
        raise ValueError(f"module {kind} has no body")
    return 0.0, "flip-flop" if _FLIP_FLOP.match(kind) else "latch" if kind.startswith("$_DLATCH") else None


def estimates(folder):
    """Transistors and logic depth of a design in Yosys' own gates; the depth is the deepest single module's."""
    text = json.loads((folder / "transistors.json").read_text())["design"]["estimated_num_transistors"]
    transistors = int(re.match(r"\d+", text)[0])
    depths = re.findall(r"Longest topological path in .*\(length=(\d+)\)", (folder / "depth.txt").read_text())
    return {
        "transistors_estimate": transistors,
        "gate_equivalents_estimate": transistors / TRANSISTORS_A_NAND2,
        "logic_depth_estimate": max(map(int, depths), default=0),
    }
