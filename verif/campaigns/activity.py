"""How often the nets of a simulated netlist change, from a waveform in VCD."""

import re
from collections import defaultdict

__all__ = ["read_vcd"]

_UNITS_PS = {"s": 1e12, "ms": 1e9, "us": 1e6, "ns": 1e3, "ps": 1.0, "fs": 1e-3}


class _Net:
    """One bit: its value, since when, and what was counted so far."""

    def __init__(self):
        self.value, self.since, self.transitions, self.high = "x", 0.0, 0, 0.0

    def change(self, value, now, begin, end):
        self._pass(now, begin, end)
        if begin < now <= end and {self.value, value} == {"0", "1"}:
            self.transitions += 1
        self.value = value

    def _pass(self, now, begin, end):
        """Add up the time since the last change; an unknown value counts as half."""
        time = min(now, end) - max(self.since, begin)
        if time > 0:
            self.high += time * {"1": 1.0, "0": 0.0}.get(self.value, 0.5)
        self.since = now

    def figures(self, begin, end):
        self._pass(end, begin, end)
        return self.transitions, self.high / (end - begin)


def read_vcd(lines, top, begin_ps, end_ps):
    """``{scope: {net: (transitions, share of the time at 1)}}`` in a window of time.

    ``lines`` are those of a VCD file, a scope is the tuple of the instances below the module or instance ``top``, a net
    of several bits appears bit by bit, as ``name[3]``.
    """
    lines = iter(lines)
    nets, scale = _header(lines, top)
    begin, end, now = begin_ps / scale, end_ps / scale, 0.0
    for line in lines:
        if line[0] == "#":
            now = float(line[1:])
            if now > end:
                break
        elif line[0] in "01xXzZ":
            for bits in nets.get(line[1:].strip(), ()):
                bits[0][1].change(line[0], now, begin, end)
        elif line[0] in "bB":
            value, code = line[1:].split()
            for bits in nets.get(code, ()):
                digits = value.rjust(len(bits), "0" if value[0] in "01" else value[0])
                for (_, net), digit in zip(bits, reversed(digits), strict=True):
                    if net.value != digit:
                        net.change(digit, now, begin, end)
    found = defaultdict(dict)
    for variables in nets.values():
        for bits in variables:
            for (scope, name), net in bits:
                found[scope][name] = net.figures(begin, end)
    return dict(found)


def _header(lines, top):
    """``({code: [the bits of a variable, lowest first, as ((scope, name), net)]}, ps in a unit of time)``."""
    nets, scale, scopes, text = defaultdict(list), 1.0, [], ""
    for line in lines:
        text += " " + line.strip()
        if not text.endswith("$end"):
            continue
        words, text = text.split(), ""
        if words[0] == "$enddefinitions":
            return nets, scale
        if words[0] == "$timescale":
            amount, unit = re.fullmatch(r"(\d+)(\w+)", "".join(words[1:-1])).groups()
            scale = int(amount) * _UNITS_PS[unit]
        elif words[0] == "$scope":
            scopes.append(words[2])
        elif words[0] == "$upscope":
            scopes.pop()
        elif words[0] == "$var" and top in scopes:
            scope = tuple(scopes[scopes.index(top) + 1 :])
            width, code, name = int(words[2]), words[3], words[4].lstrip("\\").split("[")[0]
            names = [name] if width == 1 else [f"{name}[{bit}]" for bit in range(width)]
            nets[code].append([((scope, bit), _Net()) for bit in names])
    return nets, scale
