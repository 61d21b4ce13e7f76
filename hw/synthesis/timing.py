"""Delay of a mapped netlist: OpenSTA where it is installed, else ABC's own estimate; always labelled as what it is."""

import re
import shutil
import subprocess

from hw.synthesis.recipes import output_load

LABELS = {
    "opensta": "OpenSTA, worst path between registers with clock-to-Q and setup, ideal clock",
    "abc": "ABC estimate: worst path inside a module's logic, without clock-to-Q and setup, adder cells not seen through",
}
# OpenSTA expands every instance: 2 KB of memory and a quarter of a millisecond for each.
MAXIMUM_CELLS = 600_000
_HORIZON_NS = 1000.0

_SCRIPT = """
read_liberty {library}
read_verilog {netlist}
link_design {top}
proc worst {{label paths}} {{
  global horizon
  foreach path $paths {{ puts "figure $label [expr {{$horizon - [get_property $path slack]}}]" }}
}}
set horizon {horizon}
set clock [get_ports -quiet {clock}]
if {{[llength $clock]}} {{
  create_clock -name clock -period $horizon $clock
}} else {{
  create_clock -name clock -period $horizon
}}
set inputs [list]
foreach port [all_inputs] {{
  if {{[get_property $port full_name] != "{clock}"}} {{ lappend inputs $port }}
}}
if {{[llength $inputs]}} {{
  set_driving_cell -lib_cell {driver} $inputs
  set_input_delay 0 -clock clock $inputs
}}
set_output_delay 0 -clock clock [all_outputs]
set_load {load} [all_outputs]
if {{[llength [all_registers -clock_pins]]}} {{
  worst registers [find_timing_paths -from [all_registers -clock_pins] -to [all_registers -data_pins]]
  puts "figure-path begin"
  report_checks -from [all_registers -clock_pins] -to [all_registers -data_pins] -fields {{capacitance slew}}
}} else {{
  puts "figure-path begin"
  report_checks
}}
puts "figure-path end"
worst any [find_timing_paths]
puts "figure-done"
"""


def opensta_version():
    """OpenSTA's version, or None where ``sta`` is not installed."""
    if shutil.which("sta") is None:
        return None
    run = subprocess.run(["sta", "-version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return run.stdout.split()[0] if run.returncode == 0 and run.stdout.split() else None


def opensta(folder, top, library, clock, progress):
    """``(figures, path report)``: periods in ps without wire load and with the library's default one.

    ``period_ps`` is the worst path between registers, None without registers; ``worst_path_ps`` is the worst of all
    paths, with inputs arriving at the clock edge and outputs due at it.
    """
    netlist = folder / "timing.v"
    netlist.write_text((folder / "mapped.v").read_text().replace(" signed ", " "))
    text = (folder / "cells.lib").read_text()
    # The library's default wire load is applied unasked: without it means from a library that names none.
    bare = folder / "cells_no_wire_load.lib"
    bare.write_text(re.sub(r"default_wire_load\s*:[^;\n]*;?", "", text))
    progress("timing with OpenSTA")
    figures, path = _opensta_run(folder, bare, netlist, top, library, clock)
    if library.wire_load:
        progress("timing with OpenSTA and wire load")
        loaded, _ = _opensta_run(folder, folder / "cells.lib", netlist, top, library, clock)
        figures |= {f"{key.removesuffix('_ps')}_wire_load_ps": value for key, value in loaded.items()}
        figures["wire_load"] = library.wire_load
    return {"method": "opensta", "label": LABELS["opensta"], **figures}, path


def _opensta_run(folder, liberty, netlist, top, library, clock):
    script = folder / "timing.tcl"
    script.write_text(
        _SCRIPT.format(
            library=liberty.name,
            netlist=netlist.name,
            top=top,
            clock=clock,
            horizon=_HORIZON_NS,
            driver=library.buffer.name,
            load=f"{output_load(library):.3f}",
        )
    )
    run = subprocess.run(
        ["sta", "-no_init", "-no_splash", "-exit", script.name],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        cwd=folder,  # and file names without a path: a path could hold spaces
    )
    output = run.stdout + run.stderr
    (folder / "timing.log").write_text(output)
    if "figure-done" not in output:
        error = re.search(r"^Error: .*$", output, re.MULTILINE)
        raise ValueError(f"OpenSTA stopped: {error[0] if error else f'exit code {run.returncode}'}")
    found = dict(re.findall(r"^figure (\w+) (\S+)$", run.stdout, re.MULTILINE))
    path = re.search(r"figure-path begin\n(.*?)figure-path end", run.stdout, re.DOTALL)[1].strip()
    return {"period_ps": _picoseconds(found.get("registers")), "worst_path_ps": _picoseconds(found.get("any"))}, path


def _picoseconds(nanoseconds):
    return None if nanoseconds is None else round(float(nanoseconds) * 1000, 1)


def abc(folder):
    """ABC's last timing report of each module in the log; the worst of them, or None if there was no logic."""
    log = (folder / "yosys.log").read_text()
    delays = [float(value) for value in re.findall(r"WireLoad = .*Delay = +([\d.]+) ps", log)]
    return {"method": "abc", "label": LABELS["abc"], "logic_delay_ps": max(delays, default=None)}
