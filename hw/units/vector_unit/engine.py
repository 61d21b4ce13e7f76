"""One SIMD engine: its bank, its lanes with their accumulators, and the bus over its lanes."""

from dataclasses import dataclass
from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from golden.spec.formats import FP32
from golden.spec.parameters import integer
from golden.spec.vector_operations import OPERATION_WIDTH, VectorOp
from golden.spec.vector_unit import MAX_BANK_DEPTH, MAX_LANES
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.lib.pipeline import Pipeline
from hw.units.vector_unit.accumulator import LaneAccumulator
from hw.units.vector_unit.arithmetic import SPECIALS, AccumulatorParameters
from hw.units.vector_unit.factor import Factor
from hw.units.vector_unit.reduction_bus import ReductionBus
from hw.units.vector_unit.stages import EXPONENT_STAGE, INPUT_LATENCY, KEY_STAGE, SUM_STAGE, engine_total_stage
from hw.units.vector_unit.values import FUNCTIONS, ValueLane, expand, narrow_width

__all__ = ["VectorEngine"]


@dataclass(frozen=True, kw_only=True)
class VectorEngineParameters(AccumulatorParameters):
    n_lanes: int = integer(4, low=1, high=MAX_LANES, doc="lanes of the engine")
    bank_depth: int = integer(64, low=1, high=MAX_BANK_DEPTH, doc="rows of the bank, n_lanes words each")
    n_stages: int = integer(15, low=8, high=64, doc="advances from stage 0 to a command's values")

    @property
    def address_width(self):
        return max(1, ceil_log2(self.bank_depth))

    @property
    def total_width(self):
        """Bits of the sum over the lanes."""
        return self.aligned_width + ceil_log2(self.n_lanes)


