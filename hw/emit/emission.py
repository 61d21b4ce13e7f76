"""From blocks to Verilog: every distinct block becomes one RTLIL module, Yosys optimises them, and they are written."""

import gc
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import ClockSignal, Instance, ResetSignal
from amaranth.hdl._ir import PortDirection

from hw.emit.contract import flat_ports, summary
from hw.emit.header import module_comment
from hw.emit.netlist import read_rtlil
from hw.emit.reserved import is_identifier
from hw.emit.rtlil_text import black_box, normalise
from hw.emit.verilog import write_design
from hw.emit.yosys import run_yosys

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


@contextmanager
def fewer_collections():
    """Netlists are millions of tuples without cycles: looking for garbage among them takes a fifth of the time."""
    thresholds = gc.get_threshold()
    gc.set_threshold(500_000, 50, 1000)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def attribute_line(attributes):
    """Attributes as they stand before a Verilog module; nothing if there are none."""
    items = (
        f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}" for name, value in attributes.items()
    )
    return f"(* {', '.join(items)} *)\n" if attributes else ""


@dataclass
class Module:
    """A Verilog module under construction: a block, with those parts of it that are no blocks themselves."""

    key: object
    """What makes two blocks the same module."""
    children: set[str] = field(default_factory=set)
    comment: str = ""
    clocking: set[str] = field(default_factory=set)
    """Which of clk and rst it has."""
    attributes: dict = field(default_factory=dict)
    """Verilog attributes: the role, and numbers that belong to it."""
    macro: dict | None = None
    """The description of the memory that takes its place, if it is emitted as a black box."""
    rtlil: dict[str, str] = field(default_factory=dict)
    """Text of the module and of its parts; empty until its children have theirs."""


class Emission:
    """A set of Verilog modules under construction; it is the platform with which blocks are elaborated.

    Parameters
    ----------
    memory : "model" or "macro"
        Whether memories are emitted with an inferable body or as black boxes for a memory compiler.
    target : "asic" or "fpga"
        What blocks are built for that have a circuit for each, see :meth:`hw.lib.block.Block.circuit_for`.
    prefix : str
        What stands before the name of every module but the tops, which are called as :meth:`add_top` is told.

    ``modules`` has them all by name, children before parents. After :meth:`verilog`, ``netlist`` is the RTLIL text that
    Yosys made, and ``matches`` says for every module which of its names are which in the Verilog, for a proof that both
    are equal.
    """

    def __init__(self, memory="model", target="asic", prefix=""):
        if target not in TARGETS:
            raise ValueError(f"target must be one of {', '.join(TARGETS)}, not {target!r}")
        if memory not in MEMORY_BODIES:
            raise ValueError(f"memory must be one of {', '.join(MEMORY_BODIES)}, not {memory!r}")
        self._memory, self._target, self._prefix = memory, target, prefix
        self.modules: dict[str, Module] = {}
        self._tops = []
        self._opening = None
        self._parents = []
        self.netlist, self.matches = "", {}

    def add_top(self, component, name=None):
        """Emit a block, or any component, as a top module; returns the module's name."""
        name = name or self._prefix + component.module_name
        for port in flat_ports(component):
            if not is_identifier(port):
                raise ValueError(f"port {port!r} of {name} has a name that Verilog does not take")
        self._emit(component, name)
        self._tops.append(name)
        return name

    def instantiate(self, block):
        """An instance of the block's shared module (called by :meth:`hw.lib.block.Block.elaborate`)."""
        if block is self._opening:  # not a child: the module that is being emitted
            self._opening = None
            return block.circuit_for(self._target)
        name = self._prefix + block.module_name
        self.modules[self._parents[-1]].children.add(name)
        module = self._emit(block, name)
        connections = {f"{direction[0]}_{port}": value for port, (direction, value) in flat_ports(block).items()}
        if "clk" in module.clocking:
            connections["i_clk"] = ClockSignal()
        if "rst" in module.clocking:
            connections["i_rst"] = ResetSignal()
        return Instance(name, **connections)

    def _emit(self, component, name):
        key = getattr(component, "key", id(component))
        if name in self.modules:
            if self.modules[name].key != key or not self.modules[name].rtlil:
                raise ValueError(f"module name {name!r} is wanted by two different blocks")
            return self.modules[name]
        module = self.modules[name] = Module(key)
        ports = flat_ports(component)
        self._opening = component
        self._parents.append(name)
        with memories_without_contents():
            text = rtlil.convert(
                component,
                name=name,
                platform=self,
                ports={port: (value, DIRECTIONS[direction]) for port, (direction, value) in ports.items()},
                emit_src=False,
            )
        self._parents.pop()
        module.rtlil, module.clocking = normalise(text, list(ports))
        module.attributes = getattr(component, "module_attributes", {})
        if self._memory == "macro" and module.attributes.get("role") == "memory":
            module.macro = component.describe() | {"module": name}
            module.rtlil = {name: black_box(module.rtlil[name])}
        if self._parents:  # a top's comment is its file's header
            module.comment = module_comment(summary(component), component.parameters.to_dict())
        self.modules[name] = self.modules.pop(name)  # after its children
        return module

    def verilog(self):
        """Optimise with Yosys and return ``{module name: Verilog text}``, parents before children."""
        rtlil_text = "".join(text for module in self.modules.values() for text in module.rtlil.values())
        self.netlist = optimise(rtlil_text, self._tops)
        macros = {name for name, module in self.modules.items() if module.macro}
        written = write_design(read_rtlil(self.netlist), macros)
        self.matches = {name: module.matches for name, module in written.items()}
        return {
            name: module.comment
            + attribute_line(module.attributes)
            + "\n".join(written[part].text for part in module.rtlil)
            for name, module in reversed(self.modules.items())
        }

    def modules_of(self, classes):
        """``{name: block's key}`` of the modules whose blocks are of some classes."""
        keys = {name: module.key for name, module in self.modules.items()}
        return {name: key for name, key in keys.items() if isinstance(key, tuple) and key[0] in classes}

    def below(self, name):
        """The names of a module and of everything that it contains."""
        found, left = set(), [name]
        while left:
            if (name := left.pop()) not in found:
                found.add(name)
                left += self.modules[name].children
        return found


def optimise(rtlil_text, tops):
    """Check and optimise an RTLIL design with Yosys; returns its RTLIL."""
    with tempfile.TemporaryDirectory(prefix="emit-") as name:
        folder = Path(name)
        (folder / "design.il").write_text(rtlil_text)
        check = f"hierarchy -check -top {tops[0]}" if len(tops) == 1 else "hierarchy -check"
        run_yosys(folder, ["read_rtlil design.il", check, *YOSYS_PASSES, "write_rtlil result.il"])
        return (folder / "result.il").read_text()
