"""Timing repair of a design: of each of its modules, and over their boundaries."""

from hw.synthesis import sta
from hw.synthesis.repair.module import NEAR_ENOUGH, REGIONS, ModuleRepair, cost
from hw.synthesis.sta.characterize import interface_timing
from hw.synthesis.sta.hierarchy import constrain_boundaries, time_hierarchy

TURNS = 3  # over all modules of a hierarchy, at most


def repair(netlists, folder, top, tables, clock, goal_ps, period_weight, progress):
    """Bring the first of some mapped netlists to a period that can be; returns ``(its number, netlist, rows)``.

    The netlists are mappings of one design, the most promising first; if none meets the period, the one of the lowest
    cost is returned. ``folder`` has the library as ``cells.lib``, ``tables`` are its delay tables. Without a goal the
    period is searched for: the one where ``area * period**period_weight`` is the smallest that is found. A row says of
    each module what it was when mapped, and what it is now: area and worst path.
    """
    best = None
    for number, netlist in enumerate(netlists):
        repaired, rows = repair_one(netlist, folder, top, tables, clock, goal_ps, period_weight, progress)
        if len(netlists) == 1:
            return number, repaired, rows
        longest = sta.worst_path(repaired, top, tables, clock) or 1
        wanted_ps = goal_ps or longest
        found = cost(area_of(repaired, top), longest, wanted_ps)
        if best is None or found < best[0]:
            best = found, number, repaired, rows
        if longest <= wanted_ps * NEAR_ENOUGH:
            break
    return best[1:]


def repair_one(netlist, folder, top, tables, clock, goal_ps, period_weight, progress):
    """Bring every module of a mapped design to a period; returns ``(netlist, rows)``.

    The modules are repaired one by one, from the leaves to the top: first each for itself, then, for the period that is
    wanted or was found, under the boundary constraints that the others leave it, until all paths meet it. The best of
    the turns is taken.
    """
    modules = netlist.modules_below(top)
    constraints, mapped, found = {}, {}, []
    for turn in range(TURNS):
        interfaces, rows = {}, []
        for module in modules:
            job = ModuleRepair(folder, module, netlist.library, tables, clock, interfaces, progress,
                               constraints.get(module), f"_{'rst'[turn]}")  # fmt: skip
            if turn == 0:
                mapped[module] = job.measure(netlist)
                netlist = job.with_trees(job.with_inverted_outputs(netlist))
            if goal_ps is None:
                state = job.search(netlist, period_weight)
            else:
                # At first little is known of what the top's modules take, so resynthesis of the top is in vain.
                regions = REGIONS if turn or module != top or len(modules) == 1 else 0
                state = job.reach(netlist, goal_ps, regions)
            netlist = state.netlist
            interfaces[module] = interface_timing(state.sizer.analysis)
            rows.append(_row(module, *mapped[module], state.area, state.period))
        goal_ps = goal_ps or max(row["worst_path_ps"] for row in rows)
        period, interfaces = time_hierarchy(netlist, top, tables, clock, from_inputs=True)
        found.append((cost(area_of(netlist, top), period, goal_ps), turn, netlist, rows))
        if len(modules) == 1 or period <= goal_ps * NEAR_ENOUGH:
            break
        constraints = constrain_boundaries(netlist, top, tables, clock, interfaces, goal_ps=goal_ps)
    return min(found, key=lambda item: item[:2])[2:]


def area_of(netlist, top):
    """The area of a design, memories left out."""
    cells = netlist.library.cells
    own = {
        module: sum(cells[kind].area * n for kind, n in netlist.kinds(module).items() if kind in cells)
        for module in netlist.modules_below(top)
    }
    total = {}
    for module in own:  # leaves first
        inside = ((kind, n) for kind, n in netlist.kinds(module).items() if kind in own)
        total[module] = own[module] + sum(n * total[kind] for kind, n in inside)
    return total[top]


def _row(module, *values):
    names = ("mapped_um2", "mapped_ps", "area_um2", "worst_path_ps")
    return {"module": module} | {name: round(float(value), 1) for name, value in zip(names, values, strict=True)}
