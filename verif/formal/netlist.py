"""From a checker to an and-inverter graph: the blocks' emitted Verilog, the checker's RTLIL beside it, and Yosys."""

import subprocess
import sys

from amaranth.back import rtlil

from hw.emit.emission import DIRECTIONS, Emission
from hw.emit.yosys import YOSYS_RUNNER
from verif.formal.aig import Aig
from verif.formal.checker import TOP

__all__ = ["FlowError", "build", "emit", "waveform"]

_READ = "read.ys"
# Each module is taken apart once, before its instances become copies. Memories become registers. Undefined values
# become free inputs, so that nothing is won from them.
_PASSES = [
    "proc",
    "opt_expr",
    "opt_clean",
    "memory -nordff",
    "setundef -undriven -anyseq",
    "opt_clean",
    "async2sync",
    "dffunmap",
    "opt -fast",
    "simplemap",
    "techmap",
    "simplemap",
    "setundef -undriven -anyseq",
    "opt_expr",
    "opt_clean",
    "flatten",
    "opt_expr",
    "opt_merge",
    "opt_clean",
    "dffunmap",
]


class FlowError(Exception):
    """A tool failed where it must not."""


def emit(checker, folder, edit=str):
    """Write ``design.v`` and ``checker.il`` into a folder; ``edit`` may change the Verilog, to see if a bug is found.

    Returns the :class:`~hw.emit.emission.Emission`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    emission = Emission()
    for name, block in checker.blocks.items():
        emission.add_top(block, name)
    (folder / "design.v").write_text(edit("\n".join(emission.verilog().values())))
    ports = checker.ports({name: module.clocking for name, module in emission.modules.items()})
    ports = {name: (value, DIRECTIONS[direction]) for name, (value, direction) in ports.items()}
    (folder / "checker.il").write_text(rtlil.convert(checker, name=TOP, ports=ports, emit_src=False))
    return emission


def build(folder, free_modules=()):
    """Make ``design.aig`` of what :func:`emit` wrote; returns the graph, an :class:`Aig`.

    Its outputs are ``fails_<n>`` for each claim and ``reaches_<n>`` for each cover. Instances of the ``free_modules``
    give anything at any time.
    """
    reads = [
        "read_verilog design.v",
        "read_rtlil checker.il",
        f"hierarchy -check -top {TOP}",
        *(f"cutpoint */t:{name}" for name in free_modules),
    ]
    (folder / _READ).write_text("".join(f"{command}\n" for command in reads))
    run_yosys(
        folder,
        [f"script {_READ}", *_PASSES, "aigmap", "opt_clean", "write_aiger -zinit -symbols -map design.aim design.aig"],
    )
    return Aig.read(folder / "design.aig")


def waveform(folder, witness, target):
    """Turn a solver's counterexample into a waveform of the checker and the block, if Yosys can."""
    try:
        run_yosys(
            folder,
            [f"script {_READ}", "proc", "flatten", f"sim -q -clock clk -r {witness} -map design.aim -vcd {target}"],
        )
    except FlowError as error:  # some inputs without a name are more than its simulator takes
        (folder / f"{target}.txt").write_text(f"{error}\n")


def run_yosys(folder, commands, timeout=600):
    """Run Yosys commands in a folder, in a process of their own."""
    run = subprocess.run(
        [sys.executable, "-c", YOSYS_RUNNER, ";".join(commands)],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=timeout,
        check=False,
    )
    log = run.stdout + run.stderr
    (folder / "yosys.log").write_text(log)
    if run.returncode:
        errors = [line for line in log.splitlines() if "ERROR" in line]
        raise FlowError(f"Yosys refused {folder.name}: {errors[-1] if errors else log[-500:]}")
