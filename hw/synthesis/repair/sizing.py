"""Gate sizing: drive strengths and pin exchanges, many at a time, as long as they lower the cost of a mapped module.

The cost is area plus a price for every ps that an end (a register or an output) is late, smoothed so that ends and
paths that are nearly late count a little. Its gradient says, in one pass over all arcs, what a ps more at any arc, a fF
more at any net or a slower edge costs; with it every cell's other strengths, and exchanges of its pins, are evaluated
at once with the library's own tables. The best changes that do not touch each other are made together; if the cost is
not lower, they are undone and fewer are tried.
"""

from dataclasses import dataclass

import numpy as np

SMOOTHING_PS = (20.0, 5.0)
PRICES = (0.05, 0.15, 0.5, 1.5, 5.0)  # µm² for a ps that one end is late
HIGH_PRICE = 0.5  # from which on a higher one is only tried while that still shortens the period
LEAST_GAIN = 2e-5  # of the cost; a round that brings less is the last one
ROUNDS = 60
AREA_RECOVERIES = 3


@dataclass(frozen=True)
class SizingTarget:
    """A period, what a ps of being late costs at each end, and over how many ps that is smoothed."""

    goal_ps: float
    price: float
    smoothing: float

    def late(self, analysis):
        """How late each end is, in smoothing lengths; a little early is late already, for the smoothing's sake."""
        return np.clip((analysis.end_arrival - self.goal_ps) / self.smoothing + 0.5, -50, 1e6)


@dataclass
class Gradient:
    """What a little more costs: of delay at each arc, of slew at each node, of load at each node."""

    delay: np.ndarray
    slew: np.ndarray
    load: np.ndarray
    slowest: np.ndarray  # whether an arc decides its node's slew
    node: np.ndarray  # of delay at each node