class VectorEngine(Block):
    """Bank, lanes and accumulators of one engine, with its own copy of the pipeline's control.

    The engine registers the command locally, so that the selection of commands and the fan-out of the control do not
    delay the lanes. Each port's documentation names its pipeline stage: stage 0 is the command in these registers,
    stage n is n advances later. All accesses to the bank are made at stage 0, so that a command sees every earlier
    command's write.
    """

    Parameters = VectorEngineParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "valid": "one advance before stage 0, like the whole command: there is a command",
        "operation": "a VectorOp",
        "a": "first operands",
        "b": "second operands",
        "c": "third operands",
        "enable": "the engine is enabled for accumulations and bank accesses",
        "lane_enable": "lanes enabled for accumulations and writes",
        "address": "row of the bank",
        "sum_start": "the sums restart",
        "maximum_start": "the maxima restart",
        "over_engines": "align sums for the bus over the engines, not over the lanes",
        "values": "stage n_stages: results of the lanes",
        "exponents": "stage 3: exponent codes of the lanes' sums",
        "references": "stage 5: exponent codes to which the lanes' sums are aligned on the bus over the engines",
        "specials": "stage 5: specials of the lanes' sums",
        "aligned": "stage 6: the lanes' aligned sums",
        "keys": "stage 2: keys of the lanes' maxima",
        "engine_exponent": "stage 5: the largest exponent code of the lanes",
        "engine_special": "stage 6: union of the lanes' specials",
        "engine_total": "engine_total_stage: sum over the lanes",
        "engine_key": "engine_total_stage: the largest key of the lanes",
    }

    @staticmethod
    def members(p):
        words = data.ArrayLayout(p.float_format.width, p.n_lanes)
        return {
            "advance": In(1),
            "valid": In(1),
            "operation": In(OPERATION_WIDTH),
            **{name: In(words) for name in "abc"},
            "enable": In(1),
            "lane_enable": In(p.n_lanes),
            "address": In(p.address_width),
            "sum_start": In(1),
            "maximum_start": In(1),
            "over_engines": In(1),
            "values": Out(data.ArrayLayout(FP32.width, p.n_lanes)),
            "exponents": Out(data.ArrayLayout(p.exponent_width, p.n_lanes)),
            "references": In(data.ArrayLayout(p.exponent_width, p.n_lanes)),
            "specials": Out(data.ArrayLayout(SPECIALS, p.n_lanes)),
            "aligned": Out(data.ArrayLayout(signed(p.aligned_width), p.n_lanes)),
            "keys": Out(data.ArrayLayout(p.float_format.width, p.n_lanes)),
            "engine_exponent": Out(p.exponent_width),
            "engine_special": Out(SPECIALS),
            "engine_total": Out(signed(p.total_width)),
            "engine_key": Out(p.float_format.width),
        }

    @property
    def latency(self):
        return INPUT_LATENCY + self.n_stages

    def circuit(self):
        m = Module()
        pipe = Pipeline(m, advance=self.advance)
        self._valid = pipe.control(self.valid, name="valid_0")
        names = ("operation", *"abc", "enable", "lane_enable", "address", "sum_start", "maximum_start", "over_engines")
        self._command = SimpleNamespace(
            **{name: pipe.register(getattr(self, name), name=f"{name}_0") for name in names}
        )
        row = self._bank(m)
        self._values(m, pipe, row)
        lanes = self._accumulators(m, pipe, row)
        self._lane_bus(m, pipe, lanes)
        return m

    def _bank(self, m):
        """Stage 0: one access a command. Returns the row at stage 1."""
        command = self._command
        m.submodules.bank = bank = MemoryBank(
            depth=self.bank_depth,
            width=len(self.a.as_value()),
            ports="single",
            granularity=self.parameters.float_format.width,
        )
        self._works = works = Signal(name="works")  # an address outside the bank acts as a disabled engine
        access = Signal()
        reads = (command.operation == VectorOp.READ_BANK) | (command.operation == VectorOp.SPMM)
        m.d.comb += [
            works.eq(command.enable & (command.address < self.bank_depth)),
            access.eq(self.advance & self._valid & works),
            bank.address.eq(command.address),
            bank.write_enable.eq(
                command.lane_enable & (access & (command.operation == VectorOp.WRITE_BANK)).replicate(self.n_lanes)
            ),
            bank.read_enable.eq(access & reads),
            bank.write_data.eq(command.a),
        ]
        return data.View(self.a.shape(), bank.read_data)

    def _values(self, m, pipe, row):
        """Results of the lanes, delayed so that all commands have the same latency."""
        command = self._command
        fmt = self.parameters.float_format
        lanes = [ValueLane(format=self.format) for _ in range(self.n_lanes)]
        latency = {name: child.latency for name, child in lanes[0].children.items()}
        takes = {
            "row": (1, self._works & (command.operation == VectorOp.READ_BANK)),
            "elementwise": (latency["elementwise"], command.operation < VectorOp.EXP),
            "single": (latency["elementwise"], command.operation == VectorOp.TO_FP32),
            **{name: (latency[name], command.operation == operation) for operation, (name, _) in FUNCTIONS.items()},
        }
        takes = {name: pipe.register(take, name=f"take_{name}", stages=stage) for name, (stage, take) in takes.items()}
        for index, lane in enumerate(lanes):
            m.submodules[f"value_lane_{index}"] = lane
            m.d.comb += [
                lane.advance.eq(self.advance),
                lane.operation.eq(command.operation),
                lane.a.eq(command.a[index]),
                lane.b.eq(command.b[index]),
                lane.c.eq(command.c[index]),
                lane.row.eq(row[index]),
                *(getattr(lane, f"take_{name}").eq(take) for name, take in takes.items()),
            ]
        rest = self.n_stages - lanes[0].latency
        # Wide rows of registers: the results are delayed by the latency of an accumulation.
        values = Signal(data.ArrayLayout(narrow_width(fmt), self.n_lanes))
        m.d.comb += values.eq(Cat(lane.value for lane in lanes))
        values = pipe.register(values, name="values_late", stages=rest)
        is_single = pipe.register(takes["single"], name="is_single", stages=rest)
        m.d.comb += [self.values[index].eq(expand(fmt, value, is_single)) for index, value in enumerate(values)]

    def _accumulators(self, m, pipe, row):
        p, command = self.parameters, self._command
        valid = [self._valid]
        for stage in range(1, 3):
            valid.append(pipe.control(valid[-1], name=f"valid_{stage}"))
        is_spmm = Signal()
        is_maximum = Signal()
        is_square = Signal()
        adds = Signal()
        m.d.comb += [
            is_spmm.eq(command.operation == VectorOp.SPMM),
            is_maximum.eq(command.operation == VectorOp.MAXIMUM),
            is_square.eq(command.operation == VectorOp.SUM_SQUARES),
            adds.eq(is_spmm | is_square | (command.operation == VectorOp.SUM)),
        ]
        active = Mux(is_spmm, self._works, command.enable).replicate(self.n_lanes)
        takes_part = pipe.register(command.lane_enable & active, name="takes_part")
        from_row = pipe.register(is_spmm, name="from_row")

        # The scalar of SPMM, or one, for all lanes.
        fmt = p.float_format
        scalar = Mux(is_spmm, command.a[0], fmt.bias << fmt.fraction_width)
        m.submodules.coefficient = coefficient = Factor(format=p.format)
        m.d.comb += coefficient.word.eq(pipe.register(scalar, name="scalar"))
        shared = {
            "from_row": from_row,
            "coefficient": coefficient.factor,
            "is_square": pipe.register(is_square, name="is_square_1"),
            "maximum_update": pipe.register(is_maximum, name="maximum_update") & valid[1],
            "maximum_start": pipe.register(command.maximum_start, name="maximum_start_1"),
            "update": pipe.register(adds, name="update", stages=2) & valid[2],
            "start": pipe.register(command.sum_start, name="sum_start_2", stages=2),
        }
        lanes = []
        for index in range(self.n_lanes):
            lane = LaneAccumulator(**p.accumulator())
            m.submodules[f"accumulator_{index}"] = lane
            lanes.append(lane)
            m.d.comb += [
                lane.advance.eq(self.advance),
                lane.word.eq(command.a[index]),
                lane.row.eq(row[index]),
                lane.takes_part.eq(takes_part[index]),
                *(getattr(lane, name).eq(value) for name, value in shared.items()),
                self.exponents[index].eq(lane.exponent),
                self.specials[index].eq(lane.specials),
                self.aligned[index].eq(lane.aligned),
                self.keys[index].eq(lane.maximum_key),
            ]
        return lanes

    def _lane_bus(self, m, pipe, lanes):
        p = self.parameters
        m.submodules.lane_bus = bus = ReductionBus(
            n_inputs=self.n_lanes,
            width=p.aligned_width,
            exponent_width=p.exponent_width,
            key_width=p.float_format.width,
        )
        over_engines = pipe.register(self._command.over_engines, name="over_engines_late", stages=EXPONENT_STAGE)
        m.d.comb += [
            bus.advance.eq(self.advance),
            bus.exponents.eq(self.exponents),
            bus.specials.eq(self.specials),
            bus.sums.eq(self.aligned),
            bus.keys.eq(self.keys),
            self.engine_exponent.eq(bus.largest_exponent),
            self.engine_special.eq(bus.any_special),
            *(
                lane.bus_exponent.eq(Mux(over_engines, self.references[index], bus.largest_exponent))
                for index, lane in enumerate(lanes)
            ),
        ]
        wait = engine_total_stage(self.n_lanes) - SUM_STAGE - bus.latency
        m.d.comb += self.engine_total.eq(pipe.register(bus.total, name="engine_total_late", stages=wait))
        wait = engine_total_stage(self.n_lanes) - KEY_STAGE - bus.latency
        m.d.comb += self.engine_key.eq(pipe.register(bus.largest_key, name="engine_key_late", stages=wait))
