"""Watches for unknown bits (X) in the control registers of emitted Verilog, those that reset clears."""

import re

from hw.verilog import split_modules

__all__ = ["SENTENCE", "watch_control_registers"]

SENTENCE = "unknown bits in "
_RESET = re.compile(r"^    if \(rst\) (?:begin\n(.*?)^    end|(.*?))$", re.M | re.S)
_TARGET = re.compile(r"(\w+(?:\[\d+(?::\d+)?\])?) <= ")


def watch_control_registers(files):
    """``{file: Verilog text}`` with checks: from the first reset on, a control register with an X is told in the log.

    Registers without reset hold data, and stand for nothing until they are written; what is derived from them must not
    get into those that reset clears. The second result is the number of registers watched.
    """
    watched, n_registers = {}, 0
    for file, text in files.items():
        for module in split_modules(text).values():
            targets = [target for match in _RESET.finditer(module) for target in _TARGET.findall(match[1] or match[2])]
            if targets:
                n_registers += len(targets)
                text = text.replace(module, module.removesuffix("endmodule") + _checks(targets) + "endmodule")
        watched[file] = text
    return watched, n_registers


def _checks(targets):
    lines = ["  reg was_reset = 1'h0;", "  always @(posedge clk)", "    if (rst) was_reset <= 1'h1;"]
    lines += ["  always @(negedge clk)", "    if (was_reset) begin"]
    lines += [f'      if ((^{target}) === 1\'hx) $display("{SENTENCE}%m.{target}");' for target in targets]
    return "\n".join([*lines, "    end", ""])
