"""Timing repair of one module of a mapped netlist: sizing, buffers, and resynthesis of what stays too slow.

ABC maps without knowing when signals arrive: it sees neither clock-to-Q nor setup nor adder cells, and its area
mapping turns prefix adders and comparisons into chains. So after mapping the cells are sized by the timing of whole
paths (:mod:`hw.synthesis.repair.sizing`), loads that can wait are put behind buffers
(:mod:`hw.synthesis.repair.buffering`), and the gates of the paths that are still too slow are resynthesised by a faster
script that is given the arrival times, in ever larger regions, as long as that lowers the cost of the module.
"""

from dataclasses import dataclass

from hw.synthesis.netlist import Netlist
from hw.synthesis.repair.buffering import add_buffers, add_trees, remove_buffers
from hw.synthesis.repair.inverted_outputs import InvertedOutputs
from hw.synthesis.repair.resynthesis import Region, gates_of, run_abc
from hw.synthesis.repair.sizing import Sizer, SizingTarget
from hw.synthesis.sta.analysis import Analysis

FAST_SCRIPTS = ("strash; map -B 0.9; topo; buffer -c -N 20; topo", "strash; dch; map; topo; buffer -c -N 20; topo")
MARGINS = (0.01, 0.04, 0.12)  # of the period: gates on paths that are slow by so little less than the worst
ABC_SHARE = 0.97  # of the goal: what ABC is given, since it knows no setup time
LATENESS_WEIGHT = 5  # percent of area for a percent of the period that is missing to the goal
LEAST_GAIN = 0.001
NEAR_ENOUGH = 1.0005  # half a ps in a ns justifies no resynthesis
BUFFER_ROUNDS = 4
SIZING_REACH = 0.86  # of the period: more than sizing alone can save; a goal beyond its reach only costs area
STEP = 0.92  # of the period, the next target of a resynthesised region
OVERCONSTRAINED = 0.97  # of the goal: the target where nothing better is found otherwise
LEAST_PRICE = 0.5  # of being late, while a region is evaluated
REGIONS = 10  # resynthesised at most
SEARCH_STEPS = (0.08, 0.03)  # of the period, in a search
REGIONS_OF_A_STEP = 2
LEAST_GAIN_OF_A_STEP = 0.004


def cost(area, period, goal_ps):
    """The cost of a netlist: area, and more for each percent of the period that is missing."""
    return area * max(1.0, period / goal_ps) ** LATENESS_WEIGHT


@dataclass
class State:
    """A module's netlist with what is known of it, the cells in the netlist as they are in the sizer."""

    netlist: Netlist
    sizer: Sizer
    target: SizingTarget

    @property
    def area(self):
        return self.sizer.area()

    @property
    def period(self):
        return float(self.sizer.analysis.period)

    def cost(self, goal_ps):
        """The cost of the module, see :func:`cost`."""
        return cost(self.area, self.period, goal_ps)


