"""Buffers: trees for nets that go to many modules, and for the loads of slow nets that have slack.

Those that ABC has put in without knowing the timing, or that are of no use any more, are removed by the same cost.
"""

import numpy as np

from hw.synthesis.repair.sizing import sums

SPARE_PS = 5.0
MOST_LOADS = 20  # of the smallest buffer on a net: what ABC is told for the nets that it sees


def add_trees(netlist, module, analysis, mark):
    """Give every net with many loads, some of them in modules inside, a tree of buffers; returns how many.

    ABC sees no more of such a net than its end in each module. What is needed first is nearest to the root.
    """
    a, library = analysis, netlist.library
    a.update()
    kinds = library.strengths.get(library.buffer.name, [library.buffer.name])
    kind = kinds[len(kinds) // 2]
    (own_load,) = library.cells[kind].inputs.values()
    limit = MOST_LOADS * next(iter(library.buffer.inputs.values()))
    sink_net, loads, slack = _sinks(a, a.period)
    loads = loads.max(axis=1)
    has_inner = np.zeros(a.n_nodes // 2, bool)
    has_inner[sink_net[len(a.pin_net) :]] = True
    has_inner[a.ideal] = False
    order = np.argsort(sink_net, kind="stable")
    first = np.searchsorted(sink_net[order], np.arange(len(has_inner) + 1))
    bits, n_added = a.bits(), 0
    for net in np.flatnonzero(has_inner):
        found = order[first[net] : first[net + 1]]
        found = found[np.argsort(-slack[found], kind="stable")]
        sinks, load = [(_sink(a, n), loads[n]) for n in found], loads[found].sum()
        while load > limit and sinks:
            # Those with the most time are put behind a buffer, which is then one more sink.
            n_behind, behind = 1, sinks[0][1]
            while n_behind < len(sinks) and behind + sinks[n_behind][1] <= limit:
                behind += sinks[n_behind][1]
                n_behind += 1
            if behind <= 2 * own_load:
                del sinks[0]  # too little for a buffer, whatever comes after it
                continue
            name = f"{mark}{n_added}"
            _insert(netlist, module, bits[net], kind, [sink for sink, _ in sinks[:n_behind]], name)
            sinks = [*sinks[n_behind:], ((name, next(iter(library.cells[kind].inputs)), 0), own_load)]
            load += own_load - behind
            n_added += 1
    return n_added


def add_buffers(netlist, module, sizer, target, mark):
    """Put buffers into a module's netlist where that lowers the cost by the gradient; returns how many.

    Of a net whose load costs, the sinks that can wait for a buffer move behind one. New cells are named by ``mark``.
    """
    a = sizer.analysis
    gradient = sizer.gradient(target)
    buffers = _buffers(a, netlist.library)
    load_cost = gradient.load.reshape(-1, 2)
    sink_net, capacitance, slack = _sinks(a, target.goal_ps)
    order = np.argsort(sink_net, kind="stable")
    first = np.searchsorted(sink_net[order], np.arange(len(load_cost) + 1))
    is_candidate = (load_cost * a.load.reshape(-1, 2)).sum(1) > min(area for area, *_ in buffers)
    is_candidate[a.ideal] = False
    is_candidate &= np.diff(first) > 0
    bits = a.bits()
    n_added = 0
    for net in np.flatnonzero(is_candidate):
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
            sinks = [_sink(a, n) for n in best[2]]
            _insert(netlist, module, bits[net], best[1], sinks, f"{mark}{n_added}")
            n_added += 1
    return n_added


def remove_buffers(netlist, module, sizer, target):
    """Take buffers out of a module's netlist where that lowers the cost by the gradient; returns how many.

    Their loads move to the net before them, at most one buffer's to a net at a time.
    """
    a, library = sizer.analysis, netlist.library
    gradient = sizer.gradient(target)
    cells = netlist.modules[module]["cells"]
    of_kind = {kind: _is_buffer(library.cells[kind]) for kind in a.kinds}
    is_buffer = np.array(
        [
            not inside and of_kind.get(cells[name]["type"], False)
            for name, inside in zip(a.cells, a.is_inside, strict=True)
        ]
    )
    net_load, load_cost = a.load.reshape(-1, 2), gradient.load.reshape(-1, 2)
    saved = sums(a.arc_cell, gradient.delay * a.delay, len(a.kind))
    own = a.capacitances(a.kind)
    limits = np.full(len(net_load), np.inf)
    driver = np.full(len(net_load), -1)
    driver[a.to // 2] = a.arc_cell
    driven = driver >= 0
    limits[driven] = sizer.limits()[driver[driven]]
    output = {int(cell): int(to) // 2 for cell, to in zip(a.arc_cell, a.to, strict=True) if is_buffer[cell]}
    at_output, ideal = set(a.outputs.tolist()), set(a.ideal.tolist())
    best = {}
    for pin in np.flatnonzero(is_buffer[a.pin_cell]):
        cell, net = int(a.pin_cell[pin]), int(a.pin_net[pin])
        behind = output.get(cell)
        if behind is None or behind in at_output or net in ideal:
            continue
        more = net_load[behind] - own[pin]
        if (net_load[net] + more).max() > limits[net]:
            continue
        gain = sizer.area_of(cell) + saved[cell] - (load_cost[net] * more).sum()
        if gain > best.get(net, (0,))[0]:
            best[net] = (gain, cell, behind)
    # Of buffers one behind the other only one is removed at a time.
    chosen = {net: item for net, item in best.items() if net not in {behind for _, _, behind in best.values()}}
    bits = a.bits()
    for _, cell, _ in chosen.values():
        del cells[a.cells[cell]]
    netlist.alias(module, {bits[behind]: bits[net] for net, (_, _, behind) in chosen.items()})
    return len(chosen)


def _is_buffer(cell):
    return not cell.storage and len(cell.functions) == 1 and cell.truth(next(iter(cell.functions))) == (0, 1)


def _sinks(a, goal_ps):
    """Net, load and slack of the input pins, and of the inputs of modules inside."""
    inner_net, inner_load = a.inner_loads
    needed = a.inner_needed
    slack = np.concatenate([_pin_slacks(a, goal_ps), (goal_ps - needed - a.arrival.reshape(-1, 2)[inner_net]).min(1)])
    loads = np.concatenate([a.capacitances(a.kind), inner_load])
    return np.concatenate([a.pin_net, inner_net]), loads, slack


def _sink(a, n):
    """``(cell, pin, bit)`` of a sink."""
    if n < len(a.pin_net):
        return a.cells[a.pin_cell[n]], a.pin_names[n], 0
    return a.inner_sinks[n - len(a.pin_net)]


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
    for sink, pin, place in sinks:
        connections = netlist.modules[module]["cells"][sink]["connections"]
        connections[pin] = [new if n == place else old for n, old in enumerate(connections[pin])]
    netlist.add_cell(module, name, kind, {next(iter(cell.inputs)): [bit], next(iter(cell.functions)): [new]})
