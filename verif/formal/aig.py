"""And-inverter graphs: read and written in the AIGER format, with the outputs that one wants."""

from dataclasses import dataclass

__all__ = ["Aig"]


@dataclass
class Aig:
    """Literals are ``2 * variable + inverted``; variable 0 is false, then come inputs, latches and gates in order.

    ``latches`` holds ``(next, reset)`` with reset 0, 1, or the latch's own literal where it starts with anything;
    ``gates`` holds the two inputs of each.
    """

    inputs: list[str]
    latches: list[tuple[int, int]]
    outputs: list[int]
    gates: list[tuple[int, int]]
    output_names: list[str]

    @property
    def first_latch(self):
        return 1 + len(self.inputs)

    @property
    def first_gate(self):
        return self.first_latch + len(self.latches)

    @classmethod
    def read(cls, path):
        """Read a binary file; what has no name in its symbol table gets an empty one."""
        content = path.read_bytes()
        header, position = _line(content, 0)
        _, n_inputs, n_latches, n_outputs, n_gates = map(int, header.split()[1:6])
        latches, outputs, gates = [], [], []
        for _ in range(n_latches):
            line, position = _line(content, position)
            values = [int(word) for word in line.split()]
            latches.append((values[0], values[1] if len(values) > 1 else 0))
        for _ in range(n_outputs):
            line, position = _line(content, position)
            outputs.append(int(line))
        literal = 2 * (1 + n_inputs + n_latches)
        for _ in range(n_gates):
            first, position = _delta(content, position)
            second, position = _delta(content, position)
            gates.append((literal - first, literal - first - second))
            literal += 2
        names = {"i": [""] * n_inputs, "o": [""] * n_outputs, "l": [""] * n_latches}
        while position < len(content):
            line, position = _line(content, position)
            if line == "c":
                break
            key, name = line.split(" ", 1)
            names[key[0]][int(key[1:])] = name
        return cls(names["i"], latches, outputs, gates, names["o"])

    def write(self, path, outputs):
        """Write a binary file, without names, with the given outputs, a list of names."""
        total = self.first_gate + len(self.gates) - 1
        lines = [f"aig {total} {len(self.inputs)} {len(self.latches)} {len(outputs)} {len(self.gates)}"]
        lines += [f"{following} {reset}" for following, reset in self.latches]
        lines += [str(self.outputs[self.output_names.index(name)]) for name in outputs]
        body = bytearray("".join(f"{line}\n" for line in lines).encode())
        for index, (left, right) in enumerate(self.gates):
            literal = 2 * (self.first_gate + index)
            for delta in (literal - left, left - right):
                while delta > 0x7F:
                    body.append(delta & 0x7F | 0x80)
                    delta >>= 7
                body.append(delta)
        path.write_bytes(body)


def _line(content, position):
    end = content.index(b"\n", position)
    return content[position:end].decode(), end + 1


def _delta(content, position):
    value = shift = 0
    while True:
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
