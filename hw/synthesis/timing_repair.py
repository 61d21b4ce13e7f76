"""Timing recovery of a mapped netlist: sizing, buffers, and what stays too slow mapped anew.

ABC maps without knowing when signals arrive: it sees neither clock-to-Q nor setup nor adder cells, and its area
mapping turns prefix adders and comparisons into chains. So after mapping the cells are sized by the timing of whole
paths (:mod:`hw.synthesis.sizing`), loads that can wait are put behind buffers (:mod:`hw.synthesis.buffering`), and the
gates of the paths that are still too slow are mapped anew by a faster script that is told the arrival times, in ever
larger regions, as long as that makes the module better.
"""

from dataclasses import dataclass

from hw.synthesis.analysis import Analysis
from hw.synthesis.buffering import add_buffers, add_trees, remove_buffers
from hw.synthesis.figures import count
from hw.synthesis.hierarchy import constrain_boundaries, time_hierarchy
from hw.synthesis.inverted_outputs import InvertedOutputs
from hw.synthesis.netlist import Netlist
from hw.synthesis.resynthesis import Region, gates_of, run_abc
from hw.synthesis.sizing import Sizer, SizingTarget

FAST_SCRIPTS = ("strash; map -B 0.9; topo; buffer -c -N 20; topo", "strash; dch; map; topo; buffer -c -N 20; topo")
MARGINS = (0.01, 0.04, 0.12)  # of the period: gates on paths that are slow by so little less than the worst
WANTED = 0.97  # of the goal: what ABC is told, since it knows no setup time
MISSING_WORTH = 5  # percent of area for a percent of the period that is missing to the goal
WORTHWHILE = 0.001
NEAR_ENOUGH = 1.0005  # half a ps in a ns is nothing to map gates anew for
BUFFER_ROUNDS = 4
SIZING_REACH = 0.86  # of the period: more than sizing alone can save; a goal beyond its reach only costs area
STAGE = 0.92  # of the period, the next aim of a region that is mapped anew
BEYOND = 0.97  # of the goal: aimed at where nothing better is found otherwise
LEAST_PRICE = 0.5  # of being late, while a region is judged
REGIONS = 10  # mapped anew at most
TURNS = 3  # over all modules of a hierarchy, at most
STEPS = (0.08, 0.03)  # of the period, in a search
REGIONS_OF_A_STEP = 2
WORTH_A_STEP = 0.004


def worth(area, period, goal_ps):
    """What a netlist costs: area, and more for each percent of the period that is missing; less is better."""
    return area * max(1.0, period / goal_ps) ** MISSING_WORTH


@dataclass
class State:
    """A module's netlist with what is known of it, the cells in the netlist as they are in the sizer."""

    netlist: Netlist
    sizer: Sizer
    aim: SizingTarget

    @property
    def area(self):
        return self.sizer.area()

    @property
    def period(self):
        return float(self.sizer.analysis.period)

    def worth(self, goal_ps):
        """What the module costs, see :func:`worth`."""
        return worth(self.area, self.period, goal_ps)