class Sizer:
    """Sizes the cells of an :class:`hw.synthesis.analysis.Analysis`, in place."""

    def __init__(self, analysis, library):
        self.analysis = analysis
        kinds, tables = analysis.kinds, analysis.tables
        number = {kind: n for n, kind in enumerate(kinds)}
        self._area = np.array([library.cells[kind].area for kind in kinds])
        self._limit = np.array([tables.cells[kind].maximum_load for kind in kinds])
        self._other = {step: np.arange(len(kinds)) for step in (-2, -1, 1, 2)}
        for n, kind in enumerate(kinds):
            alike = [other for other in library.strengths.get(kind, ()) if _alike(tables, kind, other)]
            for step, other in self._other.items():
                if kind in alike and 0 <= alike.index(kind) + step < len(alike):
                    other[n] = number[alike[alike.index(kind) + step]]
        self._random = np.random.default_rng(1)
        self._swaps = self._swappable(library)

    def _swappable(self, library):
        """The pairs of pins, as ``(first, second)`` rows, that may be exchanged."""
        a, pairs = self.analysis, []
        place = {(int(cell), pin): n for n, (cell, pin) in enumerate(zip(a.pin_cell, a.pin_names, strict=True))}
        for cell, kind in enumerate(a.kind):
            if kind >= 0:
                for pair in () if a.is_inside[cell] else library.cells[a.kinds[kind]].interchangeable:
                    if (cell, pair[0]) in place and (cell, pair[1]) in place:
                        pairs.append([place[cell, pin] for pin in pair])
        self._arcs_of = np.argsort(a.arc_cell, kind="stable")
        self._first_of = np.searchsorted(a.arc_cell[self._arcs_of], np.arange(len(a.kind) + 1))
        return np.array(pairs, np.intp).reshape(-1, 2)

    def area(self):
        """The area of the cells that are the library's."""
        known = (self.analysis.kind >= 0) & ~self.analysis.is_inside
        return self._area[self.analysis.kind[known]].sum()

    def area_of(self, cell):
        """The area of one cell."""
        return self._area[self.analysis.kind[cell]]

    def limits(self):
        """The largest load that each cell may drive."""
        return self._limit[self.analysis.kind]

    def run(self, goal_ps):
        """Size for a period, at a price of being late that rises until the goal is met or that brings nothing more.

        Then area is recovered where the goal leaves slack. Returns the last :class:`SizingTarget`.
        """
        period = self.analysis.update()
        for price in PRICES:
            for smoothing in SMOOTHING_PS:
                self.descend(SizingTarget(goal_ps, price, smoothing))
            before, period = period, self.analysis.period
            if period <= goal_ps:
                self._recover_area(goal_ps, price)
                break
            if price >= HIGH_PRICE and period > before * 0.998:
                break
        return SizingTarget(goal_ps, price, SMOOTHING_PS[-1])

    def _recover_area(self, goal_ps, price):
        """Smaller cells for a target a little later, as long as the goal is met."""
        for _ in range(AREA_RECOVERIES):
            before = self.analysis.kind.copy(), self.analysis.pin_net.copy()
            room = goal_ps - self.analysis.period
            if room < 1:
                return
            area = self.area()
            self.descend(SizingTarget(goal_ps + room, price, SMOOTHING_PS[-1]))
            if self.analysis.period > goal_ps or self.area() >= area:
                self.analysis.kind[:], self.analysis.pin_net[:] = before
                self.analysis.update()
                return

    def cost(self, target):
        """Area, and what being late costs."""
        return self.area() + target.price * target.smoothing * np.logaddexp(0, target.late(self.analysis)).sum()

    def descend(self, target):
        """Make changes as long as they lower the cost."""
        self.analysis.update()
        cost = self.cost(target)
        shares = {self._strengths: 0.5, self._exchanges: 0.5}
        for _ in range(ROUNDS):
            before = cost
            for moves in shares:
                gradient = self.gradient(target)
                cost, shares[moves] = self._try(*moves(gradient), cost, shares[moves], target)
            if before - cost < LEAST_GAIN * cost:
                return

    def _try(self, n_changes, change, cost, share, target):
        """Make the best of some changes, fewer if they do not lower the cost; returns the cost and the share made."""
        n = int(np.ceil(n_changes * share))
        while n:
            undo = change(n)
            self.analysis.update()
            reached = self.cost(target)
            if reached < cost:
                return reached, min(1.0, 1.6 * n / n_changes)
            undo()
            n //= 3
        self.analysis.update()
        return cost, max(share / 3, 1e-3)

    def gradient(self, target):
        """The derivatives of the cost."""
        a, origins = self.analysis, self.analysis.origin
        weight = np.zeros(a.n_nodes)
        np.add.at(weight, a.end_node, target.price / (1 + np.exp(-target.late(a))))
        # An arc's share in the arrival at its node; and the one arc that decides the slew there.
        share = np.exp(np.maximum((a.arrival[origins] + a.delay - a.arrival[a.to]) / target.smoothing, -50))
        share /= sums(a.to, share, a.n_nodes)[a.to]
        slowest = a.arc_slew >= a.slew[a.to]
        (delay_by_slew, delay_by_load), (slew_by_slew, slew_by_load) = a.tables.arcs.gradients(
            a.arc, a.slew[origins], a.at_load
        )
        by_slew, by_delay = np.zeros(a.n_nodes), np.empty(len(a.to))
        for begin, end, _, _ in reversed(a.forward):
            part = slice(begin, end)
            origin, to = origins[part], a.to[part]
            by_delay[part] = weight[to] * share[part]
            np.add.at(weight, origin, by_delay[part])
            passed = np.where(slowest[part], by_slew[to] * slew_by_slew[part], 0)
            np.add.at(by_slew, origin, by_delay[part] * delay_by_slew[part] + passed)
        by_load = sums(a.to, by_delay * delay_by_load, a.n_nodes)
        by_load += sums(a.to, np.where(slowest, by_slew[a.to] * slew_by_load, 0), a.n_nodes)
        by_load += weight * a.resistance  # of what drives an input
        return Gradient(by_delay, by_slew, by_load, slowest, weight)

    def _strengths(self, gradient):
        """``(number, function that makes the first n)`` of the changes of strength that lower the cost, best first."""
        a = self.analysis
        best = np.zeros(len(a.kind))
        best_kind = a.kind.copy()
        for other in self._other.values():
            kind = np.where((a.kind >= 0) & ~a.is_inside, other[a.kind], a.kind)
            gain = self._gain(gradient, kind)
            better = gain > best
            best[better], best_kind[better] = gain[better], kind[better]
        cells = self._apart(best)
        kinds = best_kind[cells]

        def change(n):
            before = a.kind[cells[:n]]
            a.kind[cells[:n]] = kinds[:n]
            return lambda: a.kind.__setitem__(cells[:n], before)

        return len(cells), change

    def _apart(self, gain):
        """The cells whose change gains more than that of any neighbour, best first."""
        a = self.analysis
        gain = gain * (1 + 1e-6 * self._random.random(len(gain)))  # no ties
        most = np.zeros(a.n_nodes // 2)
        np.maximum.at(most, a.pin_net, gain[a.pin_cell])
        np.maximum.at(most, a.to // 2, gain[a.arc_cell])
        first = gain > 1e-9
        first[a.pin_cell[gain[a.pin_cell] < most[a.pin_net]]] = False
        first[a.arc_cell[gain[a.arc_cell] < most[a.to // 2]]] = False
        cells = np.flatnonzero(first)
        return cells[np.argsort(-gain[cells])]

    def _exchanges(self, gradient):
        """``(number, function that makes the first n)`` of the exchanges of pins that lower the cost, best first."""
        a = self.analysis
        of_cell = np.zeros(len(a.kind))
        np.maximum.at(of_cell, a.arc_cell, gradient.node[a.to])
        pairs = self._swaps[of_cell[a.pin_cell[self._swaps[:, 0]]] > 1e-4]
        cell = a.pin_cell[pairs[:, 0]]
        # The arcs of the cells of all pairs, one pair after the other.
        count = self._first_of[cell + 1] - self._first_of[cell]
        pair = np.repeat(np.arange(len(pairs)), count)
        arcs = self._arcs_of[
            np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count) + self._first_of[cell][pair]
        ]
        first, second = pairs[pair].T
        pin = a.arc_pin[arcs]
        pin = np.where(pin == first, second, np.where(pin == second, first, pin))
        origin, to = 2 * a.pin_net[pin] + a.arc_edge[arcs], a.to[arcs]
        at_load = [values[arcs] for values in a.at_load]
        delay, _ = a.tables.arcs.look_up(a.arc[arcs], a.slew[origin], at_load)
        arrival = a.arrival[origin] + delay
        # The worst arrival at each output of each pair's cell.
        order = np.lexsort((to, pair))
        key = pair[order] * a.n_nodes + to[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        arrival = np.maximum.reduceat(arrival[order], starts) if len(starts) else np.zeros(0)
        pair, to = pair[order][starts], to[order][starts]
        gain = sums(pair, gradient.node[to] * (a.arrival[to] - arrival), len(pairs))
        load = gradient.load.reshape(-1, 2)
        more = a.capacitances(a.kind, pairs[:, 1]) - a.capacitances(a.kind, pairs[:, 0])
        gain -= ((load[a.pin_net[pairs[:, 0]]] - load[a.pin_net[pairs[:, 1]]]) * more).sum(1)
        best = np.zeros(len(a.kind))
        np.maximum.at(best, cell, gain)
        chosen = np.full(len(a.kind), -1)
        chosen[cell[gain == best[cell]]] = np.flatnonzero(gain == best[cell])
        cells = self._apart(best)
        pairs = pairs[chosen[cells]]

        def exchange(n):
            first, second = pairs[:n].T
            a.pin_net[first], a.pin_net[second] = a.pin_net[second], a.pin_net[first]

        def change(n):
            exchange(n)
            return lambda: exchange(n)

        return len(cells), change

    def _gain(self, gradient, kind):
        """By how much the cost falls if each cell for itself becomes another kind."""
        a = self.analysis
        changed = kind != a.kind
        gain = np.zeros(len(kind))
        gain[changed] = self._area[a.kind[changed]] - self._area[kind[changed]]
        arcs = np.flatnonzero(changed[a.arc_cell])
        cell, to = a.arc_cell[arcs], a.to[arcs]
        at_load = a.tables.arcs.at_loads(arc := a.arc_of(kind, arcs), a.load[to])
        delay, slew = a.tables.arcs.look_up(arc, a.slew[a.origin[arcs]], at_load)
        cost = gradient.delay[arcs] * (delay - a.delay[arcs])
        cost += np.where(gradient.slowest[arcs], gradient.slew[to] * (slew - a.arc_slew[arcs]), 0)
        gain -= sums(cell, cost, len(kind))
        gain[cell[a.load[to] > np.maximum(self._limit[kind[cell]], self._limit[a.kind[cell]])]] = -1
        pins = np.flatnonzero(changed[a.pin_cell])
        more = a.capacitances(kind, pins) - a.capacitances(a.kind, pins)
        cost = (gradient.load.reshape(-1, 2)[a.pin_net[pins]] * more).sum(1)
        gain -= sums(a.pin_cell[pins], cost, len(kind))
        gain[~changed] = 0
        return gain


def sums(index, values, n):
    """The sum of the values of each index below ``n``, as floats even if there are none."""
    return np.bincount(index, values, n).astype(float, copy=False)


def _alike(tables, kind, other):
    one, two = tables.cells[kind], tables.cells[other]
    return (one.shape, one.setup_shape) == (two.shape, two.setup_shape)
