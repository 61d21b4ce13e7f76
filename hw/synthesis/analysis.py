"""Static timing of one module of a mapped netlist with NumPy: all paths in a few hundredths of a second.

Sizing asks for the timing of a netlist hundreds of times, which no timing analyser in another process can keep up with.
The model is OpenSTA's: worst slew and worst arrival of each edge of each net, tables of the library, no wires, an
ideal clock, inputs that arrive with the clock through the smallest buffer. Times in ps, loads in fF.

What modules that were kept and those around them know of each other is in :mod:`hw.synthesis.interface_timing`.
"""

from collections import Counter

import numpy as np

from hw.synthesis.interface_timing import NEVER, BoundaryConstraints, Driver, InterfaceTiming
from hw.synthesis.recipes import output_load


class Analysis:
    """The arcs of a module; :meth:`update` works out arrivals and slews.

    A node is an edge of a net: ``2 * net`` is rising, ``2 * net + 1`` falling. An arc is one of a cell's, from a node
    to a node; its tables are found from the cell's type, so that a cell changes its strength by a new ``kind``.
    """

    def __init__(self, netlist, module, tables, library, clock, borders=None, surroundings=None):
        self.tables, self._library, self._module = tables, library, netlist.modules[module]
        self._surroundings = surroundings or BoundaryConstraints()
        self.cells = list(netlist.modules[module]["cells"])
        self.kinds = list(tables.cells)
        self._number = {kind: n for n, kind in enumerate(self.kinds)}
        self._first_arc = np.array([tables.cells[kind].first for kind in self.kinds], np.intp)
        self._first_setup = np.array([tables.cells[kind].first_setup for kind in self.kinds], np.intp)
        content = netlist.modules[module]
        self._nets = {None: 0}  # no net has the number 0
        self._fixed = {"load": [], "needed": [], "arrival": [], "slew": []}  # at the borders of modules inside
        self.inner_sinks = []  # (instance, port, bit) of their inputs, in the order of the fixed loads
        clocks = self._clock_nets(content, clock)
        kinds = [cell["type"] for cell in content["cells"].values()]
        kind, arcs, setups, pins, drivers = [], [], [], [], []
        for n, (name, cell) in enumerate(content["cells"].items()):
            known = tables.cells.get(cell["type"])
            kind.append(self._number.get(cell["type"], -1))
            if known is None:  # a memory has no timing
                if cell["type"] in (borders or {}):
                    drivers += self._set_border(name, borders[cell["type"]], cell["connections"])
                continue
            net = {pin: self._net(bits[0]) for pin, bits in cell["connections"].items() if bits}
            gate = library.cells[cell["type"]].storage == "clock gate"
            used = [pin for pin in sorted(library.cells[cell["type"]].inputs) if pin in net]
            place = {pin: len(pins) + k for k, pin in enumerate(used)}
            pins += [(n, pin, net[pin]) for pin in place]
            for number, (pin, to, from_edge, to_edge) in enumerate(known.shape):
                if not gate and pin in place and to in net:
                    arcs.append((n, number, place[pin], from_edge, 2 * net[to] + to_edge))
            setups += [(n, k, place[pin], edge) for k, (pin, edge) in enumerate(known.setup_shape) if pin in place]
        for name, net, driver in drivers:
            n, known = len(kind), tables.cells[driver.kind]
            self.cells.append(name)
            kinds.append(driver.kind)
            kind.append(self._number[driver.kind])
            place = {}
            for pin, (arrival, slew) in sorted(driver.inputs.items()):
                place[pin] = len(pins)
                inside = self._net((name, pin))
                pins.append((n, pin, inside))
                self._fixed["arrival"].append((inside, arrival))
                self._fixed["slew"].append((inside, slew))
            for number, (pin, to, from_edge, to_edge) in enumerate(known.shape):
                if pin in place and to == driver.pin:
                    arcs.append((n, number, place[pin], from_edge, 2 * net + to_edge))
        self.kind = np.array(kind, np.intp)
        # Cells of modules inside, which are what they are.
        self.is_inside = np.arange(len(kind)) >= len(content["cells"])
        self._inputs = self._port_nets(content, "input", clocks)
        self.outputs = self._port_nets(content, "output", ())
        self.pin_names = [pin[1] for pin in pins]
        # Pins are numbered in the order of their names, so that cells of one function agree.
        order = {kind: {pin: n for n, pin in enumerate(sorted(library.cells[kind].inputs))} for kind in self.kinds}
        self._pin_number = np.array([order[kinds[cell]][pin] for cell, pin, _ in pins], np.intp)
        self.pin_cell = np.array([pin[0] for pin in pins], np.intp)
        self.pin_net = np.array([pin[2] for pin in pins], np.intp)
        self.ideal = np.array(sorted(self._net(bit) for bit in clocks), np.intp)
        self.n_nodes = 2 * len(self._nets)
        self._set_arcs(np.array(arcs, np.intp).reshape(-1, 5))
        self._setup_cell, self._setup_number, self.setup_pin, self.setup_edge = (
            np.array(setups, np.intp).reshape(-1, 4).T
        )
        most = max(len(cell.inputs) for cell in library.cells.values())
        self._capacitance = np.zeros((len(self.kinds), most, 2))
        for n, name in enumerate(self.kinds):
            for number, pin in enumerate(sorted(library.cells[name].inputs)):
                self._capacitance[n, number] = tables.cells[name].capacitance[pin]
        self._fixed = {
            what: (np.array([net for net, _ in rows], np.intp), np.array([pair for _, pair in rows]).reshape(-1, 2))
            for what, rows in self._fixed.items()
        }
        self._driver = tables.cells[library.buffer.name]
        self._surround()

    def write(self, netlist, module):
        """Put the cells' kinds and the exchanges of their pins into a netlist."""
        cells, bits = netlist.modules[module]["cells"], self.bits()
        for name, kind, is_inside in zip(self.cells, self.kind, self.is_inside, strict=True):
            if kind >= 0 and not is_inside:
                cells[name]["type"] = self.kinds[kind]
        for cell, pin, net in zip(self.pin_cell, self.pin_names, self.pin_net, strict=True):
            if not self.is_inside[cell]:
                cells[self.cells[cell]]["connections"][pin] = [bits[net]]

    def bits(self):
        """What the netlist calls each net."""
        return list(self._nets)

    def _net(self, bit):
        return self._nets.setdefault(bit, len(self._nets))

    def _set_border(self, instance, border, connections):
        """Take over what an instance shows; returns ``(name, net, driver)`` of its outputs."""
        for what in ("arrival", "slew"):
            for (port, bit), pair in getattr(border, what).items():
                if isinstance(connections[port][bit], int):
                    self._fixed[what].append((self._net(connections[port][bit]), pair))
        for (port, bit), pair in border.load.items():
            if isinstance(connections[port][bit], int):
                net = self._net(connections[port][bit])
                self.inner_sinks.append((instance, port, bit))
                self._fixed["load"].append((net, pair))
                self._fixed["needed"].append((net, border.needed.get((port, bit), (NEVER, NEVER))))
        found = []
        for (port, bit), driver in border.drivers.items():
            if isinstance(connections[port][bit], int):
                found.append((f"{instance}/{port}[{bit}]", self._net(connections[port][bit]), driver))
        return found

    def _ports(self, *directions):
        """``((port, bit), net)`` of this module, without constants and clocks."""
        ideal = set(self.ideal.tolist())
        for port, content in self._module["ports"].items():
            if content["direction"] in directions:
                for bit, name in enumerate(content["bits"]):
                    net = self._nets.get(name)
                    if net is not None and net not in ideal:
                        yield (port, bit), net

    def border(self):
        """The :class:`InterfaceTiming` of this module, as it is now."""
        required = self.required(self.period).reshape(-1, 2)
        arrival, slew, load = self.arrival.reshape(-1, 2), self.slew.reshape(-1, 2), self.load.reshape(-1, 2)
        border = InterfaceTiming()
        arcs = np.argsort(self.to, kind="stable")
        first = np.searchsorted(self.to[arcs] // 2, np.arange(self.n_nodes // 2 + 1))
        inputs = set(self._inputs.tolist())
        for key, net in self._ports("output"):
            found = arcs[first[net] : first[net + 1]]
            if not len(found) or net in inputs:
                border.arrival[key], border.slew[key] = tuple(arrival[net]), tuple(slew[net])
                continue
            kind = self.kinds[self.kind[self.arc_cell[found[0]]]]
            pins = {self.pin_names[pin]: self.pin_net[pin] for pin in self.arc_pin[found]}
            border.drivers[key] = Driver(
                kind,
                self.tables.cells[kind].shape[self._arc_number[found[0]]][1],
                {pin: (tuple(arrival[origin]), tuple(slew[origin])) for pin, origin in pins.items()},
                tuple(load[net] - self._output_loads[net]),
            )
        for key, net in self._ports("input"):
            border.load[key] = tuple(load[net])
            if np.isfinite(required[net]).all():
                border.needed[key] = tuple(self.period - required[net])
        return border

    def surroundings(self, netlist, borders, found, goal_ps=np.inf):
        """Add what the modules inside meet here to ``found``, see :func:`hw.synthesis.hierarchy.constrain_boundaries`."""
        needed = self.period - self.required(self.period).reshape(-1, 2)
        arrival, slew, load = self.arrival.reshape(-1, 2), self.slew.reshape(-1, 2), self.load.reshape(-1, 2)
        shares = np.minimum(1, goal_ps / np.maximum(arrival + needed, 1))
        arrival, needed = (np.where(times > 0, shares * times, times) for times in (arrival, needed))
        resistance = self._resistances().reshape(-1, 2)
        alike = Counter(
            (cell["type"], port, bit)
            for cell in self._module["cells"].values()
            if cell["type"] in borders
            for port, bits in cell["connections"].items()
            for bit in bits
        )
        for cell in self._module["cells"].values():
            border = borders.get(cell["type"])
            if border is None:
                continue
            around = found.setdefault(cell["type"], BoundaryConstraints(is_complete=self._surroundings.is_complete))
            for port, content in netlist.modules[cell["type"]]["ports"].items():
                for bit, name in enumerate(cell["connections"].get(port, ())):
                    key, net = (port, bit), self._nets.get(name)
                    if net is None:
                        continue
                    if content["direction"] == "input":
                        if key in border.load and arrival[net].max() > NEVER / 2:
                            around.include("arrival", key, arrival[net])
                            around.include("slew", key, slew[net])
                            # Alike instances at a net change their loads together.
                            around.include("resistance", key, resistance[net] * alike[cell["type"], port, name])
                            around.include("load_then", key, border.load[key])
                    elif key in border.drivers or key in border.arrival:
                        inside = border.drivers[key].load if key in border.drivers else (0, 0)
                        around.include("load", key, np.maximum(load[net] - inside, 0))
                        around.include("needed", key, np.where(np.isfinite(needed[net]), needed[net], NEVER))
        return found

    def _resistances(self):
        """By how many ps each node is later for a fF more."""
        resistance = self.resistance.copy()
        (_, by_load), _ = self.tables.arcs.gradients(self.arc, self.slew[self.origin], self.at_load)
        np.maximum.at(resistance, self.to, by_load)
        return resistance

    def _port_nets(self, content, direction, left_out):
        ports = (port for port in content["ports"].values() if port["direction"] == direction)
        bits = dict.fromkeys(bit for port in ports for bit in port["bits"])
        bits = [bit for bit in bits if isinstance(bit, int) and bit not in left_out]
        return np.array([self._net(bit) for bit in bits], np.intp)

    def _clock_nets(self, content, clock):
        """The clock's own net and those behind clock gates: ideal."""
        nets = set(content["ports"].get(clock, {"bits": ()})["bits"])
        for cell in content["cells"].values():
            known = self._library.cells.get(cell["type"])
            if known is not None and known.storage == "clock gate":
                nets.update(bit for pin in known.functions for bit in cell["connections"].get(pin, ()))
        return nets

    def _set_arcs(self, arcs):
        """Sort arcs by the level of the net that they lead to."""
        cell, number, pin, edge, to = arcs.T
        level = np.zeros(self.n_nodes // 2, np.intp)
        origin, end = np.unique(np.stack([self.pin_net[pin], to // 2]), axis=1)
        while True:
            before = level.copy()
            np.maximum.at(level, end, level[origin] + 1)
            if np.array_equal(level, before):
                break
            if level.max(initial=0) > len(self.cells) + 1:
                raise ValueError("the netlist has a combinational loop")
        order = np.lexsort((to, level[to // 2]))
        self.arc_cell, self._arc_number, self.arc_pin, self.arc_edge, self.to = arcs[order].T
        self.forward = _groups(level[self.to // 2], self.to)

    @property
    def inner_loads(self):
        """Nets and loads of the inputs of modules inside, in the order of ``inner_sinks``."""
        return self._fixed["load"]

    @property
    def inner_needed(self):
        """How long before the clock edge they are needed."""
        return self._fixed["needed"][1]

    @property
    def origin(self):
        """The nodes that arcs begin at."""
        return 2 * self.pin_net[self.arc_pin] + self.arc_edge

    def capacitances(self, kinds, pins=slice(None)):
        """The load of input pins on both edges if the cells were of these kinds."""
        return self._capacitance[kinds[self.pin_cell[pins]], self._pin_number[pins]]

    def arc_of(self, kinds, arcs=slice(None)):
        """The library's numbers of arcs if the cells were of these kinds."""
        return self._first_arc[kinds[self.arc_cell[arcs]]] + self._arc_number[arcs]

    def update(self):
        """Arrivals, slews, delays and the ends' times for the kinds that the cells have now; returns the period."""
        load = np.zeros((self.n_nodes // 2, 2))
        np.add.at(load, self.pin_net, self.capacitances(self.kind))
        np.add.at(load, *self._fixed["load"])
        load += self._output_loads
        self.load = load.reshape(-1)
        self.arrival = np.full(self.n_nodes, NEVER)
        self.slew = np.zeros(self.n_nodes)
        self._drive_inputs()
        for what, values in (("arrival", self.arrival), ("slew", self.slew)):
            nets, pairs = self._fixed[what]
            values.reshape(-1, 2)[nets] = pairs
        self.arrival.reshape(-1, 2)[self.ideal] = 0
        self.arc = self.arc_of(self.kind)
        self.at_load = self.tables.arcs.at_loads(self.arc, self.load[self.to])
        self.delay, self.arc_slew = np.empty(len(self.arc)), np.empty(len(self.arc))
        origins = self.origin
        for begin, end, starts, nodes in self.forward:
            part = slice(begin, end)
            at_load = [values[part] for values in self.at_load]
            delay, slew = self.tables.arcs.look_up(self.arc[part], self.slew[origins[part]], at_load)
            self.delay[part], self.arc_slew[part] = delay, slew
            arrival = self.arrival[origins[part]]
            self.arrival[nodes] = np.maximum.reduceat(arrival + delay, starts)
            known = np.where(arrival > NEVER / 2, slew, 0)
            self.slew[nodes] = np.maximum.reduceat(known, starts)
        setups = self.tables.setups
        setup = self._first_setup[self.kind[self._setup_cell]] + self._setup_number
        node = 2 * self.pin_net[self.setup_pin] + self.setup_edge
        (self.setup_time,) = setups.look_up(setup, self.slew[node], setups.at_loads(setup, np.zeros(len(node))))
        both = np.arange(2)
        outputs = (self.outputs[:, None] * 2 + both).reshape(-1)
        inside, needed = self._fixed["needed"]
        inside = (inside[:, None] * 2 + both).reshape(-1)
        self.end_node = np.concatenate([node, inside, outputs])
        self.end_time = np.concatenate([self.setup_time, needed.reshape(-1), self._output_needed.reshape(-1)])
        self.end_arrival = self.arrival[self.end_node] + self.end_time
        self.period = self.end_arrival.max(initial=0)
        return self.period

    def _surround(self):
        """Loads and times at the module's own ports, by net or in the order of the outputs."""
        around = self._surroundings
        self._output_loads = np.zeros((self.n_nodes // 2, 2))
        needed = np.full((self.n_nodes // 2, 2), NEVER)
        standard, due = output_load(self._library), NEVER if around.is_complete else 0.0
        for key, net in self._ports("output"):
            self._output_loads[net] = np.maximum(self._output_loads[net], around.load.get(key, standard))
            needed[net] = np.maximum(needed[net], around.needed.get(key, due))
        self._output_needed = needed[self.outputs]
        known = [(net, key) for key, net in self._ports("input") if key in around.arrival]
        self._known_inputs = np.array([net for net, _ in known], np.intp)
        self._known_arrival = np.array([around.arrival[key] for _, key in known]).reshape(-1, 2)
        self._known_slew = np.array([around.slew[key] for _, key in known]).reshape(-1, 2)
        self._known_resistance = np.array([around.resistance[key] for _, key in known]).reshape(-1, 2)
        self._load_then = np.array([around.load_then[key] for _, key in known]).reshape(-1, 2)

    def _drive_inputs(self):
        """An input arrives when it is known to, else as late as its load delays the buffer that drives it.

        What is known holds for the load that the input had then.
        """
        self.resistance = np.zeros(self.n_nodes)  # ps for a fF more at an input
        if not self._surroundings.is_complete:
            self._drive_by_buffers()
        nets, load = self._known_inputs, self.load.reshape(-1, 2)
        later = self._known_resistance * (load[nets] - self._load_then)
        self.arrival.reshape(-1, 2)[nets] = self._known_arrival + later
        self.slew.reshape(-1, 2)[nets] = self._known_slew
        self.resistance.reshape(-1, 2)[nets] = self._known_resistance

    def _drive_by_buffers(self):
        arcs = self.tables.arcs
        for number, (_, _, _, edge) in enumerate(self._driver.shape):
            nodes = self._inputs * 2 + edge
            arc, zero = np.full(len(nodes), self._driver.first + number), np.zeros(len(nodes))
            at_load = arcs.at_loads(arc, self.load[nodes])
            late, slew = arcs.look_up(arc, zero, at_load)
            own, _ = arcs.look_up(arc, zero, arcs.at_loads(arc, zero))
            self.arrival[nodes], self.slew[nodes] = late - own, slew
            (_, self.resistance[nodes]), _ = arcs.gradients(arc, zero, at_load)

    def required(self, period):
        """When each node may be reached at the latest."""
        required = np.full(self.n_nodes, np.inf)
        np.minimum.at(required, self.end_node, period - self.end_time)
        origin = self.origin
        for begin, end, _, _ in reversed(self.forward):
            np.minimum.at(required, origin[begin:end], required[self.to[begin:end]] - self.delay[begin:end])
        return required


def _groups(level, node):
    """``(begin, end, starts, nodes)`` of each level of arcs that are sorted by level and node."""
    groups = []
    if not len(level):
        return groups
    edges = np.flatnonzero(np.diff(level, prepend=level[:1] - 1))
    for begin, end in zip(edges, [*edges[1:], len(level)], strict=True):
        nodes = node[begin:end]
        starts = np.flatnonzero(np.diff(nodes, prepend=-1))
        groups.append((int(begin), int(end), starts, nodes[starts]))
    return groups
