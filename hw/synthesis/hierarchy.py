"""Timing of a design of several modules, each of which is analysed by itself."""

from hw.synthesis.analysis import Analysis
from hw.synthesis.borders import Surroundings

CROSSINGS = 4  # of borders into modules by a path, at most


def surround(netlist, top, tables, clock, borders, from_inputs=True):
    """What each module that was kept meets in the others, ``{module: Surroundings}``, given what they show."""
    found = {top: Surroundings(is_complete=not from_inputs)}
    for module in reversed(netlist.modules_below(top)):
        analysis = Analysis(netlist, module, tables, netlist.library, clock, borders, found[module])
        analysis.update()
        analysis.surroundings(netlist, borders, found)
    return found


def hierarchy_period(netlist, top, tables, clock, from_inputs):
    """The worst path of a design, between registers or ``from_inputs`` too; None if there is none.

    Modules are analysed from the leaves to the top and back, so often that a path may cross ``CROSSINGS`` borders. What
    arrives at a module is the worst of all its instances; so a path through several instances of one module, without a
    register in any, is taken to be longer than it is.
    """
    modules = netlist.modules_below(top)
    found, period = {top: Surroundings(is_complete=not from_inputs)}, None
    for _ in range(CROSSINGS if len(modules) > 1 else 1):
        borders, periods = {}, []
        for module in modules:
            around = found.get(module, Surroundings(is_complete=True))
            analysis = Analysis(netlist, module, tables, netlist.library, clock, borders, around)
            periods.append(analysis.update())
            borders[module] = analysis.border()
        before, period = period, float(max(periods))
        if before is not None and abs(period - before) < 0.05:
            break
        found = surround(netlist, top, tables, clock, borders, from_inputs)
    return period if period > 0 else None
