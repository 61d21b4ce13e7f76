"""One module of a mapped netlist as a graph of timing arcs, in NumPy arrays."""

import numpy as np

from hw.synthesis.sta.interface_timing import NEVER


class TimingGraph:
    """The arcs of a module.

    A node is an edge of a net: ``2 * net`` is rising, ``2 * net + 1`` falling. An arc is one of a cell's, from a node
    to a node; its tables are found from the cell's type, so that a cell changes its strength by a new ``kind``.
    ``interfaces`` has the interface timing of the modules that are instances here, by name.
    """

    def __init__(self, netlist, module, tables, library, clock, interfaces=None):
        self.tables, self.library, self.module = tables, library, netlist.modules[module]
        self.cells = list(netlist.modules[module]["cells"])
        self.kinds = list(tables.cells)
        self._number = {kind: n for n, kind in enumerate(self.kinds)}
        self._first_arc = np.array([tables.cells[kind].first for kind in self.kinds], np.intp)
        self._first_setup = np.array([tables.cells[kind].first_setup for kind in self.kinds], np.intp)
        content = netlist.modules[module]
        self._nets = {None: 0}  # no net has the number 0
        self._fixed = {"load": [], "needed": [], "arrival": [], "slew": []}  # at the ports of instances of modules
        self.inner_sinks = []  # (instance, port, bit) of their inputs, in the order of the fixed loads
        clocks = self._clock_nets(content, clock)
        kinds = [cell["type"] for cell in content["cells"].values()]
        kind, arcs, setups, pins, drivers = [], [], [], [], []
        for n, (name, cell) in enumerate(content["cells"].items()):
            known = tables.cells.get(cell["type"])
            kind.append(self._number.get(cell["type"], -1))
            if known is None:  # a memory has no timing
                if cell["type"] in (interfaces or {}):
                    drivers += self._add_interface(name, interfaces[cell["type"]], cell["connections"])
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
        # Drivers inside other modules, whose strength is not changed here.
        self.is_inside = np.arange(len(kind)) >= len(content["cells"])
        self.inputs = self._port_nets(content, "input", clocks)
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

    def net_of(self, bit):
        """The number of a net, None if nothing here is connected to it."""
        return self._nets.get(bit)

    def _net(self, bit):
        return self._nets.setdefault(bit, len(self._nets))

    def _add_interface(self, instance, interface, connections):
        """Take over the interface timing of an instance; returns ``(name, net, driver)`` of its outputs."""
        for what in ("arrival", "slew"):
            for (port, bit), pair in getattr(interface, what).items():
                if isinstance(connections[port][bit], int):
                    self._fixed[what].append((self._net(connections[port][bit]), pair))
        for (port, bit), pair in interface.load.items():
            if isinstance(connections[port][bit], int):
                net = self._net(connections[port][bit])
                self.inner_sinks.append((instance, port, bit))
                self._fixed["load"].append((net, pair))
                self._fixed["needed"].append((net, interface.needed.get((port, bit), (NEVER, NEVER))))
        found = []
        for (port, bit), driver in interface.drivers.items():
            if isinstance(connections[port][bit], int):
                found.append((f"{instance}/{port}[{bit}]", self._net(connections[port][bit]), driver))
        return found

    def ports(self, *directions):
        """``((port, bit), net)`` of this module, without constants and clocks."""
        ideal = set(self.ideal.tolist())
        for port, content in self.module["ports"].items():
            if content["direction"] in directions:
                for bit, name in enumerate(content["bits"]):
                    net = self.net_of(name)
                    if net is not None and net not in ideal:
                        yield (port, bit), net

    def _port_nets(self, content, direction, left_out):
        ports = (port for port in content["ports"].values() if port["direction"] == direction)
        bits = dict.fromkeys(bit for port in ports for bit in port["bits"])
        bits = [bit for bit in bits if isinstance(bit, int) and bit not in left_out]
        return np.array([self._net(bit) for bit in bits], np.intp)

    def _clock_nets(self, content, clock):
        """The clock's own net and those behind clock gates: ideal."""
        nets = set(content["ports"].get(clock, {"bits": ()})["bits"])
        for cell in content["cells"].values():
            known = self.library.cells.get(cell["type"])
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
        self.arc_cell, self.arc_number, self.arc_pin, self.arc_edge, self.to = arcs[order].T
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
        return self._first_arc[kinds[self.arc_cell[arcs]]] + self.arc_number[arcs]


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
