"""Yosys and its ABC, as they come with the Python package ``pyosys``."""

import importlib.util
import subprocess
import sys
from pathlib import Path

YOSYS_RUNNER = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for line in sys.argv[1].split(";"):
    libyosys.run_pass(line.strip(), design)
"""


def run_yosys(folder, commands):
    """Run Yosys commands in a folder, in a process of its own, since a Yosys error ends it; returns the log."""
    script = "; ".join(commands)
    run = subprocess.run([sys.executable, "-c", YOSYS_RUNNER, script], capture_output=True, text=True, cwd=folder)
    if run.returncode:
        errors = [line for line in (run.stdout + run.stderr).splitlines() if "ERROR" in line]
        raise RuntimeError(f"Yosys refused the design: {errors[-1] if errors else run.stderr[-500:]}")
    return run.stdout


def abc_program():
    """The ABC that comes with Yosys; found without importing its package, which changes how libraries are loaded."""
    return Path(importlib.util.find_spec("pyosys").origin).parent / "yosys-abc"


def run_abc(folder, commands):
    """Run ABC commands, separated by semicolons, in a folder (ABC takes no path with a space); returns its output."""
    run = subprocess.run([abc_program(), "-q", commands], capture_output=True, text=True, check=False, cwd=folder)
    return run.stdout
