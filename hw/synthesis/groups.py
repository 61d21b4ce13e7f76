"""How the area of a core divides: over the dot products, the vector arithmetic, and everything else.

A part begins at the module that is named for it and has all that is in it, whichever modules these are. Everything else
is what moves, finds and orders the data and what says what to do: controller, load and store, scanners and queues,
mapper, aligner, token selector, and the ways to and from the memories. Memories have no area here.
"""

PARTS = {
    "dot_product_unit": "dot products",
    "vector_unit": "vector lanes",
    "softmax_unit": "softmax",
    "layer_norm_unit": "layer norm",
}
OTHER = "everything else"


def part_of(module):
    """The part that begins at a module, None if none does."""
    return next((part for root, part in PARTS.items() if module == root or module.startswith(f"{root}_")), None)


def divide(netlist, top, own_area):
    """``{part: area}`` below a top module; None if no part begins below it.

    ``netlist`` is ``{module: {cell or module: how many}}``, ``own_area`` the area of each module's own cells.
    """
    whole = {}

    def area(module):
        if module not in whole:
            inside = ((kind, n) for kind, n in netlist[module].items() if kind in netlist)
            whole[module] = own_area[module] + sum(n * area(kind) for kind, n in inside)
        return whole[module]

    def parts(module):
        found = {OTHER: own_area[module]}
        for kind, n in netlist[module].items():
            if kind in netlist:
                part = part_of(kind)
                for name, value in ({part: area(kind)} if part else parts(kind)).items():
                    found[name] = found.get(name, 0.0) + n * value
        return found

    found = parts(top)
    return {name: found[name] for name in (*PARTS.values(), OTHER) if name in found} if len(found) > 1 else None
