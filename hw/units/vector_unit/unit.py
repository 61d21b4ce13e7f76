"""The vector unit: SIMD engines with local banks, accumulators, and a reduction bus over lanes and engines."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec import vector_unit as spec
from golden.spec.formats import FP32
from golden.spec.vector_operations import ADDING_OPS, FUNCTION_OPS, Scope, VectorOp
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.vector_unit.engine import VectorEngine, one_of
from hw.units.vector_unit.reduction_bus import ReductionBus
from hw.units.vector_unit.stages import INPUT_LATENCY
from hw.units.vector_unit.totals import Totals, TotalsParameters

__all__ = ["VectorUnit", "VectorUnitParameters"]


@dataclass(frozen=True, kw_only=True)
class VectorUnitParameters(spec.VectorUnitParameters, TotalsParameters):
    def _layout_of(self, unit, shape):
        return {"command": shape, "engine": self._engines(shape), "lane": self._engines(self._lanes(shape))}[unit]

    def _lanes(self, shape):
        return data.ArrayLayout(shape, self.n_lanes)

    def _engines(self, shape):
        return data.ArrayLayout(shape, self.n_engines)

    @property
    def command_layout(self):
        fields = {name: self._layout_of(unit, width) for name, (width, unit) in self.field_widths.items()}
        if "enable" in fields:
            fields |= {"enable": self.n_engines, "lane_enable": self._engines(self.n_lanes)}
        return data.StructLayout(fields)

    @property
    def result_layout(self):
        widths = {"single": FP32.width, "rounded": self.float_format.width}
        values = {"values": self._engines(self._lanes(self.value_width))} if self.gives_values else {}
        totals = {form: data.ArrayLayout(widths[form], self.n_totals) for form in self.total_forms}
        return data.StructLayout(values | totals)

    @property
    def engine(self):
        """The parameters of an engine but for the stage of its values."""
        return VectorEngine.Parameters(**self.operation_parameters(), bank_depth=self.bank_depth)

    @property
    def total_stage(self):
        """The stage of the totals, 0 without any."""
        parameters = TotalsParameters(**self.totals_parameters()) if self.accumulates else None
        return parameters.latency if parameters else 0

    def totals_parameters(self):
        """The parameters of the totals after the engines."""
        return {**self.operation_parameters(), "n_engines": self.n_engines}

    @property
    def value_stage(self):
        """The stage of the lanes' values; with totals it is that of these, unless values are early."""
        earliest = self.engine.earliest_value
        return earliest if self.early_values else max(earliest, self.total_stage)


