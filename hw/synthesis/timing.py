"""Delay of a mapped netlist: by OpenSTA where it is installed, else by the flow's own analysis; labelled."""

import re
import shutil
import subprocess

from hw.synthesis import sta

LABELS = {
    "opensta": "OpenSTA, worst path between registers with clock-to-Q and setup, ideal clock",
    "own": "the flow's own analysis, worst path between registers with clock-to-Q and setup, ideal clock, no wire load",
}
HOW_TO_GET = "on Debian and Ubuntu: apt install opensta"
# OpenSTA expands every instance: 2 KB of memory and a quarter of a millisecond for each.
MAXIMUM_CELLS = 700_000
_HORIZON_NS = 1000.0
NETLIST = "timing.v"
BARE_LIBRARY = "cells_no_wire_load.lib"

# Reads the mapped design and sets what drives and loads it. Inputs arrive at the clock edge, outputs are due at it.
# Numbers are in ns and fF, whatever the library's units are.
_SETUP = """
read_liberty {library}
set_cmd_units -time ns -capacitance fF
read_verilog {netlist}
link_design {top}
set clock_port [get_ports -quiet {clock}]
proc set_period {{nanoseconds}} {{
  global clock_port
  if {{[llength $clock_port]}} {{
    create_clock -name clock -period $nanoseconds $clock_port
  }} else {{
    create_clock -name clock -period $nanoseconds
  }}
}}
proc constrain_ports {{}} {{
  if {{[llength $::inputs]}} {{ set_input_delay 0 -clock clock $::inputs }}
  set_output_delay 0 -clock clock [all_outputs]
}}
set inputs [list]
foreach port [all_inputs] {{
  if {{[get_property $port full_name] != "{clock}"}} {{ lappend inputs $port }}
}}
if {{[llength $inputs]}} {{ set_driving_cell -lib_cell {driver} $inputs }}
set_load {load} [all_outputs]
"""

# Before the ports are constrained, all paths that end somewhere end at a register or a clock gate.
_FIGURES = """
set horizon {horizon}
set_period $horizon
proc worst {{label paths}} {{
  foreach path $paths {{ puts "figure $label [expr {{$::horizon - [get_property $path slack]}}]" }}
}}
set starts [all_registers -clock_pins]
if {{[llength $starts]}} {{
  worst registers [find_timing_paths -from $starts]
  puts "figure-path begin"
  report_checks -from $starts -fields {{capacitance slew}}
  puts "figure-path end"
}}
constrain_ports
worst any [find_timing_paths]
if {{![llength $starts]}} {{
  puts "figure-path begin"
  report_checks -fields {{capacitance slew}}
  puts "figure-path end"
}}
puts "figure-done"
"""


def opensta_version():
    """OpenSTA's version, or None where ``sta`` is not installed."""
    if shutil.which("sta") is None:
        return None
    run = subprocess.run(["sta", "-version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return run.stdout.split()[0] if run.returncode == 0 and run.stdout.split() else None


def opensta(folder, netlist, top, clock, progress):
    """``(figures, path report)``: periods in ps without wire load and with the library's default one.

    ``period_ps`` is the worst path between registers, None without registers; ``worst_path_ps`` is the worst of all
    paths, with inputs arriving at the clock edge and outputs due at it.
    """
    library = netlist.library
    (folder / NETLIST).write_text(netlist.verilog())
    write_bare_library(folder)
    progress("timing with OpenSTA")
    figures, path = _figures(folder, BARE_LIBRARY, top, library, clock)
    if library.wire_load:
        progress("timing with OpenSTA and wire load")
        loaded, _ = _figures(folder, "cells.lib", top, library, clock)
        figures |= {f"{key.removesuffix('_ps')}_wire_load_ps": value for key, value in loaded.items()}
        figures["wire_load"] = library.wire_load
    return {"method": "opensta", "label": LABELS["opensta"], **figures}, path


def write_bare_library(folder):
    """Beside ``cells.lib`` the same without wire load, which a library's default one would be, unasked."""
    bare = re.sub(r"default_wire_load\s*:[^;\n]*;?", "", (folder / "cells.lib").read_text())
    (folder / BARE_LIBRARY).write_text(bare)


def run_opensta(folder, script, liberty, top, library, clock):
    """Run a Tcl script after :data:`_SETUP` in a folder; returns what OpenSTA printed."""
    setup = _SETUP.format(
        library=liberty,
        netlist=NETLIST,
        top=top,
        clock=clock,
        driver=library.buffer.name,
        load=f"{library.output_load:.3f}",
    )
    (folder / "timing.tcl").write_text(setup + script)
    run = subprocess.run(
        ["sta", "-no_init", "-no_splash", "-exit", "timing.tcl"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        cwd=folder,  # and file names without a path: a path could hold spaces
    )
    output = run.stdout + run.stderr
    (folder / "timing.log").write_text(output)
    if "figure-done" not in run.stdout:
        error = re.search(r"^Error: .*$", output, re.MULTILINE)
        raise ValueError(f"OpenSTA stopped: {error[0] if error else f'exit code {run.returncode}'}")
    return run.stdout


def _figures(folder, liberty, top, library, clock):
    output = run_opensta(folder, _FIGURES.format(horizon=_HORIZON_NS), liberty, top, library, clock)
    found = dict(re.findall(r"^figure (\w+) (\S+)$", output, re.MULTILINE))
    path = re.search(r"figure-path begin\n(.*?)figure-path end", output, re.DOTALL)
    # No path at all is what a library without delays leads to.
    figures = {"period_ps": _picoseconds(found.get("registers")), "worst_path_ps": _picoseconds(found.get("any"))}
    return figures, path and path[1].strip()


def _picoseconds(nanoseconds):
    return None if nanoseconds is None else round(float(nanoseconds) * 1000, 1)


def own(netlist, top, tables, clock):
    """The same two figures by the flow's own analysis, without wire load.

    Each preserved module is analysed once, under the worst boundary constraints of all its instances.
    """
    paths = (("period_ps", False), ("worst_path_ps", True))
    return {"method": "own", "label": LABELS["own"]} | {
        key: sta.worst_path(netlist, top, tables, clock, from_inputs) for key, from_inputs in paths
    }
