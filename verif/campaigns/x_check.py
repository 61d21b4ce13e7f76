"""Watches for unknown bits (X) in the control registers of emitted Verilog, those that reset clears."""

import re
import tempfile
from pathlib import Path

from hw.emit.verilog import split_modules
from verif.bench.harness import run_bench

__all__ = ["run_watched", "watch_control_registers"]

_SENTENCE = "unknown bits in "
_RESET = re.compile(r"^    if \(rst\) (?:begin\n(.*?)^    end|(.*?))$", re.M | re.S)
_TARGET = re.compile(r"(\w+(?:\[\d+(?::\d+)?\])?) <= ")


def run_watched(block, edit=lambda files: files, **options):
    """The standard testbench in Icarus, in which memories and registers start as X, with the control registers watched.

    The testbench itself compares every payload that is valid, and every valid, ready and plain output. ``edit`` may
    change the Verilog before it is watched.
    """

    with tempfile.TemporaryDirectory(prefix="watched-") as folder:
        watch = lambda files: watch_control_registers(edit(files))  # noqa: E731
        result = run_bench(block, sim="icarus", keep=folder, edit=watch, **options)
        log = Path(folder, "simulation.log").read_text()
    unknown = sorted({line.split(_SENTENCE)[1] for line in log.splitlines() if _SENTENCE in line})
    result.messages += [_SENTENCE + name for name in unknown]
    result.failed += len(unknown)
    return result


def watch_control_registers(files):
    """``{file: Verilog text}`` with checks: from the first reset on, a control register with an X is told in the log.

    Registers without reset hold data, and stand for nothing until they are written; what is derived from them must not
    get into those that reset clears. A design without any is refused.
    """
    watched = {}
    for file, text in files.items():
        for module in split_modules(text).values():
            targets = [target for match in _RESET.finditer(module) for target in _TARGET.findall(match[1] or match[2])]
            if targets:
                text = text.replace(module, module.removesuffix("endmodule") + _checks(targets) + "endmodule")
        watched[file] = text
    if watched == files:
        raise ValueError("no register has a reset: nothing would be watched")
    return watched


def _checks(targets):
    lines = ["  reg was_reset = 1'h0;", "  always @(posedge clk)", "    if (rst) was_reset <= 1'h1;"]
    lines += ["  always @(negedge clk)", "    if (was_reset) begin"]
    lines += [f'      if ((^{target}) === 1\'hx) $display("{_SENTENCE}%m.{target}");' for target in targets]
    return "\n".join([*lines, "    end", ""])
