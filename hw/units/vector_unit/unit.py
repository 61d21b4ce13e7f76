"""The vector unit: SIMD engines with local banks, accumulators, and a reduction bus over lanes and engines."""

from dataclasses import dataclass

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from golden.spec import vector_unit as spec
from golden.spec.formats import FP32
from golden.spec.vector_operations import OPERATION_WIDTH, SCOPE_WIDTH, Scope, VectorOp
from hw.lib.block import Block
from hw.lib.pipeline import Pipeline
from hw.units.vector_unit.engine import VectorEngine
from hw.units.vector_unit.reduction_bus import ReductionBus
from hw.units.vector_unit.stages import INPUT_LATENCY, select_stage
from hw.units.vector_unit.totals import Totals, TotalsParameters

__all__ = ["VectorUnit"]


@dataclass(frozen=True, kw_only=True)
class VectorUnitParameters(spec.VectorUnitParameters, TotalsParameters):
    @property
    def totals(self):
        """Parameters of the totals after the engines."""
        return TotalsParameters(**self.accumulator(), n_engines=self.n_engines, n_lanes=self.n_lanes)

    @property
    def command_layout(self):
        engines = data.ArrayLayout(data.ArrayLayout(self.float_format.width, self.n_lanes), self.n_engines)
        return data.StructLayout(
            {
                "operation": OPERATION_WIDTH,
                "scope": SCOPE_WIDTH,
                "first": 1,
                "last": 1,
                "enable": self.n_engines,
                "lane_enable": data.ArrayLayout(self.n_lanes, self.n_engines),
                "address": data.ArrayLayout(self.address_width, self.n_engines),
                "a": engines,
                "b": engines,
                "c": engines,
            }
        )

    @property
    def result_layout(self):
        n_totals = self.totals.n_totals
        return data.StructLayout(
            {
                "values": data.ArrayLayout(data.ArrayLayout(FP32.width, self.n_lanes), self.n_engines),
                "single": data.ArrayLayout(FP32.width, n_totals),
                "rounded": data.ArrayLayout(self.float_format.width, n_totals),
            }
        )


