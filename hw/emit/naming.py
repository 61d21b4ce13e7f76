"""Names for results and registers that have none of the designer's: said by what they are, or by what they feed."""

import re
from collections import Counter

from hw.emit.dataflow import Register, Write
from hw.emit.netlist import Bits, Part, is_named
from hw.emit.operators import WORDS
from hw.emit.reserved import RESERVED, is_identifier

_LONGEST = 40

_RELATIONS = {"$eq": "is", "$ne": "is_not", "$lt": "below", "$le": "up_to", "$gt": "above", "$ge": "from"}
_STATES = {"$logic_not": "{}_is_zero", "$reduce_or": "any_{}", "$reduce_bool": "any_{}", "$reduce_and": "all_{}"}
_STATES |= {"$not": "not_{}", "$neg": "minus_{}"}
_ROLES = {"data": "next", "enable": "enable", "clear": "clear", "clock": "clock"}


def plain(name):
    """A name as every language takes it: no reserved word, no number that only tells equal names apart."""
    name = re.sub(r"\$\d+$", "", name.lstrip("\\$"))
    name = re.sub(r"_{3,}", "__", re.sub(r"\W", "_", name)).strip("_") or "net"
    name = f"n_{name}" if name[0].isdigit() else name
    return f"{name}_net" if name.lower() in RESERVED else name


def port_names(module):
    """``{port: plain name}`` of a module; those that Verilog takes stay."""
    names = [name[1:] for name in module.directions]
    taken = {name.lower() for name in names if is_identifier(name)}
    return {name: name if is_identifier(name) else _free(plain(name), taken) for name in names}


def _free(name, taken):
    """A name that is not taken yet, whatever its case, as near to the wanted one as can be; it is taken now."""
    free, count = name, 2
    while free.lower() in taken:
        free, count = f"{name}_{count}", count + 1
    taken.add(free.lower())
    return free


class Names:
    """The names in a module: ``of[net or operation]``, ``instances[cell name]``; no two differ by case alone."""

    def __init__(self, flow, design):
        self._flow, self._design = flow, design
        self.of = {f"\\{name}": text for name, text in port_names(flow.module).items()}
        self._taken = {name.lower() for name in self.of.values()}
        self._uses = {}
        self.instances = {cell.name: self.free(self._instance(cell)) for cell, _ in flow.instances}
        self.memories = {name: self.free(name) for name in flow.module.memories}
        nets = [name for name in flow.module.wires if is_named(name) and name not in self.of]
        at_instances = self._at_instances()
        for name in nets:
            self.of[name] = self.free(at_instances.get(name, name))

    def _instance(self, cell):
        """An instance that is called as a net inside would hide it."""
        child = self._design.get(cell.kind[1:])
        return f"{cell.name}_unit" if child and f"\\{plain(cell.name)}" in child.wires else cell.name

    def _at_instances(self):
        """``{net: instance_port}`` of nets that are called as the port, or by a letter; outputs of instances first.

        A net called as the port of several instances is one that the module itself named so.
        """
        pins = [
            (part.of, port, f"{self.instances[cell.name]}_{port}", self._is_input(cell.kind, port))
            for cell, ports in self._flow.instances
            for port, signal in ports.items()
            for part in signal
            if isinstance(part, Part) and is_named(str(part.of))
        ]
        uses, names = Counter(net for net, *_ in pins), {}
        for net, port, name, _ in sorted(pins, key=lambda pin: pin[3]):
            is_copy = re.fullmatch(rf"\\{port}\$\d+", net)
            if is_copy or net[1:] == port and uses[net] == 1 or len(plain(net)) == 1:
                names.setdefault(net, name)
        return names

    def _is_input(self, kind, port):
        child = self._design.get(kind[1:])
        return child is not None and child.directions[f"\\{port}"] == "input"

    def free(self, wanted):
        return _free(plain(wanted), self._taken)

    def name(self, key):
        """Give an operation, or a net without a name, its name."""
        if key not in self.of:
            self.of[key] = self.free(self._by_what_it_is(key) or self.by_use(key))
        return self.of[key]

    def _by_what_it_is(self, key):
        made = self._flow.operations.get(key)
        if made is None or made.kind not in _RELATIONS and made.kind not in _STATES:
            return None
        words = [self._word(operand) for operand in made.operands]
        if None in words:
            return None
        name = _STATES[made.kind].format(*words) if made.kind in _STATES else f"_{_RELATIONS[made.kind]}_".join(words)
        return name if len(name) <= _LONGEST and not name[0].isdigit() else None

    def _word(self, signal):
        """A net's name, or a number, as a part of a name."""
        if len(signal) != 1:
            return None
        part = signal[0]
        if isinstance(part, Bits):
            return str(int(part.bits, 2)) if "x" not in part.bits and part.width < 16 else None
        if part.of not in self.of or isinstance(part.of, int):
            return None
        name, width = self.of[part.of], self._flow.module.wires[part.of]
        if part.width == width:
            return name
        return f"{name}_{part.low + part.width - 1}" + (f"_{part.low}" if part.width > 1 else "")

    def by_use(self, key):
        root, role = self._use_of(key)
        if key in self._flow.operations:
            return f"{root}_{role or WORDS.get(self._flow.operations[key].kind, 'part')}"
        return self._flow.sources.get(key) or f"{root}_{role or 'before'}"

    def _use_of(self, key):
        """The name that what a result feeds has, and the role that it plays there if that says all."""
        if key not in self._uses:
            self._uses[key] = ("loop", None)
            self._uses[key] = self._first_use(key)
        return self._uses[key]

    def _first_use(self, key):
        users = self._flow.users.get(key)
        if not users:
            return "unused", None
        kind, user = users[0][0]
        if kind == "operand":
            target = self._flow.targets.get(user)
            return self.name(target[0].of) if target else self._use_of(user)[0], None
        if kind == "slice":
            return self.name(user.of), None
        if isinstance(user, Register):
            return self.name(user.target.of), _ROLES[kind]
        if isinstance(user, Write):
            return f"{user.memory}_write", kind
        return self.instances[user.name], kind
