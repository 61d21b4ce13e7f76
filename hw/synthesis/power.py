"""Power of a mapped netlist by OpenSTA, from how often each of its nets changes."""

import re

from hw.synthesis import timing

__all__ = ["ASSUMPTIONS", "report"]

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


def report(folder, netlist, top, clock, period_ps, nets):
    """``{internal_mw, switching_mw, leakage_mw, total_mw}`` of a :class:`hw.synthesis.netlist.Netlist`.

    ``folder`` has the library as ``cells.lib``; ``nets`` are ``{scope: {net: (transitions a clock, share of the time at
    1)}}``, a scope being the tuple of instances below the top module.
    """
    netlist = _without_clock_gates(netlist, top)
    (folder / timing.NETLIST).write_text(netlist.verilog())
    timing.write_bare_library(folder)
    activities = "\n".join(_activities(netlist, top, nets))
    script = _SCRIPT.format(nanoseconds=period_ps / 1000, activities=activities)
    output = timing.run_opensta(folder, script, timing.BARE_LIBRARY, top, netlist.library, clock)
    total = _TOTAL.search(output.split("power begin")[1].split("power end")[0])
    if not total:
        raise ValueError("OpenSTA reports no power: does the library have power tables?")
    names = ("internal_mw", "switching_mw", "leakage_mw", "total_mw")
    return {name: 1000 * float(watts) for name, watts in zip(names, total.groups(), strict=True)}


def _without_clock_gates(netlist, top):
    """The netlist with the clock itself in place of gated clocks: a gate that drives all loads has no sensible slew."""
    for module in netlist.modules_below(top):
        netlist, gated = netlist.copy(module), {}
        cells = netlist.modules[module]["cells"]
        for label, cell in list(cells.items()):
            kind = netlist.library.cells.get(cell["type"])
            if kind is not None and kind.storage == "clock gate":
                (gate,), (clock,) = (cell["connections"][kind.clock_gate[role]] for role in ("out", "clock"))
                gated[gate] = clock
                del cells[label]
        netlist.alias(module, gated)
    return netlist


def _activities(netlist, top, nets):
    """Lines of pin, transitions a clock and duty, for every pin whose net was seen."""
    paired = {name: _paired_outputs(cell) for name, cell in netlist.library.cells.items()}
    for scope, label, kind, pins in netlist.cells_below(top):
        known = nets.get(scope, {})
        for pin, net in pins.items():
            if net in known:
                transitions, share = known[net]
                # OpenSTA takes an output of a flip-flop and its complement as independent: half of the time each.
                duty = 0.5 if pin in paired[kind] else share
                yield f"{'/'.join((*scope, label, pin))} {transitions:.5f} {duty:.4f}"


def _paired_outputs(cell):
    """The outputs of a flip-flop that has its complement too."""
    outputs = set(cell.functions.values())
    return set(cell.functions) if cell.storage == "flip-flop" and set(cell.state_names) <= outputs else set()
