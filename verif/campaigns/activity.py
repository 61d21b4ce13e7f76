"""How often the nets of a simulated netlist change, from a waveform in VCD."""

from collections import defaultdict

from vcd.reader import TokenKind, tokenize

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


def read_vcd(file, top, begin_ps, end_ps):
    """``{scope: {net: (transitions, share of the time at 1)}}`` in a window of time.

    ``file`` is a VCD file, open for bytes; a scope is the tuple of the instances below the module or instance ``top``;
    a net of several bits appears bit by bit, as ``name[3]``.
    """
    nets = defaultdict(list)  # {code: its variables, each as its bits, lowest first: ((scope, name), net)}
    scale, scopes, now = 1.0, [], 0.0
    for token in tokenize(file):
        if token.kind is TokenKind.CHANGE_SCALAR:
            for bits in nets.get(token.data.id_code, ()):
                bits[0][1].change(token.data.value.lower(), now, begin_ps, end_ps)
        elif token.kind is TokenKind.CHANGE_VECTOR:
            for bits in nets.get(token.data.id_code, ()):
                for (_, net), digit in zip(bits, _digits(token.data.value, len(bits)), strict=True):
                    if net.value != digit:
                        net.change(digit, now, begin_ps, end_ps)
        elif token.kind is TokenKind.CHANGE_TIME:
            now = token.data * scale
            if now > end_ps:
                break
        elif token.kind is TokenKind.TIMESCALE:
            scale = token.data.magnitude.value * _UNITS_PS[token.data.unit.value]
        elif token.kind is TokenKind.SCOPE:
            scopes.append(token.data.ident)
        elif token.kind is TokenKind.UPSCOPE:
            scopes.pop()
        elif token.kind is TokenKind.VAR and top in scopes:
            scope, width, name = (
                tuple(scopes[scopes.index(top) + 1 :]),
                token.data.size,
                token.data.reference.lstrip("\\"),
            )
            names = [name] if width == 1 else [f"{name}[{bit}]" for bit in range(width)]
            nets[token.data.id_code].append([((scope, bit), _Net()) for bit in names])
    found = defaultdict(dict)
    for variables in nets.values():
        for bits in variables:
            for (scope, name), net in bits:
                found[scope][name] = net.figures(begin_ps, end_ps)
    return dict(found)


def _digits(value, width):
    """The bits of a vector's value, the lowest first; its first digit goes on to the left if that is no number."""
    text = f"{value:b}" if isinstance(value, int) else value.lower()
    return reversed(text.rjust(width, text[0] if text[0] in "xz" else "0"))
