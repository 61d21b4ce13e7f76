"""How large a design is, and which of its modules Verilator should compile once, not once for every instance."""

import re
from collections import Counter

__all__ = ["compiled_once", "expanded_size"]

_LARGE_DESIGN = 150_000
"""Lines, every instance counted, from which on flattening takes minutes and gigabytes."""

_WIDE = 512
"""Bits from which on a vector costs more than its width: a part of it is read at the cost of the whole."""

_LARGE_MODULE = 2_000
"""Lines from which on the calls into a module cost less than its copies."""

_FEWEST_COPIES = 4


def expanded_size(files, top):
    """How much ``{file: Verilog text}`` gives a simulator to do: lines and bits of vectors, every instance counted."""
    return _Hierarchy(files, lambda body: body.count("\n") + _bits(body)).lines(top)


def _bits(body):
    declared = re.findall(r"^ +(?:input |output )?(?:wire|reg) +\[(\d+):0\]", body, re.M)
    widths = [int(high) + 1 for high in declared]
    return sum(width * max(1, width // _WIDE) for width in widths)


def compiled_once(files, top):
    """Names of the modules, out of ``{file: Verilog text}``; none where the design is small."""
    design = _Hierarchy(files)
    if top not in design.bodies or design.lines(top) < _LARGE_DESIGN:
        return []
    copies = design.copies(top)
    return sorted(
        name
        for name in design.bodies
        if name != top and copies[name] >= _FEWEST_COPIES and design.lines(name) >= _LARGE_MODULE
    )


class _Hierarchy:
    def __init__(self, files, measure=lambda body: body.count("\n")):
        self.bodies, self._lines, self._measure = {}, {}, measure
        for text in files.values():
            self.bodies |= {
                match[1]: match[0] for match in re.finditer(r"^module (\w+) .*?^endmodule", text, re.M | re.S)
            }
        self._children = {
            name: Counter(child for child in re.findall(r"^  (\w+) \w+ \($", body, re.M) if child in self.bodies)
            for name, body in self.bodies.items()
        }

    def lines(self, name):
        """Lines (or what else is measured) of a module and of all instances in it."""
        if name not in self._lines:
            own = self._measure(self.bodies[name])
            self._lines[name] = own + sum(n * self.lines(child) for child, n in self._children[name].items())
        return self._lines[name]

    def copies(self, top):
        """How often each module is instantiated below the top, itself included."""
        found = Counter()

        def count(name, number):
            found[name] += number
            for child, times in self._children[name].items():
                count(child, number * times)

        count(top, 1)
        return found
