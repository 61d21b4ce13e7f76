"""Static timing of one module of a mapped netlist: all paths in a few hundredths of a second.

Sizing asks for the timing of a netlist hundreds of times, which no timing analyser in another process can keep up with.
The model is OpenSTA's: worst slew and worst arrival of each edge of each net, tables of the library, no wires, an
ideal clock, inputs that arrive with the clock through the smallest buffer. Times in ps, loads in fF.

What modules and those around them know of each other is in :mod:`hw.synthesis.sta.interface_timing`.
"""

import numpy as np

from hw.synthesis.sta.graph import TimingGraph
from hw.synthesis.sta.interface_timing import NEVER, BoundaryConstraints


class Analysis(TimingGraph):
    """The timing of a module; :meth:`update` works out arrivals and slews."""

    def __init__(self, netlist, module, tables, library, clock, interfaces=None, constraints=None):
        super().__init__(netlist, module, tables, library, clock, interfaces)
        self._constraints = constraints or BoundaryConstraints()
        self._driver = tables.cells[library.buffer.name]
        self._set_constraints()

    @property
    def is_complete(self):
        """Whether there are no paths from and to ports of which nothing is known."""
        return self._constraints.is_complete

    def update(self):
        """Arrivals, slews, delays and the ends' times for the kinds that the cells have now; returns the period."""
        load = np.zeros((self.n_nodes // 2, 2))
        np.add.at(load, self.pin_net, self.capacitances(self.kind))
        np.add.at(load, *self._fixed["load"])
        load += self.output_loads
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

    def _set_constraints(self):
        """Loads and times at the module's own ports, by net or in the order of the outputs."""
        constraints = self._constraints
        self.output_loads = np.zeros((self.n_nodes // 2, 2))
        needed = np.full((self.n_nodes // 2, 2), NEVER)
        standard, due = self.library.output_load, NEVER if constraints.is_complete else 0.0
        for key, net in self.ports("output"):
            self.output_loads[net] = np.maximum(self.output_loads[net], constraints.load.get(key, standard))
            needed[net] = np.maximum(needed[net], constraints.needed.get(key, due))
        self._output_needed = needed[self.outputs]
        known = [(net, key) for key, net in self.ports("input") if key in constraints.arrival]
        self._known_inputs = np.array([net for net, _ in known], np.intp)
        self._known_arrival = np.array([constraints.arrival[key] for _, key in known]).reshape(-1, 2)
        self._known_slew = np.array([constraints.slew[key] for _, key in known]).reshape(-1, 2)
        self._known_resistance = np.array([constraints.resistance[key] for _, key in known]).reshape(-1, 2)
        self._reference_load = np.array([constraints.reference_load[key] for _, key in known]).reshape(-1, 2)

    def _drive_inputs(self):
        """An input arrives when it is known to, else as late as its load delays the buffer that drives it.

        A known arrival holds for the load that the input had when it was found.
        """
        self.resistance = np.zeros(self.n_nodes)  # ps for a fF more at an input
        if not self._constraints.is_complete:
            self._drive_by_buffers()
        nets, load = self._known_inputs, self.load.reshape(-1, 2)
        later = self._known_resistance * (load[nets] - self._reference_load)
        self.arrival.reshape(-1, 2)[nets] = self._known_arrival + later
        self.slew.reshape(-1, 2)[nets] = self._known_slew
        self.resistance.reshape(-1, 2)[nets] = self._known_resistance

    def _drive_by_buffers(self):
        arcs = self.tables.arcs
        for number, (_, _, _, edge) in enumerate(self._driver.shape):
            nodes = self.inputs * 2 + edge
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

    def resistances(self):
        """By how many ps each node is later for a fF more."""
        resistance = self.resistance.copy()
        (_, by_load), _ = self.tables.arcs.gradients(self.arc, self.slew[self.origin], self.at_load)
        np.maximum.at(resistance, self.to, by_load)
        return resistance
