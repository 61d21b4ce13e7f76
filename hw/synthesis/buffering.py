"""Buffers for the loads of slow nets that have time to spare, as the timing of a whole module shows them."""

import numpy as np

SPARE_PS = 5.0


def add_buffers(netlist, module, sizer, aim, mark):
    """Put buffers into a module's netlist where that lowers the cost by the gradient; returns how many.

    Of a net whose load costs, the sinks that can wait for a buffer move behind one. New cells are named by ``mark``.
    """
    a = sizer.analysis
    gradient = sizer.gradient(aim)
    slack = _pin_slacks(a, aim.goal_ps)
    buffers = _buffers(a, netlist.library)
    load_cost = gradient.load.reshape(-1, 2)
    capacitance = a.capacitances(a.kind)
    order = np.argsort(a.pin_net, kind="stable")
    first = np.searchsorted(a.pin_net[order], np.arange(len(load_cost) + 1))
    hopeful = (load_cost * a.load.reshape(-1, 2)).sum(1) > min(area for area, *_ in buffers)
    hopeful[a.ideal] = False
    hopeful &= np.diff(first) > 0
    bits = a.bits()
    n_added = 0
    for net in np.flatnonzero(hopeful):
        pins = order[first[net] : first[net + 1]]
        best = (0.0, None, None)
        for area, kind, input_load, first_arc, edges in buffers:
            pins_left = pins[np.argsort(-slack[pins])]
            total = np.cumsum(capacitance[pins_left], axis=0)
            # The delay of a buffer with the first k pins behind it, for all k at once.
            delay = np.zeros(len(pins_left))
            for number, edge in enumerate(edges):
                arc = np.full(len(delay), first_arc + number)
                at_loads = a.tables.arcs.at_loads(arc, total[:, edge])
                slew = np.full(len(arc), a.slew[2 * net + edge])
                delay = np.maximum(delay, a.tables.arcs.look_up(arc, slew, at_loads)[0])
            gain = ((total - input_load) * load_cost[net]).sum(1) - area
            gain[slack[pins_left] < delay + SPARE_PS] = 0
            k = int(np.argmax(gain))
            if gain[k] > best[0]:
                best = (gain[k], kind, pins_left[: k + 1])
        if best[1] is not None:
            sinks = [(a.cells[a.pin_cell[n]], a.pin_names[n]) for n in best[2]]
            _insert(netlist, module, bits[net], best[1], sinks, f"{mark}{n_added}")
            n_added += 1
    return n_added


def _pin_slacks(a, goal_ps):
    """How much later the signal may come at each input pin."""
    required = a.required(goal_ps)
    slack = np.full(len(a.pin_net), np.inf)
    origin = a.origin
    np.minimum.at(slack, a.arc_pin, required[a.to] - a.delay - a.arrival[origin])
    node = 2 * a.pin_net[a.setup_pin] + a.setup_edge
    np.minimum.at(slack, a.setup_pin, goal_ps - a.setup_time - a.arrival[node])
    return slack


def _buffers(a, library):
    """``(area, kind, load of its input, first arc, edges of its arcs)`` of the library's buffers."""
    found = []
    for kind in library.strengths.get(library.buffer.name, [library.buffer.name]):
        cell, tables = library.cells[kind], a.tables.cells[kind]
        (pin,) = cell.inputs
        edges = [edge for _, _, _, edge in tables.shape]
        found.append((cell.area, kind, np.array(tables.capacitance[pin]), tables.first, edges))
    return found


def _insert(netlist, module, bit, kind, sinks, name):
    cell = netlist.library.cells[kind]
    new = netlist.new_net(module)
    for sink, pin in sinks:
        netlist.modules[module]["cells"][sink]["connections"][pin] = [new]
    netlist.add_cell(module, name, kind, {next(iter(cell.inputs)): [bit], next(iter(cell.functions)): [new]})
