"""How the area of a core divides: over the dot products, the vector arithmetic, and everything else.

A part begins at a module whose role it is and has all that is in it, whichever modules these are. Everything else is
what moves, finds and orders the data and what says what to do: controller, load and store, scanners and queues,
mapper, aligner, token selector, and the ways to and from the memories. Memories have no area here.
"""

PARTS = {
    "dot_product": "dot products",
    "vector_lanes": "vector lanes",
    "softmax": "softmax",
    "layer_norm": "layer norm",
}
"""The parts by the role of the module that they begin at."""
OTHER = "everything else"


def part_of(module):
    """The part that begins at a module, as Yosys writes it in JSON; None if none does."""
    return PARTS.get(module["attributes"].get("role"))


def divide(netlist, top, own_area, parts):
    """``{part: area}`` below a top module; None if no part begins below it.

    ``netlist`` is ``{module: {cell or module: how many}}``, ``own_area`` the area of each module's own cells, ``parts``
    the part that begins at a module, if one does.
    """
    whole = {}

    def area(module):
        if module not in whole:
            inside = ((kind, n) for kind, n in netlist[module].items() if kind in netlist)
            whole[module] = own_area[module] + sum(n * area(kind) for kind, n in inside)
        return whole[module]

    def divided(module):
        found = {OTHER: own_area[module]}
        for kind, n in netlist[module].items():
            if kind in netlist:
                part = parts.get(kind)
                for name, value in ({part: area(kind)} if part else divided(kind)).items():
                    found[name] = found.get(name, 0.0) + n * value
        return found

    found = divided(top)
    return {name: found[name] for name in (*PARTS.values(), OTHER) if name in found} if len(found) > 1 else None