class Recovery:
    """The recovery of one module, in its surroundings if they are given, else as if it were the top of a design."""

    def __init__(self, folder, module, library, tables, clock, borders, progress, surroundings=None, mark="_r"):
        self._folder, self._module, self._library, self._borders = folder, module, library, borders
        self._tables, self._clock, self._progress = tables, clock, progress
        self._complements = InvertedOutputs(library)
        self._surroundings, self._first_mark = surroundings, mark
        self._mark = 0

    def reach(self, netlist, goal_ps, regions=REGIONS):
        """Bring a netlist to a period, as near as goes; returns a :class:`State`."""
        best = self._sized(netlist, max(goal_ps, self.measure(netlist)[1] * SIZING_REACH))
        self._tell("sized", best)
        for _ in range(regions):
            if best.period <= goal_ps * NEAR_ENOUGH:
                break
            better = self._mapped_anew(best, goal_ps)
            if better is None:
                break
            best = better
            self._tell("slow gates mapped anew", best)
        if best.period < goal_ps / NEAR_ENOUGH:
            relaxed = self._sized(best.netlist, goal_ps)
            if relaxed.worth(goal_ps) < best.worth(goal_ps):
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

    def search(self, netlist, period_worth):
        """The period that is worth its area: ``area * period**period_worth`` is the smallest that is found.

        From the period that the netlist has, ever shorter ones are tried, by smaller steps once they cost too much.
        """
        best = self._sized(netlist, self.measure(netlist)[1])
        self._tell("sized", best)
        step = STEPS[0]
        while step >= STEPS[-1]:
            state = self.reach(best.netlist, best.period * (1 - step), REGIONS_OF_A_STEP)
            cost = state.area * state.period**period_worth
            if cost < best.area * best.period**period_worth * (1 - WORTH_A_STEP):
                best = state
            else:
                step = next((smaller for smaller in STEPS if smaller < step), 0)
        return best

    def with_complements(self, netlist):
        """A netlist that uses both outputs of its flip-flops, where that saves area."""
        netlist = netlist.copy(self._module)
        self._complements.use(netlist, self._module)
        return netlist

    def _tell(self, what, state):
        self._progress(f"{self._module} {what}: {state.area:,.0f} µm², {state.period:,.0f} ps")

    def _sizer(self, netlist):
        analysis = Analysis(
            netlist, self._module, self._tables, self._library, self._clock, self._borders, self._surroundings
        )
        return Sizer(analysis, self._library)

    def _sized(self, netlist, goal_ps):
        """Sized and buffered."""
        netlist = netlist.copy(self._module)
        sizer = self._sizer(netlist)
        aim = sizer.run(goal_ps)
        for change in (remove_buffers, self._add_buffers):
            for _ in range(BUFFER_ROUNDS):
                sizer.analysis.write(netlist, self._module)
                cost, changed = sizer.cost(aim), netlist.copy(self._module)
                if not change(changed, self._module, sizer, aim):
                    break
                other = self._sizer(changed)
                other.descend(aim)
                if other.cost(aim) >= cost:
                    break
                netlist, sizer = changed, other
        aim = sizer.run(goal_ps)
        sizer.analysis.write(netlist, self._module)
        return State(netlist, sizer, aim)

    def _add_buffers(self, netlist, module, sizer, aim):
        return add_buffers(netlist, module, sizer, aim, self._next_mark())

    def _next_mark(self):
        self._mark += 1
        return f"{self._first_mark}{self._mark}_"

    def _mapped_anew(self, best, goal_ps):
        """A state that is worth more, by mapping the slowest gates anew; None if there is none."""
        for aim_ps in dict.fromkeys((max(goal_ps, best.period * STAGE), goal_ps, goal_ps * BEYOND)):
            aim = SizingTarget(aim_ps, max(best.aim.price, LEAST_PRICE), best.aim.smoothing)
            for margin in MARGINS:
                found = self._candidates(best, aim, margin * best.period)
                if found and found[0][0] < best.sizer.cost(aim):
                    state = self._sized(found[0][2], aim_ps)
                    if state.worth(goal_ps) < best.worth(goal_ps) * (1 - WORTHWHILE):
                        return state
        return None

    def _candidates(self, best, aim, slack):
        """``(cost, number, netlist)`` with the gates of so little slack mapped anew, by each script; best first."""
        analysis = best.sizer.analysis
        bits = analysis.bits()
        required = analysis.required(analysis.period).reshape(-1, 2).min(1)
        arrival = analysis.arrival.reshape(-1, 2).max(1)
        arrivals = {bit: arrival[net] for net, bit in enumerate(bits) if arrival[net] > 0}
        late = analysis.period - aim.goal_ps * WANTED
        requireds = {bits[net]: required[net] - late for net in range(len(bits)) if required[net] < 1e9}
        gates = self._slow_gates(best, required - arrival, slack)
        found = []
        for script in FAST_SCRIPTS if gates else ():
            candidate = best.netlist.copy(self._module)
            region = Region(candidate, self._module, gates)
            mapped = run_abc(self._folder, region.blif(arrivals, requireds), script)
            if mapped is not None:
                region.replace(mapped, self._next_mark())
                self._complements.use(candidate, self._module)
                sizer = self._sizer(candidate)
                sizer.descend(aim)
                sizer.analysis.write(candidate, self._module)
                found.append((sizer.cost(aim), len(found), candidate))
        return sorted(found, key=lambda item: item[:2])

    def _slow_gates(self, state, slack, margin):
        """The gates whose output has at most so much slack."""
        analysis = state.sizer.analysis
        driven = {int(to) // 2: int(cell) for to, cell in zip(analysis.to, analysis.arc_cell, strict=True)}
        names = {analysis.cells[cell] for net, cell in driven.items() if slack[net] <= margin}
        return gates_of(sorted(names), state.netlist, self._module)


def recover(netlist, folder, top, tables, clock, goal_ps, period_worth, progress):
    """Bring every module of a mapped design to a period; returns ``(netlist, what was reached)``.

    Without a goal the period is searched for, see :meth:`Recovery.search`. The modules that were kept are worked on
    one by one, from the leaves to the top: first each for itself, then, for the period that is wanted or was found, in
    the surroundings that the others leave it, until all paths meet it. The best of the turns is taken.
    """
    modules = netlist.modules_below(top)
    surroundings, mapped, found = {}, {}, []
    for turn in range(TURNS):
        borders, reached = {}, []
        for module in modules:
            job = Recovery(folder, module, netlist.library, tables, clock, borders, progress,
                           surroundings.get(module), f"_{'rst'[turn]}")  # fmt: skip
            if turn == 0:
                mapped[module] = job.measure(netlist)
                netlist = job.with_trees(job.with_complements(netlist))
            if goal_ps is None:
                state = job.search(netlist, period_worth)
            else:
                # At first little is known of what the top's modules take, so that mapping the top anew is in vain.
                regions = REGIONS if turn or module != top or len(modules) == 1 else 0
                state = job.reach(netlist, goal_ps, regions)
            netlist = state.netlist
            borders[module] = state.sizer.analysis.border()
            reached.append(_row(module, *mapped[module], state.area, state.period))
        goal_ps = goal_ps or max(row["worst_path_ps"] for row in reached)
        period, borders = time_hierarchy(netlist, top, tables, clock, from_inputs=True)
        area = count(netlist, top, folder)[0]["area_um2"]
        found.append((worth(area, period, goal_ps), turn, netlist, reached))
        if len(modules) == 1 or period <= goal_ps * NEAR_ENOUGH:
            break
        surroundings = constrain_boundaries(netlist, top, tables, clock, borders, goal_ps=goal_ps)
    return min(found, key=lambda item: item[:2])[2:]


def _row(module, *values):
    names = ("mapped_um2", "mapped_ps", "area_um2", "worst_path_ps")
    return {"module": module} | {name: round(float(value), 1) for name, value in zip(names, values, strict=True)}
