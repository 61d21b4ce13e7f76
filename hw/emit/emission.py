"""From blocks to Verilog: every distinct block becomes one RTLIL module, Yosys optimises them, and they are written."""

import inspect
import tempfile
import textwrap
from contextlib import contextmanager
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import ClockSignal, Instance, ResetSignal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import In

from hw.emit.netlist import read_rtlil
from hw.emit.reserved import is_identifier
from hw.emit.rtlil_text import black_box, normalise
from hw.emit.verilog import write_design
from hw.emit.yosys import run_yosys
from hw.lib.ports import port_name

MEMORY_BODIES = ("model", "macro")
TARGETS = ("asic", "fpga")

DIRECTIONS = {"input": PortDirection.Input, "output": PortDirection.Output}

# opt_clean runs before opt_dff so that the latter sees plain enables and resets.
YOSYS_PASSES = ("proc", "opt_expr", "opt_clean", "opt_dff", "memory_nordff", "opt_clean -purge")


@contextmanager
def memories_without_contents():
    """Memories start without contents, as they do on silicon; Amaranth would write zeros, for seconds a megabit."""
    original = rtlil.ModuleEmitter.emit_memory
    rtlil.ModuleEmitter.emit_memory = lambda *arguments: None  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        rtlil.ModuleEmitter.emit_memory = original


def flat_ports(block):
    """The block's ports as Verilog sees them: ``{name: (direction, value)}``, zero-width ports left out."""
    ports = {}
    for path, member, value in block.signature.flatten(block):
        value = Value.cast(value)
        if len(value):
            ports[port_name(path)] = ("input" if member.flow is In else "output", value)
    return ports


def summary(block):
    """The first paragraph of the block's docstring, on one line."""
    return " ".join((inspect.getdoc(block) or "").split("\n\n")[0].replace("``", "").split())


def comment(lines):
    """Lines as a Verilog comment."""
    return "".join(f"// {line}".rstrip() + "\n" for line in lines)


def attribute_line(attributes):
    """Attributes as they stand before a Verilog module; nothing if there are none."""
    items = (
        f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}" for name, value in attributes.items()
    )
    return f"(* {', '.join(items)} *)\n" if attributes else ""


class Emission:
    """A set of Verilog modules under construction; it is the platform with which blocks are elaborated.

    Parameters
    ----------
    memory : "model" or "macro"
        Whether memories are emitted with an inferable body or as black boxes for a memory compiler.
    target : "asic" or "fpga"
        What blocks are built for that have a circuit for each, see :meth:`hw.lib.block.Block.circuit_for`.

    ``clocking`` says for every emitted module which of clk and rst it has; ``macros`` describes the black boxes;
    ``attributes`` has the Verilog attributes of the modules that have a role. After :meth:`verilog`, ``netlist`` is the
    RTLIL text that Yosys made, and ``matches`` says for every module which of its names are which in the Verilog, for a
    proof that both are equal.
    """

    def __init__(self, memory="model", target="asic"):
        if target not in TARGETS:
            raise ValueError(f"target must be one of {', '.join(TARGETS)}, not {target!r}")
        if memory not in MEMORY_BODIES:
            raise ValueError(f"memory must be one of {', '.join(MEMORY_BODIES)}, not {memory!r}")
        self.memory = memory
        self.target = target
        self.attributes = {}
        self.macros = {}
        self._names = {}
        self._rtlil = {}
        self.clocking = {}
        self._children = {}
        self._comments = {}
        self._tops = []
        self._opening = None
        self._parents = []
        self.netlist, self.matches = "", {}

    def add_top(self, block, name=None):
        """Emit a block, or any component, as a top module; returns the module's name."""
        name = self._emit(block, name or block.module_name)
        self._tops.append(name)
        return name

    def instantiate(self, block):
        """An instance of the block's shared module (called by :meth:`hw.lib.block.Block.elaborate`)."""
        if block is self._opening:  # not a child: the module that is being emitted
            self._opening = None
            return block.circuit_for(self.target)
        name = self._emit(block, block.module_name)
        connections = {f"{direction[0]}_{port}": value for port, (direction, value) in flat_ports(block).items()}
        if "clk" in self.clocking[name]:
            connections["i_clk"] = ClockSignal()
        if "rst" in self.clocking[name]:
            connections["i_rst"] = ResetSignal()
        return Instance(name, **connections)

    def _emit(self, block, name):
        if self._parents:
            self._children[self._parents[-1]][name] = None
        key = getattr(block, "key", id(block))
        if self._names.setdefault(name, key) != key:
            raise ValueError(f"module name {name!r} is wanted by two different blocks")
        if name in self._rtlil:
            return name
        self._children[name] = {}
        ports = flat_ports(block)
        for port in ports:
            if not self._parents and not is_identifier(port):
                raise ValueError(f"port {port!r} of {name} has a name that Verilog does not take")
        self._opening = block
        self._parents.append(name)
        with memories_without_contents():
            text = rtlil.convert(
                block,
                name=name,
                platform=self,
                ports={port: (value, DIRECTIONS[direction]) for port, (direction, value) in ports.items()},
                emit_src=False,
            )
        self._parents.pop()
        modules, self.clocking[name] = normalise(text, list(ports))
        if attributes := getattr(block, "module_attributes", {}):
            self.attributes[name] = attributes
        if self.memory == "macro" and attributes.get("role") == "memory":
            self.macros[name] = block.describe()
            modules = {name: black_box(modules[name])}
        # A top's comment is its file's header.
        self._comments[name] = comment(textwrap.wrap(summary(block), 110)) if self._parents else ""
        self._rtlil[name] = modules  # after its children, which were emitted while it was elaborated
        return name

    def verilog(self):
        """Optimise with Yosys and return ``{module name: Verilog text}``, parents before children."""
        rtlil_text = "".join(text for modules in self._rtlil.values() for text in modules.values())
        self.netlist = optimise(rtlil_text, self._tops)
        written = write_design(read_rtlil(self.netlist), self.macros)
        self.matches = {name: module.matches for name, module in written.items()}
        return {
            name: self._comments[name]
            + attribute_line(self.attributes.get(name, {}))
            + "\n".join(written[module].text for module in modules)
            for name, modules in reversed(self._rtlil.items())
        }

    def modules_of(self, classes):
        """``{name: block's key}`` of the modules whose blocks are of some classes."""
        return {name: key for name, key in self._names.items() if isinstance(key, tuple) and key[0] in classes}

    def below(self, name):
        """The names of a module and of everything that it contains."""
        found = {name}
        for child in self._children[name]:
            found |= self.below(child)
        return found


def optimise(rtlil_text, tops):
    """Check and optimise an RTLIL design with Yosys; returns its RTLIL."""
    with tempfile.TemporaryDirectory(prefix="emit-") as name:
        folder = Path(name)
        (folder / "design.il").write_text(rtlil_text)
        check = f"hierarchy -check -top {tops[0]}" if len(tops) == 1 else "hierarchy -check"
        run_yosys(folder, ["read_rtlil design.il", check, *YOSYS_PASSES, "write_rtlil result.il"])
        return (folder / "result.il").read_text()
