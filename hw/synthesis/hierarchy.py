"""Timing of a design of several modules, each of which is analysed by itself."""

import numpy as np

from hw.synthesis.analysis import Analysis
from hw.synthesis.interface_timing import BoundaryConstraints

CROSSINGS = 4  # of borders into modules by a path, at most


def constrain_boundaries(netlist, top, tables, clock, borders, from_inputs=True, goal_ps=np.inf):
    """What each module that was kept meets in the others, ``{module: BoundaryConstraints}``, given what they show.

    With a goal, the times left to the two sides of a border by a path that is too long are what they would be if the
    whole path shrank to the goal: each side is to do its share.
    """
    found = {top: BoundaryConstraints(is_complete=not from_inputs)}
    wanted = found if goal_ps == np.inf else dict(found)
    for module in reversed(netlist.modules_below(top)):
        analysis = Analysis(netlist, module, tables, netlist.library, clock, borders, found[module])
        analysis.update()
        analysis.surroundings(netlist, borders, found)
        if wanted is not found:
            analysis.surroundings(netlist, borders, wanted, goal_ps)
    return wanted


def time_hierarchy(netlist, top, tables, clock, from_inputs):
    """``(worst path, {module: InterfaceTiming})`` of a design, between registers or ``from_inputs`` too; 0 ps if there is none.

    Modules are analysed from the leaves to the top and back, so often that a path may cross ``CROSSINGS`` borders. What
    arrives at a module is the worst of all its instances; so a path through several instances of one module, without a
    register in any, is taken to be longer than it is.
    """
    modules = netlist.modules_below(top)
    found, period = {top: BoundaryConstraints(is_complete=not from_inputs)}, None
    for crossing in range(CROSSINGS if len(modules) > 1 else 1):
        if crossing:
            found = constrain_boundaries(netlist, top, tables, clock, borders, from_inputs)
        borders, periods = {}, []
        for module in modules:
            around = found.get(module, BoundaryConstraints(is_complete=True))
            analysis = Analysis(netlist, module, tables, netlist.library, clock, borders, around)
            periods.append(analysis.update())
            borders[module] = analysis.border()
        before, period = period, float(max(periods))
        if before is not None and abs(period - before) < 0.05:
            break
    return period, borders
