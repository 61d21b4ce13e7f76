"""From a checker to an and-inverter graph: the blocks' emitted Verilog, the checker's RTLIL beside it, and Yosys."""

import shutil
import subprocess
import sys

from amaranth.back import rtlil

from hw.emit import DIRECTIONS, YOSYS_RUNNER, Emission
from verif.formal.aig import Aig
from verif.formal.checker import TOP

__all__ = ["FlowError", "build", "waveform"]

# Memories become registers. Undefined values become free inputs, so that nothing is won from them.
_PASSES = [
    "proc", "flatten", "write_rtlil design.il", "opt_expr", "opt_clean", "memory -nordff",
    "setundef -undriven -anyseq", "opt_clean", "async2sync",
    "dffunmap", "opt", "techmap", "simplemap", "setundef -undriven -anyseq", "opt -full", "dffunmap",
]


class FlowError(Exception):
    """A tool failed where it must not."""


def build(checker, folder, edit=str):
    """Write ``design.v``, ``checker.il`` and ``design.aig`` into a folder; returns the graph, an :class:`Aig`.

    Its outputs are ``fails_<n>`` for each claim and ``reaches_<n>`` for each cover. ``edit`` may change the Verilog
    ``{name: text}``, to see whether a bug is found.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    emission = Emission()
    for name, block in checker.blocks.items():
        emission.add_top(block, name)
    (folder / "design.v").write_text(edit("\n".join(emission.verilog().values())))
    ports = checker.ports(emission.clocking)
    ports = {name: (value, DIRECTIONS[direction]) for name, (value, direction) in ports.items()}
    (folder / "checker.il").write_text(rtlil.convert(checker, name=TOP, ports=ports, emit_src=False))
    run_yosys(folder, [
        "read_verilog design.v", "read_rtlil checker.il", f"hierarchy -check -top {TOP}", *_PASSES,
        "aigmap", "opt_clean", "write_aiger -zinit -symbols -map design.aim design.aig",
    ])
    return Aig.read(folder / "design.aig")


def waveform(folder, witness, target):
    """Turn a solver's counterexample into a waveform of the checker and the block, if Yosys can."""
    try:
        run_yosys(folder, [
            "read_rtlil design.il", f"sim -q -clock clk -r {witness} -map design.aim -vcd {target}"
        ])
    except FlowError as error:  # some inputs without a name are more than its simulator takes
        (folder / f"{target}.txt").write_text(f"{error}\n")


def run_yosys(folder, commands, timeout=600):
    """Run Yosys commands in a folder, in a process of their own."""
    run = subprocess.run(
        [sys.executable, "-c", YOSYS_RUNNER, ";".join(commands)],
        capture_output=True, text=True, cwd=folder, timeout=timeout, check=False,
    )
    log = run.stdout + run.stderr
    (folder / "yosys.log").write_text(log)
    if run.returncode:
        errors = [line for line in log.splitlines() if "ERROR" in line]
        raise FlowError(f"Yosys refused {folder.name}: {errors[-1] if errors else log[-500:]}")
