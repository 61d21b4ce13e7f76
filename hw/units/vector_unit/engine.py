"""One SIMD engine: its bank, its lanes with their accumulators, and the bus over its lanes."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from golden.spec.vector_operations import ADDING_OPS, FUNCTION_OPS, LANE_OPS, OPERATION_WIDTH, TWO_OPERAND_OPS, VectorOp
from hw.arith.elementwise import ElementwiseLane
from hw.lib.block import Block
from hw.lib.memory import MemoryBank
from hw.lib.pipeline import Pipeline
from hw.units.vector_unit.accumulator import LaneAccumulator
from hw.units.vector_unit.arithmetic import SPECIALS
from hw.units.vector_unit.engine_parameters import VectorEngineParameters
from hw.units.vector_unit.factor import Factor
from hw.units.vector_unit.functions import FunctionLane
from hw.units.vector_unit.maximum import LaneMaximum
from hw.units.vector_unit.reduction_bus import ReductionBus
from hw.units.vector_unit.stages import EXPONENT_STAGE, INPUT_LATENCY, KEY_STAGE, SUM_STAGE, engine_total_stage
from hw.units.vector_unit.values import ValueLane, expand, narrow_width

__all__ = ["VectorEngine"]


def one_of(operation, codes):
    """Whether an operation is one of these; false without any."""
    return Cat(Const(0, 1), *(operation == code for code in codes)).any()


class VectorEngine(Block):
    """Bank, lanes and accumulators of one engine, with its own copy of the pipeline's control.

    The engine registers the command locally, so that the selection of commands and the fan-out of the control do not
    delay the lanes. Each port's documentation names its pipeline stage: stage 0 is the command in these registers,
    stage n is n advances later. The bank is accessed one advance before stage 0, as the command comes in, so that a
    command sees every earlier command's write. The multiplier of a lane serves its operations and its accumulator.

    With fewer function units than lanes a command with a function stays in stage 0 while ``repeats`` is set: its first
    operands move down by special_lanes lanes each time, and so do the results, until the last ones are there. A port
    that only absent operations or scopes need is left out.
    """

    Parameters = VectorEngineParameters
    members_doc = {
        "advance": "lock-step enable of the registers",
        "valid": "one advance before stage 0, like the whole command: there is a command",
        "repeats": "at the same time, with valid: instead, the one in stage 0 stays for its next operands",
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
        "values": "value_stage: results of the lanes, 0 of commands without",
        "exponents": "stage 3: exponent codes of the lanes' sums",
        "references": "stage 5: exponent codes to which the lanes' sums are aligned on the bus over the engines",
        "specials": "stage 5: specials of the lanes' sums",
        "aligned": "stage 6: the lanes' aligned sums",
        "keys": "stage 2: keys of the lanes' maxima",
        "engine_exponent": "stage 5: the largest exponent code of the lanes",
        "engine_special": "stage 6: union of the lanes' specials",
        "engine_total": "engine_total_stage: sum over the lanes",
        "engine_key": "engine_total_stage: largest key of the lanes",
    }

    @staticmethod
    def members(p):
        word, lanes = p.float_format.width, p.n_lanes

        def each(shape):
            return data.ArrayLayout(shape, lanes)

        inputs = {
            "advance": (1, p.stallable),
            "valid": (1, True),
            "repeats": (1, p.n_passes > 1),
            "operation": (OPERATION_WIDTH, True),
            "a": (each(word), True),
            "b": (each(word), p.has(*TWO_OPERAND_OPS)),
            "c": (each(word), p.has(VectorOp.FMA)),
            "enable": (1, p.has_bank or p.accumulates),
            "lane_enable": (lanes, p.has_bank or p.accumulates),
            "address": (p.address_width, p.has_bank),
            "sum_start": (1, p.has_sums),
            "maximum_start": (1, p.has_maximum),
            "over_engines": (1, p.has_sums and p.over_engines and p.over_lanes),
            "references": (each(p.exponent_width), p.has_sums and p.over_engines),
        }
        outputs = {
            "values": (each(p.value_width), p.gives_values),
            "exponents": (each(p.exponent_width), p.has_sums and p.over_engines),
            "specials": (each(SPECIALS), p.has_sums and p.over_engines),
            "aligned": (each(signed(p.aligned_width)), p.has_sums and p.over_engines),
            "keys": (each(word), p.has_maximum and p.over_engines),
            "engine_exponent": (p.exponent_width, p.has_sums and p.over_lanes),
            "engine_special": (SPECIALS, p.has_sums and p.over_lanes),
            "engine_total": (signed(p.engine_total_width), p.has_sums and p.over_lanes),
            "engine_key": (word, p.has_maximum and p.over_lanes),
        }
        return {name: In(shape) for name, (shape, exists) in inputs.items() if exists} | {
            name: Out(shape) for name, (shape, exists) in outputs.items() if exists
        }

    @property
    def latency(self):
        return INPUT_LATENCY + (self.value_stage or self.parameters.earliest_value)

    def circuit(self):
        m = Module()
        p = self.parameters
        # Without stalls every register is enabled always: it needs no enable at all.
        self._advance = self.advance if self.stallable else Const(1, 1)
        self._pipe = pipe = Pipeline(m, advance=self._advance)
        self._valid = [pipe.control(self.valid, name="valid_0")]
        for stage in (1, 2):
            self._valid.append(pipe.control(self._valid[-1], name=f"valid_{stage}"))
        self._command = self._registered_command(m)
        row = self._bank(m) if p.has_bank else None
        lanes = self._lanes(m)
        if p.gives_values:
            self._values(m, lanes, row)
        sums = self._sums(m, lanes, row) if p.has_sums else []
        maxima = self._maxima(m) if p.has_maximum else []
        if p.over_lanes:
            self._lane_bus(m, sums, maxima)
        elif sums:
            m.d.comb += [lane.bus_exponent.eq(reference) for lane, reference in zip(sums, self.references, strict=True)]
        if p.over_engines:
            for index, lane in enumerate(sums):
                m.d.comb += [
                    self.exponents[index].eq(lane.exponent),
                    self.specials[index].eq(lane.specials),
                    self.aligned[index].eq(lane.aligned),
                ]
            m.d.comb += [self.keys[index].eq(lane.maximum_key) for index, lane in enumerate(maxima)]
        return m

    def _registered_command(self, m):
        """The command at stage 0. While it stays there, the operands of the functions move down."""
        p, pipe = self.parameters, self._pipe
        names = ("operation", *"abc", "enable", "lane_enable", "sum_start", "maximum_start", "over_engines")
        names = [name for name in names if name in self.signature.members]
        if p.n_passes == 1:
            return SimpleNamespace(**{name: pipe.register(getattr(self, name), name=f"{name}_0") for name in names})
        command = {name: pipe.register(getattr(self, name), name=f"{name}_0") for name in names[2:]}
        for name in names[:2]:
            command[name] = Signal.like(getattr(self, name), name=f"{name}_0", reset_less=True)
        moved = command["a"].as_value() >> p.float_format.width * p.n_special_lanes
        with m.If(self._advance):
            m.d.sync += command["a"].as_value().eq(Mux(self.repeats, moved, self.a.as_value()))
            with m.If(~self.repeats):
                m.d.sync += command["operation"].eq(self.operation)
        return SimpleNamespace(**command)

    def _bank(self, m):
        """One access a command, as it comes in. Returns the row at stage 0."""
        m.submodules.bank = bank = MemoryBank(
            depth=self.bank_depth,
            width=len(self.a.as_value()),
            ports="single",
            granularity=self.parameters.float_format.width,
        )
        works = Signal(name="works")  # an address outside the bank acts as a disabled engine
        access = Signal()
        reads = one_of(self.operation, self.parameters.present((VectorOp.READ_BANK, VectorOp.SPMM)))
        m.d.comb += [
            works.eq(self.enable & (self.address < self.bank_depth)),
            access.eq(
                self._advance & works & (self.valid & ~self.repeats if self.parameters.n_passes > 1 else self.valid)
            ),
            bank.address.eq(self.address),
            bank.write_enable.eq(
                self.lane_enable & (access & (self.operation == VectorOp.WRITE_BANK)).replicate(self.n_lanes)
            ),
            bank.read_enable.eq(access & reads),
            bank.write_data.eq(self.a),
        ]
        self._works = self._pipe.register(works, name="works_0")
        return data.View(self.a.shape(), bank.read_data)

    def _lanes(self, m):
        """The multipliers and adders of the lanes, at stage 0 with their operands."""
        p, command = self.parameters, self._command
        if not p.lane_operations and not p.has_sums:
            return []
        lanes = []
        for index in range(self.n_lanes):
            lane = ElementwiseLane(format=self.format, operations=p.lane_operations, gives_product=p.has_sums)
            m.submodules[f"elementwise_{index}"] = lane
            lanes.append(lane)
            m.d.comb += lane.advance.eq(self._advance)
            if p.lane_operations:
                m.d.comb += lane.operation.eq(command.operation)
            operands = [name for name in "abc" if name in lane.signature.members]
            m.d.comb += [getattr(lane, name).eq(getattr(command, name)[index]) for name in operands]
        return lanes

    def _values(self, m, lanes, row):
        """Values of the lanes, delayed to value_stage."""
        p, pipe, operation = self.parameters, self._pipe, self._command.operation
        fmt, options = p.float_format, p.value_lane
        takes = {}
        if row is not None and options["has_row"]:
            takes["row"] = self._works & (operation == VectorOp.READ_BANK) & self._valid[0]
        for name, codes, stage in (
            ("element", p.present(LANE_OPS), options["element_stage"]),
            ("single", p.present((VectorOp.TO_FP32,)), options["element_stage"]),
            ("function", p.present(FUNCTION_OPS), options["function_stage"]),
        ):
            if codes:
                is_one = one_of(operation, codes) & self._valid[0]
                takes[name] = pipe.register(is_one, name=f"take_{name}", stages=stage)
        functions = self._functions(m) if p.functions else None
        words = []
        for index in range(self.n_lanes):
            m.submodules[f"value_{index}"] = lane = ValueLane(**options)
            m.d.comb += lane.advance.eq(self._advance)
            m.d.comb += [getattr(lane, f"take_{name}").eq(take) for name, take in takes.items()]
            if "row" in takes:
                m.d.comb += lane.row.eq(row[index])
            if p.lane_operations:
                m.d.comb += lane.element.eq(lanes[index].result)
            if functions:
                m.d.comb += lane.function.eq(functions[index])
            words.append(lane.value)
        rest = (self.value_stage or p.earliest_value) - p.earliest_value
        values = Signal(data.ArrayLayout(narrow_width(fmt, options["wide"]), self.n_lanes))
        m.d.comb += values.eq(Cat(words))
        values = pipe.register(values, name="values_late", stages=rest)
        if "single" in takes:
            late = pipe.register(takes["single"], name="is_single", stages=p.earliest_value - options["element_stage"])
            is_single = pipe.register(late, name="is_single_late", stages=rest)
            values = [expand(fmt, value, is_single) for value in values]
        m.d.comb += [self.values[index].eq(value) for index, value in enumerate(values)]

    def _functions(self, m):
        """The functions' results of all lanes, at the stage of the last ones: those of earlier passes waited."""
        p, pipe, command = self.parameters, self._pipe, self._command
        results = []
        for index in range(p.n_special_lanes):
            m.submodules[f"function_{index}"] = lane = FunctionLane(format=self.format, functions=p.functions)
            results.append(lane.y)
            m.d.comb += [lane.advance.eq(self._advance), lane.x.eq(command.a[index])]
            if index == 0:
                takes = {
                    name: pipe.register(
                        command.operation == VectorOp[name.upper()], name=f"take_{name}", stages=child.latency
                    )
                    for name, child in lane.children.items()
                }
            m.d.comb += [getattr(lane, f"take_{name}").eq(take) for name, take in takes.items()]
        # The last pass has the highest lanes, and may have fewer of them.
        passes = [results]
        for number in range(1, p.n_passes):
            passes.append([pipe.register(word, name=f"pass_{number}_{at}") for at, word in enumerate(passes[-1])])
        return [word for results in reversed(passes) for word in results][: self.n_lanes]

    def _sums(self, m, lanes, row):
        """The accumulators of the lanes, with their factors."""
        p, pipe, command = self.parameters, self._pipe, self._command
        fmt, adding = p.float_format, p.present(ADDING_OPS)
        is_spmm = Signal()
        m.d.comb += is_spmm.eq(one_of(command.operation, p.present((VectorOp.SPMM,))))
        has_spmm, has_others = p.has(VectorOp.SPMM), p.has(VectorOp.SUM, VectorOp.SUM_SQUARES)
        active = command.enable
        if has_spmm:
            active = Mux(is_spmm, self._works, command.enable) if has_others else self._works
        takes_part = Signal(self.n_lanes)
        m.d.comb += takes_part.eq(command.lane_enable & active.replicate(self.n_lanes))
        adds = Signal()
        m.d.comb += adds.eq(one_of(command.operation, adding))

        # The scalar of SPMM, or one, for all lanes.
        m.submodules.coefficient = coefficient = Factor(format=p.format)
        scalar = Mux(is_spmm, command.a[0], fmt.one) if has_spmm and has_others else command.a[0]
        m.d.comb += coefficient.word.eq(scalar if has_spmm else fmt.one)
        shared = {
            "takes_part": pipe.register(takes_part, name="takes_part_2", stages=2),
            "update": pipe.register(adds, name="update", stages=2) & self._valid[2],
            "start": pipe.register(command.sum_start, name="sum_start_2", stages=2),
        }
        accumulators = []
        for index, lane in enumerate(lanes):
            m.submodules[f"factor_{index}"] = factor = Factor(format=p.format)
            m.submodules[f"accumulator_{index}"] = accumulator = LaneAccumulator(**p.accumulator())
            accumulators.append(accumulator)
            word = command.a[index]
            if has_spmm:
                word = Mux(is_spmm, row[index], word) if has_others else row[index]
            left = coefficient.factor
            if p.has(VectorOp.SUM_SQUARES):
                left = Mux(command.operation == VectorOp.SUM_SQUARES, factor.factor, left)
            m.d.comb += [
                factor.word.eq(word & takes_part[index].replicate(fmt.width)),
                lane.multiplies.eq(adds),
                lane.left.eq(left),
                lane.right.eq(factor.factor),
                accumulator.advance.eq(self._advance),
                *(
                    getattr(accumulator, name).eq(getattr(lane, name))
                    for name in ("product_exponent", "product_is_zero", "product")
                ),
                accumulator.takes_part.eq(shared["takes_part"][index]),
                accumulator.update.eq(shared["update"]),
                accumulator.start.eq(shared["start"]),
            ]
        return accumulators

    def _maxima(self, m):
        """The running maxima of the lanes."""
        pipe, command = self._pipe, self._command
        takes_part = pipe.register(command.lane_enable & command.enable.replicate(self.n_lanes), name="maximum_part_1")
        is_maximum = pipe.register(command.operation == VectorOp.MAXIMUM, name="maximum_update")
        start = pipe.register(command.maximum_start, name="maximum_start_1")
        lanes = []
        for index in range(self.n_lanes):
            m.submodules[f"maximum_{index}"] = lane = LaneMaximum(format=self.format)
            lanes.append(lane)
            m.d.comb += [
                lane.advance.eq(self._advance),
                lane.word.eq(command.a[index]),
                lane.takes_part.eq(takes_part[index]),
                lane.update.eq(is_maximum & self._valid[1]),
                lane.start.eq(start),
            ]
        return lanes

    def _lane_bus(self, m, sums, maxima):
        """The bus over the lanes."""
        p, pipe, at = self.parameters, self._pipe, engine_total_stage(self.n_lanes)
        m.submodules.lane_bus = bus = ReductionBus(
            n_inputs=self.n_lanes,
            width=p.aligned_width,
            exponent_width=p.exponent_width,
            key_width=p.float_format.width,
            has_sums=p.has_sums,
            has_maximum=p.has_maximum,
        )
        m.d.comb += bus.advance.eq(self._advance)
        if sums:
            over_engines = None
            if p.over_engines:
                over_engines = pipe.register(
                    self._command.over_engines, name="over_engines_late", stages=EXPONENT_STAGE
                )
            wait = at - SUM_STAGE - bus.latency
            m.d.comb += [
                self.engine_exponent.eq(bus.largest_exponent),
                self.engine_special.eq(bus.any_special),
                self.engine_total.eq(pipe.register(bus.total, name="engine_total_late", stages=wait)),
            ]
            for index, lane in enumerate(sums):
                reference = bus.largest_exponent
                if p.over_engines:
                    reference = Mux(over_engines, self.references[index], reference)
                m.d.comb += [
                    bus.exponents[index].eq(lane.exponent),
                    bus.specials[index].eq(lane.specials),
                    bus.sums[index].eq(lane.aligned),
                    lane.bus_exponent.eq(reference),
                ]
        if maxima:
            wait = at - KEY_STAGE - bus.latency
            m.d.comb += [bus.keys[index].eq(lane.maximum_key) for index, lane in enumerate(maxima)]
            m.d.comb += self.engine_key.eq(pipe.register(bus.largest_key, name="engine_key_late", stages=wait))
