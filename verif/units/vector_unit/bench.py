"""Programs for the vector unit: all operations mixed at random, with directed corners between them."""

from functools import cached_property

import numpy as np
from amaranth.hdl import Shape

from golden.spec.formats import FORMATS, FP32
from golden.spec.vector_operations import ACCUMULATING_OPS, ADDING_OPS, FUNCTION_OPS, LANE_OPS, SCOPES, Scope, VectorOp
from golden.units.vector_unit import Commands, VectorUnit
from verif.bench.batch import Batch, Bench
from verif.bench.packing import join, pack
from verif.units.vector_unit.stimulus import UNDEFINED_CODES, CommandStimulus

SHORTEST = 48
"""Commands a batch at least, so that random ones follow the directed corners."""


class VectorUnitBench(Bench):
    """Batches write the banks first and begin their accumulations with ``first``, but for the first one after reset."""

    unit = "vector_unit"
    every_bin = frozenset({op.name.lower() for op in VectorOp}) | {
        "nan",
        "inf",
        "subnormal",
        "empty_row",
        "one_term_row",
        "read_after_write",
        "undefined_code",
        "disabled_engine",
        "write_of_some_lanes",
        "nan_total",
        "inf_total",
        "sum_over_lanes",
        "sum_over_engine",
        "sum_over_all",
        "zero_total",
        "infinite_maximum",
        "maximum_of_nothing",
        "absent_operation",
    }

    def __init__(self, block, seed):
        super().__init__(block, seed)
        p = block.parameters
        self.unit_model = VectorUnit(**p.to_dict())
        self.required_bins = self.every_bin - self._unreachable_bins()
        self.format = FORMATS[p.format]
        self._was_reset = False
        self._stimulus = CommandStimulus(p, self.rng)

    def _unreachable_bins(self):
        """What the results of this unit cannot show."""
        model = self.unit_model
        bins = set() if model.has(*LANE_OPS) else {"nan", "inf", "subnormal"}
        bins |= set() if model.has(VectorOp.MAXIMUM) else {"infinite_maximum", "maximum_of_nothing"}
        bins |= set() if set(VectorOp) - set(model.present(VectorOp)) else {"absent_operation"}
        scopes = model.total_scopes if model.has(*ADDING_OPS) else ()
        bins |= {f"sum_over_{scope}" for scope in SCOPES if scope not in scopes}
        bins |= set() if scopes else {"nan_total", "inf_total"}
        return bins | (set() if "lanes" in scopes else {"zero_total"})

    @cached_property
    def latency(self):
        return self.block.latency + self.parameters.n_passes - 1

    def forget(self):
        self._was_reset = True

    def program(self, commands):
        """The batch of any commands that write what they read."""
        p, block = self.parameters, self.block
        results = self.unit_model.execute(commands)
        giver = np.asarray(commands.operation)[results.command]
        is_total = np.isin(giver, self.unit_model.present(ACCUMULATING_OPS))
        is_function = np.isin(giver, self.unit_model.present(FUNCTION_OPS))
        latencies = np.where(is_total, block.latency, block.value_latency) + (p.n_passes - 1) * is_function
        return Batch(
            inputs={"command": self._pack(commands)},
            outputs={"result": self._pack_results(results)},
            bins=self._bins(commands, results),
            full_rate=() if p.n_passes > 1 or p.early_values else None,
            causes={"result": ("command", results.command.tolist())},
            latencies={"result": latencies.tolist()},
        )

    def batch(self, count):
        stimulus = self._stimulus
        parts = [stimulus.writes(), stimulus.corners()]
        while sum(map(len, parts)) < max(count, SHORTEST):
            parts.append(
                self.rng.choice(
                    [
                        stimulus.mixed,
                        stimulus.mixed,
                        stimulus.rows,
                        stimulus.extremes,
                        stimulus.maxima,
                        stimulus.after_write,
                        stimulus.functions,
                        stimulus.squares,
                        stimulus.fused,
                        stimulus.cancelling,
                        stimulus.near_tie,
                    ]
                )()
            )
        commands = Commands.join(*parts)
        if not self._was_reset:  # reset begins new accumulations, another batch may have left one open
            for kind in (ADDING_OPS, (VectorOp.MAXIMUM,)):
                begins = np.flatnonzero(np.isin(commands.operation, self.unit_model.present(kind)))
                commands.first[begins[:1]] = True
        self._was_reset = False
        self._limit_terms(commands)
        if len(self.unit_model.total_scopes) == 1:  # commands do not say it
            commands.scope[:] = Scope[self.unit_model.total_scopes[0].upper()]
        return self.program(commands)

    def _limit_terms(self, commands):
        """Close accumulations before they take more terms than there is room for."""
        terms = 0
        for index in np.flatnonzero(np.isin(commands.operation, ADDING_OPS)):
            terms = 1 if commands.first[index] else terms + 1
            commands.last[index] |= terms >= self.parameters.max_terms
            terms = 0 if commands.last[index] else terms

    # Packing and counting ------------------------------------------------------------------------------------------

    def _pack(self, commands):
        packed = []
        for name, field in self.parameters.command_layout:
            array = np.asarray(getattr(commands, name))
            array = array.reshape(len(commands), -1)
            width = Shape.cast(field.shape).width
            packed.append([(word, width) for word in pack(array, width // array.shape[1])])
        return [join(*fields) for fields in zip(*packed, strict=True)]

    def _pack_results(self, results):
        n = len(results.command)
        packed = []
        for name, field in self.parameters.result_layout:
            array = getattr(results, name).reshape(n, -1)
            width = Shape.cast(field.shape).width
            packed.append([(word, width) for word in pack(array, width // array.shape[1])])
        return [join(*fields) for fields in zip(*packed, strict=True)]

    def _bins(self, commands, results):
        fmt, present = self.format, self.unit_model.present(VectorOp)
        operation = np.asarray(commands.operation)
        bins = {op.name.lower(): int((operation == op).sum()) for op in VectorOp}
        bins["absent_operation"] = int(np.isin(operation, sorted(set(VectorOp) - set(present))).sum())
        partly = (operation == VectorOp.WRITE_BANK) & (commands.enable & ~commands.lane_enable.all(2)).any(1)
        bins["write_of_some_lanes"] = int(partly.sum())
        bins["undefined_code"] = int(np.isin(operation, UNDEFINED_CODES).sum())
        bank_op = np.isin(operation, (VectorOp.WRITE_BANK, VectorOp.READ_BANK, VectorOp.SPMM))
        bins["disabled_engine"] = int((bank_op & ~commands.enable.all(1)).sum())

        same = (commands.enable[1:] & commands.enable[:-1] & (commands.address[1:] == commands.address[:-1])).any(1)
        reads = bank_op[1:] & (operation[1:] != VectorOp.WRITE_BANK)
        bins["read_after_write"] = int((same & reads & (operation[:-1] == VectorOp.WRITE_BANK)).sum())

        spmm = operation == VectorOp.SPMM
        single = spmm & commands.first & commands.last
        bins["one_term_row"] = int((single & (commands.enable.sum(1) == 1)).sum())
        bins["empty_row"] = int((single & ~commands.enable.any(1)).sum())

        giver = np.where(np.isin(operation, present), operation, UNDEFINED_CODES[0])[results.command]
        scope = np.asarray(commands.scope)[results.command]
        adding = np.isin(giver, ADDING_OPS)
        in_format = (giver < VectorOp.EXP) & ~np.isin(
            giver, (VectorOp.GREATER, VectorOp.LESS, VectorOp.LESS_EQUAL, VectorOp.TO_FP32)
        )
        words = (results.values & (fmt.sign_bit - 1))[in_format]
        bins["nan"] = int((words > fmt.infinity).sum())
        bins["inf"] = int((words == fmt.infinity).sum())
        bins["subnormal"] = int(((words > 0) & (words < 1 << fmt.fraction_width)).sum())
        totals, total_format = results.single, FP32
        if "single" not in self.unit_model.total_forms:
            totals, total_format = results.rounded, fmt
        magnitudes = totals & (total_format.sign_bit - 1)
        bins["nan_total"] = int((magnitudes[adding] > total_format.infinity).sum())
        bins["inf_total"] = int((magnitudes[adding] == total_format.infinity).sum())
        for code, name in ((0, "lanes"), (1, "engine"), (2, "all")):
            bins[f"sum_over_{name}"] = int((adding & (np.minimum(scope, 2) == code)).sum())
        maximum = giver == VectorOp.MAXIMUM
        infinity = total_format.infinity
        bins["infinite_maximum"] = int((totals[maximum] == infinity).any(1).sum())
        bins["maximum_of_nothing"] = int((totals[maximum] == infinity | total_format.sign_bit).any(1).sum())
        zeros = adding & (scope == Scope.LANES) & (totals[:, :1] == 0).all(1)
        bins["zero_total"] = int(zeros.sum())
        return bins
