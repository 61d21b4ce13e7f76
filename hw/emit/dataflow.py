"""What a module's cells compute, apart from how it is written: operations in order, registers, writes, instances.

Nets without a name of the designer's vanish: a signal's parts are slices of named nets or of operations' results.
Operations that compute the same are merged, and none is wider than what is used of its result.
"""

from dataclasses import dataclass
from typing import NamedTuple

from hw.emit.netlist import Bits, Cell, Part, constant_of, cut, is_named, joined, memory_of, width_of
from hw.emit.operators import is_operation, narrowed, operation


class Control(NamedTuple):
    """When registers change: a clock edge, and signals for clear and enable with the value at which they act."""

    clock: tuple
    rising: str
    clear: tuple = None
    clears_at: str = ""
    enable: tuple = None
    enables_at: str = ""
    enable_first: bool = False
    is_asynchronous: bool = False


@dataclass
class Register:
    """A net, or a part of one, that takes ``data``, or ``cleared`` where its control clears it."""

    target: Part
    data: tuple
    control: Control
    cleared: Bits = None


@dataclass
class Write:
    """A write port: ``lanes`` are runs of bits with one enable, ``(low, width, enable)``."""

    memory: str
    clock: tuple
    rising: str
    address: tuple
    data: tuple
    lanes: list