class ModuleRepair:
    """Timing repair of one module, under boundary constraints if there are any, else as the top of a design."""

    def __init__(self, folder, module, library, tables, clock, interfaces, progress, constraints=None, mark="_r"):
        self._folder, self._module, self._library, self._interfaces = folder, module, library, interfaces
        self._tables, self._clock, self._progress = tables, clock, progress
        self._inverted_outputs = InvertedOutputs(library)
        self._constraints, self._first_mark = constraints, mark
        self._mark = 0

    def reach(self, netlist, goal_ps, regions=REGIONS):
        """Bring a netlist to a period, as near as can be; returns a :class:`State`."""
        best = self._sized(netlist, max(goal_ps, self.measure(netlist)[1] * SIZING_REACH))
        self._tell("sized", best)
        for _ in range(regions):
            if best.period <= goal_ps * NEAR_ENOUGH:
                break
            better = self._resynthesised(best, goal_ps)
            if better is None:
                break
            best = better
            self._tell("slow gates resynthesised", best)
        if best.period < goal_ps / NEAR_ENOUGH:
            relaxed = self._sized(best.netlist, goal_ps)
            if relaxed.cost(goal_ps) < best.cost(goal_ps):
                best = relaxed
                self._tell("sized for the goal", best)
        return best

    def with_trees(self, netlist):
        """The netlist with trees of buffers for nets into modules inside."""
        netlist = netlist.copy(self._module)
        analysis = self._sizer(netlist).analysis
        add_trees(netlist, self._module, analysis, self._next_mark())
        return netlist

    def measure(self, netlist):
        """Area and worst path as they are."""
        sizer = self._sizer(netlist)
        period = sizer.analysis.update()
        return sizer.area(), period

    def search(self, netlist, period_weight):
        """The period that justifies its area: ``area * period**period_weight`` is the smallest that is found.

        From the period that the netlist has, ever shorter ones are tried, by smaller steps once they cost too much.
        """
        best = self._sized(netlist, self.measure(netlist)[1])
        self._tell("sized", best)
        step = SEARCH_STEPS[0]
        while step >= SEARCH_STEPS[-1]:
            state = self.reach(best.netlist, best.period * (1 - step), REGIONS_OF_A_STEP)
            before, after = (item.area * item.period**period_weight for item in (best, state))
            if after < before * (1 - LEAST_GAIN_OF_A_STEP):
                best = state
            else:
                step = next((smaller for smaller in SEARCH_STEPS if smaller < step), 0)
        return best

    def with_inverted_outputs(self, netlist):
        """A netlist that uses both outputs of its flip-flops, where that saves area."""
        netlist = netlist.copy(self._module)
        self._inverted_outputs.use(netlist, self._module)
        return netlist

    def _tell(self, what, state):
        self._progress(f"{self._module} {what}: {state.area:,.0f} µm², {state.period:,.0f} ps")

    def _sizer(self, netlist):
        analysis = Analysis(
            netlist, self._module, self._tables, self._library, self._clock, self._interfaces, self._constraints
        )
        return Sizer(analysis, self._library)

    def _sized(self, netlist, goal_ps):
        """Sized and buffered."""
        netlist = netlist.copy(self._module)
        sizer = self._sizer(netlist)
        target = sizer.run(goal_ps)
        for change in (remove_buffers, self._add_buffers):
            for _ in range(BUFFER_ROUNDS):
                sizer.analysis.write(netlist, self._module)
                cost_before, changed = sizer.cost(target), netlist.copy(self._module)
                if not change(changed, self._module, sizer, target):
                    break
                other = self._sizer(changed)
                other.descend(target)
                if other.cost(target) >= cost_before:
                    break
                netlist, sizer = changed, other
        target = sizer.run(goal_ps)
        sizer.analysis.write(netlist, self._module)
        return State(netlist, sizer, target)

    def _add_buffers(self, netlist, module, sizer, target):
        return add_buffers(netlist, module, sizer, target, self._next_mark())

    def _next_mark(self):
        self._mark += 1
        return f"{self._first_mark}{self._mark}_"

    def _resynthesised(self, best, goal_ps):
        """A state of lower cost, by resynthesis of the slowest gates; None if there is none."""
        for target_ps in dict.fromkeys((max(goal_ps, best.period * STEP), goal_ps, goal_ps * OVERCONSTRAINED)):
            target = SizingTarget(target_ps, max(best.target.price, LEAST_PRICE), best.target.smoothing)
            for margin in MARGINS:
                found = self._candidates(best, target, margin * best.period)
                if found and found[0][0] < best.sizer.cost(target):
                    state = self._sized(found[0][2], target_ps)
                    if state.cost(goal_ps) < best.cost(goal_ps) * (1 - LEAST_GAIN):
                        return state
        return None

    def _candidates(self, best, target, slack):
        """``(cost, number, netlist)`` with the gates of so little slack resynthesised, by each script; best first."""
        analysis = best.sizer.analysis
        bits = analysis.bits()
        required = analysis.required(analysis.period).reshape(-1, 2).min(1)
        arrival = analysis.arrival.reshape(-1, 2).max(1)
        arrivals = {bit: arrival[net] for net, bit in enumerate(bits) if arrival[net] > 0}
        late = analysis.period - target.goal_ps * ABC_SHARE
        requireds = {bits[net]: required[net] - late for net in range(len(bits)) if required[net] < 1e9}
        gates = self._slow_gates(best, required - arrival, slack)
        found = []
        for script in FAST_SCRIPTS if gates else ():
            candidate = best.netlist.copy(self._module)
            region = Region(candidate, self._module, gates)
            mapped = run_abc(self._folder, region.blif(arrivals, requireds), script)
            if mapped is not None:
                region.replace(mapped, self._next_mark())
                self._inverted_outputs.use(candidate, self._module)
                sizer = self._sizer(candidate)
                sizer.descend(target)
                sizer.analysis.write(candidate, self._module)
                found.append((sizer.cost(target), len(found), candidate))
        return sorted(found, key=lambda item: item[:2])

    def _slow_gates(self, state, slack, margin):
        """The gates whose output has at most so much slack."""
        analysis = state.sizer.analysis
        driven = {int(to) // 2: int(cell) for to, cell in zip(analysis.to, analysis.arc_cell, strict=True)}
        names = {analysis.cells[cell] for net, cell in driven.items() if slack[net] <= margin}
        return gates_of(sorted(names), state.netlist, self._module)
