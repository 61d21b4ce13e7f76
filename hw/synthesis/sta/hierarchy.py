"""Timing of a design of several modules, each of which is analysed by itself."""

import numpy as np

from hw.synthesis.sta.analysis import Analysis
from hw.synthesis.sta.characterize import add_constraints, interface_timing
from hw.synthesis.sta.interface_timing import BoundaryConstraints

CROSSINGS = 4  # of module boundaries by a path, at most


def constrain_boundaries(netlist, top, tables, clock, interfaces, from_inputs=True, goal_ps=np.inf):
    """``{module: BoundaryConstraints}`` of the modules of a design, given their interface timing.

    With a goal, the times left to the two sides of a boundary by a path that is too long are what they would be if the
    whole path shrank to the goal: each side is to do its share.
    """
    found = {top: BoundaryConstraints(is_complete=not from_inputs)}
    wanted = found if goal_ps == np.inf else dict(found)
    for module in reversed(netlist.modules_below(top)):
        analysis = Analysis(netlist, module, tables, netlist.library, clock, interfaces, found[module])
        analysis.update()
        add_constraints(analysis, netlist, interfaces, found)
        if wanted is not found:
            add_constraints(analysis, netlist, interfaces, wanted, goal_ps)
    return wanted


def time_hierarchy(netlist, top, tables, clock, from_inputs):
    """``(worst path or 0, {module: InterfaceTiming})`` of a design, between registers or ``from_inputs`` too.

    Modules are analysed from the leaves to the top and back, so often that a path may cross ``CROSSINGS`` boundaries.
    What arrives at a module is the worst of all its instances; so a path through several instances of one module,
    without a register in any, is taken to be longer than it is.
    """
    modules = netlist.modules_below(top)
    found, period, interfaces = {top: BoundaryConstraints(is_complete=not from_inputs)}, None, {}
    for crossing in range(CROSSINGS if len(modules) > 1 else 1):
        if crossing:
            found = constrain_boundaries(netlist, top, tables, clock, interfaces, from_inputs)
        interfaces, periods = {}, []
        for module in modules:
            constraints = found.get(module, BoundaryConstraints(is_complete=True))
            analysis = Analysis(netlist, module, tables, netlist.library, clock, interfaces, constraints)
            periods.append(analysis.update())
            interfaces[module] = interface_timing(analysis)
        before, period = period, float(max(periods))
        if before is not None and abs(period - before) < 0.05:
            break
    return period, interfaces
