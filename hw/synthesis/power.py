"""Power of a mapped netlist by OpenSTA, from how often each of its nets changes."""

import re

from hw.synthesis import timing

__all__ = ["ASSUMPTIONS", "instances", "report"]

ASSUMPTIONS = (
    "without wires and without clock tree",
    "nets change once a clock at most: no glitches",
    "registers get the clock in every period, as if there were no clock gates",
    "memories are left out",
)

_SCRIPT = """
set_period {nanoseconds}
# What the Tcl command for this says of pins does not work in every version; the function behind it does.
foreach {{pin activity duty}} {{
{activities}
}} {{
  ::sta::set_power_pin_activity [get_pins $pin] $activity $duty
}}
puts "power begin"
report_power -digits 8
puts "power end"
puts "figure-done"
"""
_TOTAL = re.compile(r"^Total +(\S+) +(\S+) +(\S+) +(\S+)", re.MULTILINE)
_INSTANCE = re.compile(r"^  (\S+) (\\\S+ |\w+) \((.*)\);$", re.MULTILINE)
_PIN = re.compile(r"\.(\w+)\(([^(){}]+)\)")


def instances(verilog):
    """``{module: [(kind, instance, {pin: net})]}`` of a netlist as :class:`hw.synthesis.netlist.Netlist` writes it."""
    found = {}
    for text in re.split(r"^(?=module )", verilog, flags=re.MULTILINE):
        if name := re.match(r"module (\S+)", text):
            found[name[1]] = [
                (kind, label.strip().lstrip("\\"), dict(_PIN.findall(pins)))
                for kind, label, pins in _INSTANCE.findall(text)
            ]
    return found


def report(folder, verilog, top, library, clock, period_ps, nets):
    """``{internal_mw, switching_mw, leakage_mw, total_mw}`` of a netlist.

    ``folder`` has the library as ``cells.lib``; ``nets`` are ``{scope: {net: (transitions a clock, share of the time at
    1)}}``, a scope being the tuple of instances below the top module.
    """
    verilog = _without_clock_gates(verilog, library)
    (folder / timing.NETLIST).write_text(verilog)
    timing.write_bare_library(folder)
    script = _SCRIPT.format(
        nanoseconds=period_ps / 1000,
        activities="\n".join(_activities(_cells(instances(verilog), top, library), library, nets)),
    )
    output = timing.run_opensta(folder, script, timing.BARE_LIBRARY, top, library, clock)
    total = _TOTAL.search(output.split("power begin")[1].split("power end")[0])
    if not total:
        raise ValueError("OpenSTA reports no power: does the library have power tables?")
    names = ("internal_mw", "switching_mw", "leakage_mw", "total_mw")
    return {name: 1000 * float(watts) for name, watts in zip(names, total.groups(), strict=True)}


def _without_clock_gates(verilog, library):
    """The netlist with the clock itself in place of gated clocks: a gate that drives all loads has no sensible slew."""
    parts = re.split(r"^(?=module )", verilog, flags=re.MULTILINE)
    for index, text in enumerate(parts):
        for match in _INSTANCE.finditer(text):
            if match[1] in library.cells and library.cells[match[1]].storage == "clock gate":
                roles, pins = library.cells[match[1]].clock_gate, dict(_PIN.findall(match[3]))
                parts[index] = parts[index].replace(match[0] + "\n", "")
                gated = rf"\({re.escape(pins[roles['out']])}\)"
                parts[index] = re.sub(gated, lambda _, to=pins[roles["clock"]]: f"({to})", parts[index])
    return "".join(parts)


def _cells(modules, top, library):
    """``(path, kind, {pin: net})`` of every library cell, the path being a tuple of instances."""

    def walk(module, scope):
        for kind, label, pins in modules[module]:
            if kind in library.cells:
                yield (*scope, label), kind, pins
            elif kind in modules:
                yield from walk(kind, (*scope, label))

    return walk(top, ())


def _activities(cells, library, nets):
    """Lines of pin, transitions a clock and duty, for every pin whose net was seen."""
    paired = {name: _paired_outputs(cell) for name, cell in library.cells.items()}
    for path, kind, pins in cells:
        known = nets.get(path[:-1], {})
        for pin, net in pins.items():
            if net in known:
                transitions, share = known[net]
                # OpenSTA takes an output of a flip-flop and its complement as independent: half of the time each.
                duty = 0.5 if pin in paired[kind] else share
                yield f"{'/'.join((*path, pin))} {transitions:.5f} {duty:.4f}"


def _paired_outputs(cell):
    """The outputs of a flip-flop that has its complement too."""
    outputs = set(cell.functions.values())
    return set(cell.functions) if cell.storage == "flip-flop" and set(cell.state_names) <= outputs else set()
