"""A block under the solver: its inputs are free, what is claimed of it is one bit a claim."""

from amaranth.hdl import Cat, ClockDomain, Elaboratable, Instance, Module, Mux, Signal, Value

from hw.emit.contract import flat_ports

__all__ = ["TOP", "Checker"]

TOP = "checker"


class Checker(Elaboratable):
    """A circuit around instances of blocks' emitted Verilog.

    The block's own signals are its connections: a checker reads and compares them, and those inputs that it does not
    :meth:`drive` are free: the solver chooses them again in every clock. ``rst`` is 1 in the first clock, before which
    all registers and memories of the block hold anything, and later whenever the solver likes; the checker's registers
    (domain sync) start again with it. Its logic goes into the module :attr:`m`.
    """

    _MustUse__silence = True  # a property may fail before its checker is emitted

    def __init__(self, **blocks):
        self.blocks = blocks
        self.claims = {}
        """``{name: condition}``, which must hold in every clock without reset."""
        self.covers = {}
        """``{name: condition}``, which must be reachable: a claim about nothing would be no claim."""
        self.prefix = ""
        """What the names of claims and covers begin with, where there are several blocks."""
        self.enumerated = {}
        """``{input: (width, words)}`` for the engines that evaluate the circuit; known after :meth:`ports`."""
        self._enumerations = []
        self._progress = None
        self._results = []
        self._assumptions = []
        self._free = {}
        self._driven = set()
        self.m = Module()
        self.m._MustUse__silence = True
        self.m.domains.sync = self._domain = ClockDomain("sync")
        self.first = Signal(init=1, reset_less=True)
        self.rst = Signal(name="rst_now")
        self.m.d.sync += self.first.eq(0)
        self.m.d.comb += [self.rst.eq(self.first | self.free(1, "reset_request")), self._domain.rst.eq(self.rst)]

    def free(self, shape, name):
        """A value that the solver chooses in every clock."""
        signal = Signal(shape, name=name)
        self._free[name] = signal
        return signal

    def constant(self, shape, name):
        """A value that the solver chooses once."""
        choice = self.free(shape, f"{name}_choice")
        held = Signal.like(choice, name=f"{name}_kept", reset_less=True)
        value = Signal.like(choice, name=name)
        self.m.d.comb += value.eq(Mux(self.first, choice, held))
        self.m.d.sync += held.eq(value)
        return value

    def drive(self, port, value):
        """Connect an input of the block instead of leaving it free."""
        port = Value.cast(port)
        self._driven.add(id(port))
        self.m.d.comb += port.eq(value)

    def claim(self, name, condition):
        """``condition`` holds in every clock without reset."""
        self._put(self.claims, name, condition, "claim")

    def cover(self, name, condition):
        """``condition`` is reachable."""
        self._put(self.covers, name, condition, "cover")

    def assume(self, condition, in_reset=False):
        """Consider only runs in which ``condition`` has held in every clock (without reset) up to now."""
        condition = condition if in_reset else condition | self.rst
        self._assumptions.append(self._named(condition, f"assumption_{len(self._assumptions)}"))

    def enumerate(self, *choices, taken=1, checked=1):
        """Evaluate the claims for all combinations of words of some inputs: ``(input, words)``, the last one fastest.

        ``taken``: the next combination may follow in the next clock; ``checked``: the claims are about a combination,
        the oldest one that was taken and not checked. All combinations must agree about both.
        """
        self._enumerations = [(Value.cast(port), words) for port, words in choices]
        self._progress = {"is_taken": taken & ~self.rst, "is_checked": checked & ~self.rst}

    def result(self, value):
        """The value to be compared with a model where ``checked``."""
        self._results.append(Value.cast(value))

    def _put(self, table, name, condition, kind):
        name = self.prefix + name
        if name in table:
            raise ValueError(f"two {kind}s are called {name!r}")
        table[name] = self._named(condition, f"{kind}_{len(table)}")

    def _named(self, condition, name):
        signal = Signal(name=name)
        self.m.d.comb += signal.eq(condition)
        return signal

    def register(self, value, name, enable=1):
        """``value`` in the clock before (with ``enable``); a register of the checker, cleared by reset."""
        held = Signal.like(value, name=name)
        with self.m.If(enable):
            self.m.d.sync += held.eq(value)
        return held

    def ports(self, clocking):
        """Finish the circuit: add the instances and return ``{port: (value, direction)}`` of the top.

        ``clocking`` says for each instance which of clk and rst its module has.
        """
        m = self.m
        ports = {"clk": (self._domain.clk, "input")} | {name: (signal, "input") for name, signal in self._free.items()}
        for name, block in self.blocks.items():
            connections = {}
            for port, (direction, value) in flat_ports(block).items():
                connections[f"{direction[0]}_{port}"] = value
                if direction == "input" and id(value) not in self._driven:
                    ports[f"{name}_{port}"] = (value, "input")
            if "clk" in clocking[name]:
                connections["i_clk"] = self._domain.clk
            if "rst" in clocking[name]:
                connections["i_rst"] = self.rst
            m.submodules[name] = Instance(name, **connections)
        if self._enumerations:
            self._add_enumeration(ports)
        # Nothing counts in reset, and nothing after a clock in which an assumption was broken.
        held = Signal(init=1, reset_less=True)
        holds = Signal()
        m.d.comb += holds.eq(held & Cat(self._assumptions).all())
        m.d.sync += held.eq(holds)
        counts = holds & ~self.rst
        for kind, conditions in (
            ("fails", [~claim for claim in self.claims.values()]),
            ("reaches", list(self.covers.values())),
        ):
            for index, condition in enumerate(conditions):
                output = Signal(name=f"{kind}_{index}")
                m.d.comb += output.eq(condition & counts)
                ports[output.name] = (output, "output")
        return ports

    def _add_enumeration(self, ports):
        name_of = {id(value): name for name, (value, direction) in ports.items() if direction == "input"}
        self.enumerated = {name_of[id(port)]: (len(port), words) for port, words in self._enumerations}
        results = {f"result_{index}": bit for index, bit in enumerate(Cat(self._results))}
        for name, value in (self._progress | results).items():
            output = Signal(name=name)
            self.m.d.comb += output.eq(value)
            ports[name] = (output, "output")

    def elaborate(self, platform):
        return self.m
