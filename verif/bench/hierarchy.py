"""Which modules of a large design Verilator should compile once, and not once for every instance."""

import re
from collections import Counter

__all__ = ["compiled_once"]

_LARGE_DESIGN = 150_000
"""Lines, every instance counted, from which on flattening takes minutes and gigabytes."""

_LARGE_MODULE = 2_000
"""Lines from which on the calls into a module cost less than its copies."""

_FEWEST_COPIES = 4


def compiled_once(files, top):
    """Names of the modules, out of ``{file: Verilog text}``; none where the design is small."""
    bodies = {}
    for text in files.values():
        bodies |= {match[1]: match[0] for match in re.finditer(r"^module (\w+) .*?^endmodule", text, re.M | re.S)}
    children = {
        name: Counter(child for child in re.findall(r"^  (\w+) \w+ \($", body, re.M) if child in bodies)
        for name, body in bodies.items()
    }
    lines, copies = {}, Counter()

    def count_lines(name):
        if name not in lines:
            own = bodies[name].count("\n")
            lines[name] = own + sum(number * count_lines(child) for child, number in children[name].items())
        return lines[name]

    def count_copies(name, number):
        copies[name] += number
        for child, times in children[name].items():
            count_copies(child, number * times)

    if top not in bodies or count_lines(top) < _LARGE_DESIGN:
        return []
    count_copies(top, 1)
    return sorted(
        name for name in bodies if name != top and copies[name] >= _FEWEST_COPIES and count_lines(name) >= _LARGE_MODULE
    )
