"""From blocks to Verilog: every distinct block becomes one RTLIL module, Yosys tidies them, and a writer makes them read well."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import ClockSignal, Instance, ResetSignal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import In

from hw.block import Block
from hw.verilog import split_modules, tidy

MEMORY_BODIES = ("model", "macro")

_DIRECTIONS = {"input": PortDirection.Input, "output": PortDirection.Output}

# opt_clean runs before opt_dff so that the latter sees plain enables and resets.
YOSYS_RUNNER = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for line in sys.argv[1].split(";"):
    libyosys.run_pass(line.strip(), design)
"""

# Memories start without contents ($meminit), as they do on silicon.
YOSYS_PASSES = "delete t:$meminit*; proc; opt_expr; opt_clean; opt_dff; opt_clean -purge"


def flat_ports(block):
    """The block's ports as Verilog sees them: ``{name: (direction, value)}``, zero-width ports left out."""
    ports = {}
    for path, member, value in block.signature.flatten(block):
        value = Value.cast(value)
        if len(value):
            ports["__".join(map(str, path))] = ("input" if member.flow is In else "output", value)
    return ports


class Emission:
    """A set of Verilog modules under construction; it is the platform with which blocks are elaborated.

    Parameters
    ----------
    memory : "model" or "macro"
        Whether memories are emitted with an inferable body or as black boxes for a memory compiler.
    """

    def __init__(self, memory="model"):
        if memory not in MEMORY_BODIES:
            raise ValueError(f"memory must be one of {', '.join(MEMORY_BODIES)}, not {memory!r}")
        self.memory = memory
        self.macros = {}
        self._names = {}
        self._rtlil = {}
        self._clocking = {}
        self._children = {}
        self._tops = []
        self._opening = None
        self._parents = []

    def add_top(self, block, name=None):
        """Emit a block as a top module; returns the module's name."""
        name = self._emit(block, name or block.module_name)
        self._tops.append(name)
        return name

    def instantiate(self, block):
        """An instance of the block's shared module (called by :meth:`hw.block.Block.elaborate`)."""
        if block is self._opening:  # not a child: the module that is being emitted
            self._opening = None
            return block.circuit()
        name = self._emit(block, block.module_name)
        connections = {f"{direction[0]}_{port}": value for port, (direction, value) in flat_ports(block).items()}
        if "clk" in self._clocking[name]:
            connections["i_clk"] = ClockSignal()
        if "rst" in self._clocking[name]:
            connections["i_rst"] = ResetSignal()
        return Instance(name, **connections)

    def _emit(self, block, name):
        if self._parents:
            self._children[self._parents[-1]][name] = None
        known = self._names.setdefault(name, block.key)
        if known != block.key:
            raise ValueError(f"module name {name!r} is wanted by two different blocks")
        if name in self._rtlil:
            return name
        self._children[name] = {}
        ports = flat_ports(block)
        self._opening = block
        self._parents.append(name)
        text = rtlil.convert(
            block,
            name=name,
            platform=self,
            ports={port: (value, _DIRECTIONS[direction]) for port, (direction, value) in ports.items()},
            emit_src=False,
        )
        self._parents.pop()
        text, self._clocking[name] = _normalise(text, list(ports))
        if block.is_memory and self.memory == "macro":
            self.macros[name] = block.describe()
            text = _black_box(text)
        self._rtlil[name] = text  # after its children, which were emitted while it was elaborated
        return name

    def verilog(self):
        """Run Yosys and return ``{module name: Verilog text}``, children before parents."""
        modules = split_modules(run_yosys("".join(self._rtlil.values()), self._tops))
        return {name: tidy(modules[name], black_box=name in self.macros) for name in self._rtlil}

    def below(self, name):
        """The names of a module and of everything that it contains."""
        found = {name}
        for child in self._children[name]:
            found |= self.below(child)
        return found


_WIRE = re.compile(r"^  wire width (\d+) (input|output) \d+ +(\\\S+)$", re.MULTILINE)