class VectorUnit(Block):
    """Executes one vector command a clock, in order, on n_engines engines of n_lanes lanes with a bank each.

    Operations, by :class:`golden.spec.vector_operations.VectorOp`; engine v, lane l:

    * 0 to 15, and SILU, element-wise: ``values[v][l] = operation(a[v][l], b[v][l], c[v][l])``, as
      :class:`hw.arith.elementwise.ElementwiseLane`, :class:`hw.arith.exponential.Exponential`,
      :class:`hw.arith.reciprocal.Reciprocal`, :class:`hw.arith.reciprocal_root.ReciprocalRoot`,
      :class:`hw.arith.gelu.Gelu` and :class:`hw.arith.silu.Silu` define them. Comparisons give the mask bit in bit 0.
      All lanes give a result, enabled or not.
    * WRITE_BANK: ``bank[v][address[v]][l] = a[v][l]`` in enabled lanes of enabled engines; it gives no result beat.
    * READ_BANK: ``values[v] = bank[v][address[v]]`` in enabled engines, 0 in others.
    * SUM, SUM_SQUARES, SPMM: add ``a[v][l]``, ``a[v][l]**2``, ``a[v][0] * bank[v][address[v]][l]`` to the accumulator
      of each enabled lane of each enabled engine; others add nothing. The accumulators restart at ``first``, after
      one of these three with ``last``, and after reset. Only a command with ``last`` gives a result beat.
    * MAXIMUM: the largest ``a[v][l]`` of enabled lanes of enabled engines, separate from the sums and started in
      the same way. A number wins over NaN, -0 < +0, no element at all gives -Inf.
    * other codes, and those of operations that are not among ``operations``, give a result beat of zeros.

    What no operation needs is absent: the fields b, c, address, enable, lane_enable, first, last, values, single and
    rounded, units, accumulators and the bus. ``values`` are FP32 wide only with TO_FP32.

    An address of bank_depth or more counts as an engine that is not enabled. A bank access sees all earlier commands'
    writes; the contents of a bank are undefined until written. Reset does not clear it.

    Totals, over the ``scope`` of the command with ``last``: 0 (LANES) of lane l over all engines in entry l, 1 (ENGINE)
    of engine v over its lanes in entry v, 2 or 3 (ALL) of everything in entry 0; a scope that is not among ``scopes``
    has no totals, and where there is only one, commands have no field for it. ``single`` is a total rounded once to
    FP32, ``rounded`` the same unrounded total rounded once to the format; both to nearest, ties to even. Entries
    without a total are 0, as are ``values`` of accumulations, and ``single`` and ``rounded`` of all others.

    For n terms without NaN and Inf ``|total - exact| <= n * 2**(3 - align_width) * max|term| + 1/2 ulp``. NaN, Inf
    times 0 and infinities of both signs give NaN, otherwise an infinity wins; a sum of zeros is +0. max_terms terms of
    any size cannot overflow an accumulator; more may. Golden model: :class:`golden.units.vector_unit.VectorUnit` for
    the unit, :class:`golden.arith.accumulator.Accumulator` for the integers in the accumulators and on the bus.

    Timing: one command a clock; every result comes ``latency`` clocks after its command, and the whole pipeline
    stalls while a result is not accepted. A function (EXP, RECIPROCAL, RSQRT, GELU, SILU) occupies the unit for
    ``n_passes`` = n_lanes / special_lanes clocks, rounded up, and its result comes n_passes - 1 clocks later. With
    early_values only totals have this latency, values come ``value_latency`` clocks after their command, and such a
    command waits until the last total before it is no more than value_latency clocks from its result. Without stallable
    results must be taken as they come. Source: DiSC, section IV-B and figure 14.
    """

    role = "vector_lanes"
    Parameters = VectorUnitParameters
    members_doc = {
        "command": "one operation on all lanes; a, b, c, lane_enable are by engine, then by lane",
        "command.operation": ", ".join(f"{operation.value} {operation.name}" for operation in VectorOp),
        "command.scope": "of results of SUM, SUM_SQUARES, SPMM and MAXIMUM: "
        + ", ".join(f"{scope.value} {scope.name}" for scope in Scope),
        "command.first": "accumulators start anew with this command",
        "command.last": "this accumulation gives its result",
        "command.enable": "engines that take part in accumulations and bank accesses, engine 0 in bit 0",
        "command.lane_enable": "lanes of each engine that do",
        "command.address": "word of each engine's bank, below bank_depth",
        "command.a": "{format} numbers: first operand",
        "command.b": "{format} numbers: second operand, of operations that have one",
        "command.c": "{format} numbers: third operand, of FMA",
        "result": "one beat a command, but none for WRITE_BANK and for accumulations without last",
        "result.values": "of commands on lanes and READ_BANK, else 0: FP32 numbers, or in the lowest bits {format} "
        "numbers where the operation gives such, mask bits of comparisons in bit 0",
        "result.single": "of accumulations, else 0: their totals over the scope, FP32, rounded once; entry l is lane l "
        "with LANES, entry v engine v with ENGINE, entry 0 all with ALL",
        "result.rounded": "the same totals in {format}, rounded once",
    }

    @staticmethod
    def members(p):
        result = stream.Signature(p.result_layout, always_ready=not p.stallable)
        return {"command": In(stream.Signature(p.command_layout)), "result": Out(result)}

    @property
    def latency(self):
        """Clocks from a command to its result, of totals and, without early_values, of values from their last pass."""
        return INPUT_LATENCY + max(self.parameters.total_stage, self.parameters.value_stage)

    @property
    def value_latency(self):
        """Clocks from the last pass of a command to its values."""
        return INPUT_LATENCY + self.parameters.value_stage

    def circuit(self):
        m = Module()
        p = self.parameters
        # Without stalls every register is enabled always: it needs no enable at all.
        self._advance = advance = Const(1, 1)
        if p.stallable:
            self._advance = advance = Signal(name="advance")
            m.d.comb += advance.eq(~self.result.valid | self.result.ready)
        self._pipe = Pipeline(m, advance=advance)
        self._decode(m)
        repeats = self._accept(m)
        starts = {}
        if p.has_sums:
            starts["sum_start"] = self._start(m, self._adds, "sum")
        if p.has_maximum:
            starts["maximum_start"] = self._start(m, self._is_maximum, "maximum")
        engines = [self._engine(m, index, starts, repeats) for index in range(p.n_engines)]
        if p.accumulates:
            totals = self._totals(m, engines)
            if "lanes" in p.total_scopes:
                for lane in range(p.n_lanes):
                    self._lane_bus(m, lane, engines, totals)
        return m

    def _decode(self, m):
        """What kind of command there is, and whether it gives values or a total, or nothing."""
        p, command = self.parameters, self.command.payload
        self._adds, self._is_maximum = Signal(name="adds"), Signal(name="is_maximum")
        self._gives_total, self._gives_values = Signal(name="gives_total"), Signal(name="gives_values")
        accumulates, writes = Signal(name="accumulates"), Signal(name="writes")
        m.d.comb += [
            self._adds.eq(one_of(command.operation, p.present(ADDING_OPS))),
            self._is_maximum.eq(one_of(command.operation, p.present((VectorOp.MAXIMUM,)))),
            accumulates.eq(self._adds | self._is_maximum),
            writes.eq(one_of(command.operation, p.present((VectorOp.WRITE_BANK,)))),
            self._gives_total.eq(accumulates & command.last if p.accumulates else 0),
            self._gives_values.eq(~accumulates & ~writes),
        ]

    def _accept(self, m):
        """The handshake of commands and the valid bits of results. Returns whether the last command repeats."""
        p, pipe, command = self.parameters, self._pipe, self.command
        self._accepted = accepted = Signal(name="accepted")
        repeats, waits = Signal(name="repeats"), Signal(name="waits")
        last_pass = accepted & self._gives_values
        if p.n_passes > 1:
            rest = Signal(range(p.n_passes), name="passes_left")
            is_function = one_of(command.payload.operation, p.present(FUNCTION_OPS))
            m.d.comb += repeats.eq(rest != 0)
            with m.If(self._advance):
                with m.If(repeats):
                    m.d.sync += rest.eq(rest - 1)
                with m.Elif(accepted & is_function):
                    m.d.sync += rest.eq(p.n_passes - 1)
            last_pass = (last_pass & ~is_function) | (rest == 1)
        m.d.comb += [
            command.ready.eq(self._advance & ~repeats & ~waits),
            accepted.eq(command.valid & ~repeats & ~waits),
        ]
        total = accepted & self._gives_total
        value = last_pass
        if not self.early_values:
            total = value = total | value
        totals, values = [], []
        for stage in range(1, self.latency + 1):
            total = pipe.control(total, name=f"total_valid_{stage}" if self.early_values else f"valid_{stage}")
            totals.append(total)
        if self.early_values:
            for stage in range(1, self.value_latency + 1):
                value = pipe.control(value, name=f"value_valid_{stage}")
                values.append(value)
            # A total that would come at the same time as these values, or after them.
            before = totals[: self.latency - self.value_latency]
            m.d.comb += waits.eq(self._gives_values & Cat(before).any())
        m.d.comb += self.result.valid.eq(totals[-1] | values[-1] if values else totals[-1])
        return repeats

    def _totals(self, m, engines):
        """The totals over all engines, into the result."""
        p, pipe, command = self.parameters, self._pipe, self.command.payload
        m.submodules.totals = totals = Totals(**p.totals_parameters())
        select = INPUT_LATENCY + totals.parameters.select_stage
        used = self._accepted & self._gives_total
        for stage in range(1, select + 1):
            used = pipe.control(used, name=f"used_{stage}")
        m.d.comb += [totals.advance.eq(self._advance), totals.used.eq(used)]
        if len(p.total_scopes) > 1:
            m.d.comb += totals.scope.eq(pipe.register(command.scope, name="scope", stages=select))
        if p.has_sums and p.has_maximum:
            late = pipe.register(self._is_maximum, name="is_maximum_late", stages=select)
            m.d.comb += totals.is_maximum.eq(late)
        rest = self.latency - INPUT_LATENCY - totals.latency
        for form in p.total_forms:
            late = pipe.register(getattr(totals, form), name=f"{form}_late", stages=rest)
            m.d.comb += self.result.payload[form].eq(late)
        for index, engine in enumerate(engines):
            for name in ("engine_exponent", "engine_special", "engine_total", "engine_key"):
                if name in engine.signature.members:
                    m.d.comb += getattr(totals, name)[index].eq(getattr(engine, name))
        return totals

    def _engine(self, m, index, starts, repeats):
        """An engine with its slice of the command and its values."""
        p, command = self.parameters, self.command.payload
        m.submodules[f"engine_{index}"] = engine = VectorEngine(
            **p.engine.to_dict() | {"value_stage": p.value_stage if p.gives_values else None}
        )
        inputs = {
            "advance": self._advance,
            "valid": self._accepted | repeats,
            "repeats": repeats,
            "operation": command.operation,
            **starts,
        }
        if "over_engines" in engine.signature.members:
            inputs["over_engines"] = command.scope == Scope.LANES
        for name in ("a", "b", "c", "enable", "lane_enable", "address"):
            if name in engine.signature.members:
                inputs[name] = command[name][index]
        m.d.comb += [
            getattr(engine, name).eq(value) for name, value in inputs.items() if name in engine.signature.members
        ]
        if p.gives_values:
            m.d.comb += self.result.payload["values"][index].eq(engine.values)
        return engine

    def _lane_bus(self, m, lane, engines, totals):
        """The reduction bus of one lane over all engines."""
        p = self.parameters
        m.submodules[f"bus_{lane}"] = bus = ReductionBus(
            n_inputs=p.n_engines,
            width=p.aligned_width,
            exponent_width=p.exponent_width,
            key_width=p.float_format.width,
            has_sums=p.has_sums,
            has_maximum=p.has_maximum,
        )
        m.d.comb += bus.advance.eq(self._advance)
        if p.has_sums:
            m.d.comb += [
                totals.lane_exponent[lane].eq(bus.largest_exponent),
                totals.lane_special[lane].eq(bus.any_special),
                totals.lane_total[lane].eq(bus.total),
            ]
            for index, engine in enumerate(engines):
                m.d.comb += [
                    bus.exponents[index].eq(engine.exponents[lane]),
                    bus.specials[index].eq(engine.specials[lane]),
                    bus.sums[index].eq(engine.aligned[lane]),
                    engine.references[lane].eq(bus.largest_exponent),
                ]
        if p.has_maximum:
            m.d.comb += totals.lane_key[lane].eq(bus.largest_key)
            m.d.comb += [bus.keys[index].eq(engine.keys[lane]) for index, engine in enumerate(engines)]

    def _start(self, m, operation, name):
        """Whether an accumulation restarts: at ``first``, after ``last``, after reset."""
        command = self.command.payload
        fresh = Signal(name=f"{name}_fresh", init=1)
        start = Signal(name=f"{name}_start")
        with m.If(self._advance & self._accepted & operation):
            m.d.sync += fresh.eq(command.last)
        m.d.comb += start.eq(command.first | fresh)
        return start
