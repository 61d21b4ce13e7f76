"""Interface timing of a module, and boundary constraints of the modules inside it, from its analysis."""

from collections import Counter

import numpy as np

from hw.synthesis.sta.interface_timing import NEVER, BoundaryConstraints, Driver, InterfaceTiming


def interface_timing(analysis):
    """The :class:`InterfaceTiming` of a module, as its analysis is now."""
    required = analysis.required(analysis.period).reshape(-1, 2)
    arrival, slew, load = analysis.arrival.reshape(-1, 2), analysis.slew.reshape(-1, 2), analysis.load.reshape(-1, 2)
    interface = InterfaceTiming()
    arcs = np.argsort(analysis.to, kind="stable")
    first = np.searchsorted(analysis.to[arcs] // 2, np.arange(analysis.n_nodes // 2 + 1))
    inputs = set(analysis.inputs.tolist())
    for key, net in analysis.ports("output"):
        found = arcs[first[net] : first[net + 1]]
        if not len(found) or net in inputs:
            interface.arrival[key], interface.slew[key] = tuple(arrival[net]), tuple(slew[net])
            continue
        kind = analysis.kinds[analysis.kind[analysis.arc_cell[found[0]]]]
        pins = {analysis.pin_names[pin]: analysis.pin_net[pin] for pin in analysis.arc_pin[found]}
        interface.drivers[key] = Driver(
            kind,
            analysis.tables.cells[kind].shape[analysis.arc_number[found[0]]][1],
            {pin: (tuple(arrival[origin]), tuple(slew[origin])) for pin, origin in pins.items()},
            tuple(load[net] - analysis.output_loads[net]),
        )
    for key, net in analysis.ports("input"):
        interface.load[key] = tuple(load[net])
        if np.isfinite(required[net]).all():
            interface.needed[key] = tuple(analysis.period - required[net])
    return interface


def add_constraints(analysis, netlist, interfaces, found, goal_ps=np.inf):
    """Add the constraints of the modules inside to ``found``, see :func:`.hierarchy.constrain_boundaries`."""
    needed = analysis.period - analysis.required(analysis.period).reshape(-1, 2)
    arrival, slew, load = analysis.arrival.reshape(-1, 2), analysis.slew.reshape(-1, 2), analysis.load.reshape(-1, 2)
    shares = np.minimum(1, goal_ps / np.maximum(arrival + needed, 1))
    arrival, needed = (np.where(times > 0, shares * times, times) for times in (arrival, needed))
    resistance = analysis.resistances().reshape(-1, 2)
    alike = Counter(
        (cell["type"], port, bit)
        for cell in analysis.module["cells"].values()
        if cell["type"] in interfaces
        for port, bits in cell["connections"].items()
        for bit in bits
    )
    for cell in analysis.module["cells"].values():
        interface = interfaces.get(cell["type"])
        if interface is None:
            continue
        constraints = found.setdefault(cell["type"], BoundaryConstraints(is_complete=analysis.is_complete))
        for port, content in netlist.modules[cell["type"]]["ports"].items():
            for bit, name in enumerate(cell["connections"].get(port, ())):
                key, net = (port, bit), analysis.net_of(name)
                if net is None:
                    continue
                if content["direction"] == "input":
                    if key in interface.load and arrival[net].max() > NEVER / 2:
                        constraints.include("arrival", key, arrival[net])
                        constraints.include("slew", key, slew[net])
                        # Alike instances at a net change their loads together.
                        constraints.include("resistance", key, resistance[net] * alike[cell["type"], port, name])
                        constraints.include("reference_load", key, interface.load[key])
                elif key in interface.drivers or key in interface.arrival:
                    inside = interface.drivers[key].load if key in interface.drivers else (0, 0)
                    constraints.include("load", key, np.maximum(load[net] - inside, 0))
                    constraints.include("needed", key, np.where(np.isfinite(needed[net]), needed[net], NEVER))
    return found