def _normalise(text, port_order):
    """Make Amaranth's RTLIL plain: no power-up values, plain identifiers, clk and rst first and only where used.

    Returns the text and the set of clocking ports that the module has.
    """
    text = re.sub(r"^ *attribute \\(init|generator|top|src|full_case) .*\n", "", text, flags=re.MULTILINE)
    if len(re.findall(r"^module ", text, re.MULTILINE)) != 1:
        raise ValueError("a block must not contain submodules that are no blocks")
    text = text[text.index("module "):]
    for unused in ("clk", "rst"):
        # A port that nothing but its own declaration mentions.
        if len(re.findall(rf"\\{unused}(?=\s)", text)) == 1:
            text = re.sub(rf"^  wire width 1 input \d+ +\\{unused}\n", "", text, flags=re.MULTILINE)
    text = _instance_nets(_plain_names(text))
    found = {match[3][1:] for match in _WIRE.finditer(text)}
    rank = {name: index for index, name in enumerate(["clk", "rst", *port_order], start=1)}

    def renumber(match):
        return f"  wire width {match[1]} {match[2]} {rank.get(match[3][1:], len(rank) + 1)} {match[3]}"

    return _WIRE.sub(renumber, text), found & {"clk", "rst"}


# Not what is in a string, such as the name of a memory at its ports.
_NAME = re.compile(r"(?<![\"\\])\\[^\s]+")


def _plain_names(module):
    """Replace what Verilog would have to escape in public names, without making two names one."""
    names = dict.fromkeys(_NAME.findall(module))
    taken = {name for name in names if re.fullmatch(r"\\\w+", name)}
    table = {}
    for name in names:
        if name in taken:
            continue
        plain = "\\" + re.sub(r"_{3,}", "__", re.sub(r"\W", "_", name[1:])).rstrip("_")
        candidate, count = plain, 2
        while candidate in taken:
            candidate, count = f"{plain}_{count}", count + 1
        taken.add(candidate)
        table[name] = candidate
    return _NAME.sub(lambda match: table.get(match[0], match[0]), module) if table else module


_INSTANCE = re.compile(r"^  cell (\\\S+) (\\\S+)\n((?:    connect .*\n)*)  end$", re.MULTILINE)


def _instance_nets(module):
    """Name the nets at an instance's ports ``instance_port``; Amaranth has them as ``port`` and ``port_17``."""
    ports = {match[3] for match in _WIRE.finditer(module)}
    taken = set(re.findall(r"\\[^\s]+", module))
    table = {}
    for _, instance, connections in _INSTANCE.findall(module):
        for port, net in re.findall(r"connect (\\\S+) (\\\S+)$", connections, re.MULTILINE):
            name = f"{instance}_{port[1:]}"
            if net not in ports and net not in table and name not in taken and re.fullmatch(re.escape(port) + r"(_\d+)?", net):
                table[net] = name
                taken.add(name)
    # Not the port in "connect port net", which belongs to the child.
    return re.sub(r"(?<!    connect )\\[^\s]+", lambda match: table.get(match[0], match[0]), module) if table else module


def _black_box(text):
    """Keep a module's ports and drop its body."""
    name = re.search(r"^module (\S+)", text, re.MULTILINE)[1]
    wires = "\n".join(match[0] for match in _WIRE.finditer(text))
    return f"attribute \\blackbox 1\nmodule {name}\n{wires}\nend\n"


def run_yosys(rtlil_text, tops):
    """Tidy an RTLIL design with Yosys (in a process of its own, since a Yosys error ends it) and write Verilog."""
    with tempfile.TemporaryDirectory(prefix="emit-") as folder:
        source, result = Path(folder, "design.il"), Path(folder, "design.v")
        source.write_text(rtlil_text)
        checks = "; ".join(f"hierarchy -check -top {top}" for top in tops) if len(tops) == 1 else "hierarchy -check"
        script = f"read_rtlil {source}; {checks}; {YOSYS_PASSES}; setattr -mod -unset blackbox =A:blackbox; write_verilog -noattr {result}"
        run = subprocess.run(
            [sys.executable, "-c", YOSYS_RUNNER, script],
            capture_output=True,
            text=True,
        )
        if run.returncode or not result.exists():
            lines = [line for line in (run.stdout + run.stderr).splitlines() if "ERROR" in line]
            raise RuntimeError(f"Yosys refused the design: {lines[-1] if lines else run.stderr[-500:]}")
        return result.read_text()