class VectorUnit(Block):
    """Executes one vector command a clock, in order, on n_engines engines of n_lanes lanes with a bank each.

    Operations, by :class:`golden.spec.vector_operations.VectorOp`; engine v, lane l:

    * 0 to 15, element-wise: ``values[v][l] = operation(a[v][l], b[v][l], c[v][l])``, as
      :class:`hw.arith.elementwise.ElementwiseLane`, :class:`hw.arith.exponential.Exponential`,
      :class:`hw.arith.reciprocal.Reciprocal`, :class:`hw.arith.reciprocal_root.ReciprocalRoot` and
      :class:`hw.arith.gelu.Gelu` define them. Comparisons give the mask bit in bit 0. All lanes give a result,
      enabled or not.
    * WRITE_BANK: ``bank[v][address[v]][l] = a[v][l]`` in enabled lanes of enabled engines; it gives no result beat.
    * READ_BANK: ``values[v] = bank[v][address[v]]`` in enabled engines, 0 in others.
    * SUM, SUM_SQUARES, SPMM: add ``a[v][l]``, ``a[v][l]**2``, ``a[v][0] * bank[v][address[v]][l]`` to the accumulator
      of each enabled lane of each enabled engine; others add nothing. The accumulators restart at ``first``, after
      one of these three with ``last``, and after reset. Only a command with ``last`` gives a result beat.
    * MAXIMUM: the largest ``a[v][l]`` of enabled lanes of enabled engines, separate from the sums and started in
      the same way. A number wins over NaN, -0 < +0, no element at all gives -Inf.
    * other codes give a result beat of zeros.

    An address of bank_depth or more counts as an engine that is not enabled. A bank access sees all earlier commands'
    writes; the contents of a bank are undefined until written. Reset does not clear it, but cancels a write that is
    stalled by a result.

    Totals, over the ``scope`` of the command with ``last``: 0 (LANES) of lane l over all engines in entry l, 1 (ENGINE)
    of engine v over its lanes in entry v, 2 or 3 (ALL) of everything in entry 0. ``single`` is a total rounded once
    to FP32, ``rounded`` the same unrounded total rounded once to the format; both to nearest, ties to even. Entries
    without a total are 0, as are ``values`` of accumulations, and ``single`` and ``rounded`` of all others.

    For n terms without NaN and Inf ``|total - exact| <= n * 2**(3 - align_width) * max|term| + 1/2 ulp``. NaN, Inf
    times 0 and infinities of both signs give NaN, otherwise an infinity wins; a sum of zeros is +0. max_terms terms of
    any size cannot overflow an accumulator; more may. Golden model: :class:`golden.units.vector_unit.VectorUnit` for
    the unit, :class:`golden.arith.accumulator.Accumulator` for the integers in the accumulators and on the bus.

    Timing: one command a clock; every result comes ``latency`` clocks after its command, and the whole pipeline
    stalls while a result is not accepted. Source: DiSC, section IV-B and figure 14.
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
        return {"command": In(stream.Signature(p.command_layout)), "result": Out(stream.Signature(p.result_layout))}

    @property
    def latency(self):
        """Clocks from a command to its result."""
        return INPUT_LATENCY + self.parameters.totals.latency

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, source=self.command, sink=self.result)
        p, command = self.parameters, self.command.payload
        select = INPUT_LATENCY + select_stage(p.n_engines, p.n_lanes)

        is_maximum = Signal()
        adds = Signal()
        gives_result = Signal()
        m.d.comb += [
            is_maximum.eq(command.operation == VectorOp.MAXIMUM),
            adds.eq(
                (command.operation == VectorOp.SUM)
                | (command.operation == VectorOp.SUM_SQUARES)
                | (command.operation == VectorOp.SPMM)
            ),
            gives_result.eq(Mux(adds | is_maximum, command.last, command.operation != VectorOp.WRITE_BANK)),
        ]
        valid = self.command.valid & gives_result
        for stage in range(1, self.latency + 1):
            valid = pipe.control(valid, name=f"valid_{stage}")
        m.d.comb += self.result.valid.eq(valid)
        used = self.command.valid & command.last & (adds | is_maximum)
        for stage in range(1, select + 1):
            used = pipe.control(used, name=f"used_{stage}")

        m.submodules.totals = totals = Totals(**p.totals.to_dict())
        m.d.comb += [
            totals.advance.eq(pipe.advance),
            totals.scope.eq(pipe.register(command.scope, name="scope", stages=select)),
            totals.used.eq(used),
            totals.is_maximum.eq(pipe.register(is_maximum, name="is_maximum_late", stages=select)),
            self.result.payload.single.eq(totals.single),
            self.result.payload.rounded.eq(totals.rounded),
        ]
        starts = {
            "sum_start": self._start(m, pipe, adds, "sum"),
            "maximum_start": self._start(m, pipe, is_maximum, "maximum"),
        }
        engines = [self._engine(m, pipe, index, starts, totals) for index in range(p.n_engines)]
        for lane in range(p.n_lanes):
            self._lane_bus(m, pipe, lane, engines, totals)
        return m

    def _engine(self, m, pipe, index, starts, totals):
        """An engine with its slice of the command, its values and its totals."""
        p, command = self.parameters, self.command.payload
        m.submodules[f"engine_{index}"] = engine = VectorEngine(
            **p.accumulator(), n_lanes=p.n_lanes, bank_depth=p.bank_depth, n_stages=self.latency - INPUT_LATENCY
        )
        m.d.comb += [
            engine.advance.eq(pipe.advance),
            engine.valid.eq(self.command.valid),
            engine.operation.eq(command.operation),
            engine.enable.eq(command.enable[index]),
            *(getattr(engine, name).eq(command[name][index]) for name in ("a", "b", "c", "lane_enable", "address")),
            *(getattr(engine, name).eq(start) for name, start in starts.items()),
            engine.over_engines.eq(command.scope == Scope.LANES),
            self.result.payload["values"][index].eq(engine.values),
            *(
                getattr(totals, name)[index].eq(getattr(engine, name))
                for name in ("engine_exponent", "engine_special", "engine_total", "engine_key")
            ),
        ]
        return engine

    def _lane_bus(self, m, pipe, lane, engines, totals):
        """The reduction bus of one lane over all engines."""
        p = self.parameters
        m.submodules[f"bus_{lane}"] = bus = ReductionBus(
            n_inputs=p.n_engines, width=p.aligned_width, exponent_width=p.exponent_width, key_width=p.float_format.width
        )
        m.d.comb += [
            bus.advance.eq(pipe.advance),
            totals.lane_exponent[lane].eq(bus.largest_exponent),
            totals.lane_special[lane].eq(bus.any_special),
            totals.lane_total[lane].eq(bus.total),
            totals.lane_key[lane].eq(bus.largest_key),
        ]
        for index, engine in enumerate(engines):
            m.d.comb += [
                bus.exponents[index].eq(engine.exponents[lane]),
                bus.specials[index].eq(engine.specials[lane]),
                bus.sums[index].eq(engine.aligned[lane]),
                bus.keys[index].eq(engine.keys[lane]),
                engine.references[lane].eq(bus.largest_exponent),
            ]

    def _start(self, m, pipe, operation, name):
        """Whether an accumulation restarts: at ``first``, after ``last``, after reset."""
        command = self.command.payload
        fresh = Signal(name=f"{name}_fresh", init=1)
        start = Signal(name=f"{name}_start")
        with m.If(pipe.advance & self.command.valid & operation):
            m.d.sync += fresh.eq(command.last)
        m.d.comb += start.eq(command.first | fresh)
        return start