class Dataflow:
    """A module's :attr:`operations` ``{number: Operation}`` in order, producers first, and what uses them.

    ``targets`` are the nets that take an operation's whole result, ``slices`` those that take a part of it; ``sources``
    says which instance's port drives a net without a name.
    """

    def __init__(self, module):
        self.module = module
        self.registers, self.writes, self.instances = [], [], []
        self._cells, others, self.sources = {}, [], {}
        for left, right in module.connections:
            self._connection(left, right)
        for cell in module.cells:
            if is_operation(cell):
                self._cells[len(self._cells)] = cell
                cell.ports["Y"] = cell.ports.get("Y") or cell.ports["DATA"]
            else:
                others.append(cell)
        self._nets = {name for name in module.wires if is_named(name) or name in module.directions}
        for cell in others:
            outputs = ("Q",) if cell.kind[0] == "$" else cell.ports
            self._nets |= {part.of for port in outputs for part in cell.ports.get(port, ()) if isinstance(part, Part)}
        self.nameless = sorted(name for name in self._nets - set(module.directions) if not is_named(name))
        self._pieces = {}
        self._find_pieces()
        self._resolved = {}
        self._same = {}
        order = self._order()
        position = {number: at for at, number in enumerate(order)}
        self._is_sorted = all(position[other] < at for at, number in enumerate(order) for other in self._inputs(number))
        self._resolved.clear()
        if self._is_sorted:
            self._merge(order)
        for cell in others:
            self._other(cell)
        self._use(order)

    # Nets without a name

    def _connection(self, left, right):
        position = width_of(right)
        for part in left:
            position -= part.width
            cell = Cell("$pos", "", {"A_SIGNED": "0"}, {"A": cut(right, position, part.width), "Y": (part,)})
            self._cells[len(self._cells)] = cell

    def _find_pieces(self):
        """For each nameless net, the signals that are its bits."""
        for number, cell in list(self._cells.items()):
            position = width_of(cell.ports["Y"])
            for part in cell.ports["Y"]:
                position -= part.width
                if part.of not in self._nets:
                    is_alias = not cell.name
                    signal = cell.ports["A"] if is_alias else (Part(number, position, part.width),)
                    self._pieces.setdefault(part.of, []).append((part.low, part.width, signal))
                    if is_alias:
                        del self._cells[number]

    def resolve(self, signal):
        """A signal of named nets and operations' results."""
        if signal not in self._resolved:
            parts = [piece for part in signal for piece in self._resolve_part(part)]
            self._resolved[signal] = joined(parts)
        return self._resolved[signal]

    def _resolve_part(self, part):
        if isinstance(part, Bits) or part.of in self._nets:
            return (part,)
        if isinstance(part.of, int):
            other = self._same.get(part.of)
            return (part,) if other is None else cut(other, part.low, part.width)
        pieces = self._pieces.get(part.of, ())
        if len(pieces) == 1 and pieces[0][0] == 0 and part.low + part.width <= pieces[0][1]:
            return self.resolve(cut(pieces[0][2], part.low, part.width))
        found, position = [], part.low + part.width
        for low, width, signal in sorted(pieces, reverse=True):
            first, last = max(low, part.low), min(low + width, position)
            if first < last:
                found += [Bits("x" * (position - last))] * (last < position)
                found += self.resolve(cut(signal, first - low, last - first))
                position = first
        return (*found, *[Bits("x" * (position - part.low))] * (position > part.low))

    # Order and equal operations

    def _order(self):
        drivers = {}
        for number, cell in self._cells.items():
            for part in cell.ports["Y"]:
                if part.of in self._nets:
                    drivers.setdefault(part.of, []).append((part.low, part.width, number))
        order, state = [], {}
        for start in self._cells:
            stack = [(start, None)]
            while stack:
                number, before = stack[-1]
                if before is None:
                    if number in state:
                        stack.pop()
                        continue
                    state[number] = "open"
                    before = iter(self._before(number, drivers))
                    stack[-1] = (number, before)
                following = next((other for other in before if other not in state), None)
                if following is None:
                    stack.pop()
                    order.append(number)
                else:
                    stack.append((following, None))
        return order

    def _before(self, number, drivers):
        for port, signal in self._cells[number].ports.items():
            if port != "Y":
                for part in self.resolve(signal):
                    if isinstance(part, Bits):
                        continue
                    if isinstance(part.of, int):
                        yield part.of
                    for low, width, driver in drivers.get(part.of, ()):
                        if low < part.low + part.width and part.low < low + width:
                            yield driver

    def _merge(self, order):
        """Operations that give the same as earlier ones, and drive no net of a name, are these."""
        known = {}
        for number in order:
            cell = self._cells[number]
            cell.ports = {port: signal if port == "Y" else self.resolve(signal) for port, signal in cell.ports.items()}
            inputs = tuple(sorted((port, signal) for port, signal in cell.ports.items() if port != "Y"))
            size = width_of(cell.ports["Y"])
            key = (cell.kind, inputs, tuple(sorted(cell.parameters.items())), size)
            if any(part.of in self._nets for part in cell.ports["Y"]):
                if all(part.of in self._nets for part in cell.ports["Y"]):
                    known.setdefault(key, cell.ports["Y"])
            elif key in known:
                self._same[number] = known[key]
            else:
                known[key] = (Part(number, 0, size),)

    # Registers, memories, instances

    def _other(self, cell):
        if cell.kind[0] != "$":
            ports = {port: self.resolve(signal) for port, signal in cell.ports.items()}
            self.instances.append((cell, ports))
            for port, signal in ports.items():
                if len(signal) == 1 and isinstance(signal[0], Part) and signal[0].of in self.nameless:
                    self.sources[signal[0].of] = f"{cell.name}_{port}"
        elif cell.kind == "$memwr_v2":
            self.writes.append(self._write(cell))
        elif cell.kind in ("$dff", "$dffe", "$sdff", "$sdffe", "$sdffce", "$adff", "$adffe"):
            self._registers(cell)
        else:
            raise ValueError(f"a cell of kind {cell.kind} has no Verilog here")

    def _registers(self, cell):
        kind, parameters = cell.kind, cell.parameters
        reset = {"s": "SRST", "a": "ARST"}.get(kind[1])
        fields = {"clock": self.resolve(cell.ports["CLK"]), "rising": parameters["CLK_POLARITY"]}
        if reset:
            fields |= {"clear": self.resolve(cell.ports[reset]), "clears_at": parameters[f"{reset}_POLARITY"]}
        if "EN" in cell.ports:
            fields |= {"enable": self.resolve(cell.ports["EN"]), "enables_at": parameters["EN_POLARITY"]}
        control = Control(**fields, enable_first=kind == "$sdffce", is_asynchronous=kind[1] == "a")
        data, position = self.resolve(cell.ports["D"]), width_of(cell.ports["Q"])
        value = reset and constant_of(parameters[f"{reset}_VALUE"], position)
        for part in cell.ports["Q"]:
            position -= part.width
            cleared = value and cut(value, position, part.width)[0]
            self.registers.append(Register(part, cut(data, position, part.width), control, cleared))

    def _write(self, cell):
        ports = {port: self.resolve(signal) for port, signal in cell.ports.items()}
        lanes, enables = [], ports["EN"]
        for bit in range(width_of(enables)):
            enable = cut(enables, bit, 1)
            if lanes and lanes[-1][2] == enable:
                lanes[-1][1] += 1
            else:
                lanes.append([bit, 1, enable])
        lanes = [lane for lane in lanes if lane[2] != (Bits("0"),)]
        memory, rising = memory_of(cell), cell.parameters["CLK_POLARITY"]
        return Write(memory, ports["CLK"], rising, ports["ADDR"], ports["DATA"], lanes)

    # Uses

    def _use(self, order):
        """From the last operation to the first: what is used of it, and with it how wide it is."""
        self.users, self._used = {}, {}
        self.controls = {}
        for register in self.registers:
            self.controls.setdefault(register.control, []).append(register)
            self._note(("data", register), register.data)
        for control, registers in self.controls.items():
            for role, signal in (("enable", control.enable), ("clear", control.clear), ("clock", control.clock)):
                self._note((role, registers[0]), signal or ())
        for write in self.writes:
            for role, signal in (("address", write.address), ("data", write.data)):
                self._note((role, write), signal)
            for lane in write.lanes:
                self._note(("enable", write), lane[2])
        for cell, ports in self.instances:
            for port, signal in ports.items():
                self._note((port, cell), signal)
        operations, self.targets, self.slices = {}, {}, {}
        for number in reversed(order):
            cell = self._cells[number]
            result = cell.ports["Y"]
            width = width_of(result)
            named = [part.of in self._nets for part in result]
            if number in self._same:
                continue
            if not all(named):
                used = self._used.get(number, 0)
                at = width
                for part, is_net in zip(result, named, strict=True):
                    used = max(used, at) if is_net else used
                    at -= part.width
                if self._is_sorted:
                    if not used:
                        continue
                    width = narrowed(cell, used)
                result = cut(result, 0, width)
                named = [part.of in self._nets for part in result]
            ports = {port: self.resolve(signal) for port, signal in cell.ports.items() if port != "Y"}
            made = operations[number] = operation(cell, ports, width)
            if all(named) and number not in self._used and made.width == width:
                self.targets[number] = result
            else:
                at = width
                for part, is_net in zip(result, named, strict=True):
                    at -= part.width
                    if is_net:
                        self.slices.setdefault(number, []).append((part, (Part(number, at, part.width),)))
                        self._note(("slice", part), self.slices[number][-1][1])
            for operand in made.operands:
                self._note(("operand", number), operand)
        self.operations = {number: operations[number] for number in order if number in operations}

    def _inputs(self, number):
        for port, signal in self._cells[number].ports.items():
            if port != "Y":
                for part in self.resolve(signal):
                    if isinstance(part, Part) and isinstance(part.of, int):
                        yield part.of

    def _note(self, user, signal):
        before = None
        for part in signal:
            if isinstance(part, Part):
                if part != before:
                    self.users.setdefault(part.of, []).append((user, part))
                if isinstance(part.of, int):
                    self._used[part.of] = max(self._used.get(part.of, 0), part.low + part.width)
            before = part
