"""Delay of a mapped netlist: OpenSTA where it is installed, else ABC's own estimate; always labelled as what it is."""

import re
import shutil
import subprocess

from hw.synthesis.netlist import Netlist
from hw.synthesis.recipes import output_load

LABELS = {
    "opensta": "OpenSTA, worst path between registers with clock-to-Q and setup, ideal clock",
    "abc": "ABC estimate: worst path in a module's logic, without clock-to-Q and setup, adder cells not seen through",
}
HOW_TO_GET = "on Debian and Ubuntu: apt install opensta"
# OpenSTA expands every instance: 2 KB of memory and a quarter of a millisecond for each.
MAXIMUM_CELLS = 600_000
_HORIZON_NS = 1000.0
NETLIST = "timing.v"
BARE_LIBRARY = "cells_no_wire_load.lib"

# Reads the mapped design and sets what drives and loads it. Inputs arrive at the clock edge, outputs are due at it.
SETUP = """
read_liberty {library}
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

_WORST = """
set_period $horizon
constrain_ports
puts "figure any [expr {$horizon - [worst_slack]}]"
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
    prepare(folder, Netlist((folder / "mapped.json").read_text(), library))
    progress("timing with OpenSTA")
    figures, path = _figures(folder, BARE_LIBRARY, top, library, clock)
    if library.wire_load:
        progress("timing with OpenSTA and wire load")
        loaded, _ = _figures(folder, "cells.lib", top, library, clock)
        figures |= {f"{key.removesuffix('_ps')}_wire_load_ps": value for key, value in loaded.items()}
        figures["wire_load"] = library.wire_load
    return {"method": "opensta", "label": LABELS["opensta"], **figures}, path


def prepare(folder, netlist):
    """Write what OpenSTA reads: the netlist, and a library without wire load.

    A library's default wire load is applied unasked: without it means from a library that names none.
    """
    (folder / NETLIST).write_text(netlist.verilog())
    bare = folder / BARE_LIBRARY
    if not bare.exists():
        bare.write_text(re.sub(r"default_wire_load\s*:[^;\n]*;?", "", (folder / "cells.lib").read_text()))


def run_script(folder, name, script, liberty, top, library, clock):
    """Run a Tcl script after :data:`SETUP` in a folder that is prepared; returns what OpenSTA printed."""
    setup = SETUP.format(
        library=liberty,
        netlist=NETLIST,
        top=top,
        clock=clock,
        driver=library.buffer.name,
        load=f"{output_load(library):.3f}",
    )
    (folder / f"{name}.tcl").write_text(setup + script)
    run = subprocess.run(
        ["sta", "-no_init", "-no_splash", "-exit", f"{name}.tcl"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        cwd=folder,  # and file names without a path: a path could hold spaces
    )
    output = run.stdout + run.stderr
    (folder / f"{name}.log").write_text(output)
    if "figure-done" not in run.stdout:
        error = re.search(r"^Error: .*$", output, re.MULTILINE)
        raise ValueError(f"OpenSTA stopped: {error[0] if error else f'exit code {run.returncode}'}")
    return run.stdout


def worst_ps(folder, top, library, clock):
    """The worst of all paths of a prepared folder, without wire load."""
    script = f"set horizon {_HORIZON_NS}\n" + _WORST
    output = run_script(folder, "worst", script, BARE_LIBRARY, top, library, clock)
    return _picoseconds(re.search(r"^figure any (\S+)$", output, re.MULTILINE)[1])


def _figures(folder, liberty, top, library, clock):
    output = run_script(folder, "timing", _FIGURES.format(horizon=_HORIZON_NS), liberty, top, library, clock)
    found = dict(re.findall(r"^figure (\w+) (\S+)$", output, re.MULTILINE))
    path = re.search(r"figure-path begin\n(.*?)figure-path end", output, re.DOTALL)[1].strip()
    return {"period_ps": _picoseconds(found.get("registers")), "worst_path_ps": _picoseconds(found.get("any"))}, path


def _picoseconds(nanoseconds):
    return None if nanoseconds is None else round(float(nanoseconds) * 1000, 1)


def abc(folder):
    """ABC's last timing report of each module in the log; the worst of them, or None if there was no logic."""
    log = (folder / "yosys.log").read_text()
    delays = [float(value) for value in re.findall(r"WireLoad = .*Delay = +([\d.]+) ps", log)]
    return {"method": "abc", "label": LABELS["abc"], "logic_delay_ps": max(delays, default=None)}
