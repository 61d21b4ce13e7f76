"""Programs for the vector unit: all operations mixed at random, with directed corners between them."""

from functools import cached_property

import numpy as np
from amaranth.hdl import Shape

from golden.arith.floats import from_float64, word_type
from golden.spec.formats import FORMATS, FP32
from golden.spec.vector_operations import ACCUMULATING_OPS, ADDING_OPS, FUNCTION_OPS, LANE_OPS, SCOPES, Scope, VectorOp
from golden.units.vector_unit import Commands, VectorUnit
from verif.bench.batch import Batch, Bench
from verif.bench.packing import join, pack
from verif.bench.tie_stimulus import fused_ties, square_ties

SHORTEST = 48
"""Commands a batch at least, so that random ones follow the directed corners."""

UNDEFINED_CODES = sorted(set(range(32)) - {int(op) for op in VectorOp})


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
        # A few rows of each bank, with its ends: deep banks need not be filled.
        self.addresses = np.unique(np.linspace(0, p.bank_depth - 1, 6).astype(np.int64))
        address_width = max(1, (p.bank_depth - 1).bit_length())
        self.outside = np.arange(p.bank_depth, 1 << address_width)[:3]

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
        parts = [self._writes(), self._corners()]
        while sum(map(len, parts)) < max(count, SHORTEST):
            parts.append(
                self.rng.choice(
                    [
                        self._mixed,
                        self._mixed,
                        self._rows,
                        self._extremes,
                        self._maxima,
                        self._after_write,
                        self._functions,
                        self._squares,
                        self._fused,
                        self._cancelling,
                        self._near_tie,
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

    # Stimulus ------------------------------------------------------------------------------------------------------

    def _words(self, shape):
        """Numbers near 1, in a quarter of the commands any words, corner values among them."""
        fmt, rng = self.format, self.rng
        spread = rng.choice([0, 3, 10], (shape[0], *[1] * (len(shape) - 1)))
        words = from_float64(fmt, rng.standard_normal(shape) * np.exp2(rng.uniform(-1, 1, shape) * spread))
        one = fmt.bias << fmt.fraction_width
        smallest = 1 << fmt.fraction_width
        corners = np.array(
            [0, 1, smallest - 1, smallest, one, one + 1, fmt.infinity - 1, fmt.infinity, fmt.infinity + 1, fmt.nan]
        )
        corners = np.concatenate([corners, corners | fmt.sign_bit])
        wild = np.where(rng.random(shape) < 0.5, rng.choice(corners, shape), rng.integers(0, 1 << fmt.width, shape))
        is_wild = (rng.random(shape) < 0.3) & (rng.random(spread.shape) < 0.25)
        return np.where(is_wild, wild, words).astype(word_type(fmt))

    def _blank(self, n):
        p = self.parameters
        commands = Commands.empty(n, p.n_engines, p.n_lanes)
        for name in "abc":
            setattr(commands, name, self._words((n, p.n_engines, p.n_lanes)))
        commands.address[:] = self.rng.choice(self.addresses, (n, p.n_engines))
        return commands

    def _writes(self):
        """Everything that will be read."""
        commands = self._blank(len(self.addresses))
        commands.operation[:] = VectorOp.WRITE_BANK
        commands.address[:] = self.addresses[:, None]
        return commands

    def _mixed(self):
        """Any operations in any order, accumulations nested in each other."""
        n, rng = int(self.rng.integers(4, 25)), self.rng
        commands = self._blank(n)
        accumulating = np.array(ACCUMULATING_OPS)
        every = np.concatenate([np.array(list(VectorOp)), rng.choice(UNDEFINED_CODES, 1), accumulating, accumulating])
        commands.operation[:] = rng.choice(every, n)
        commands.enable[:] = rng.random(commands.enable.shape) < 0.8
        commands.lane_enable[:] = rng.random(commands.lane_enable.shape) < 0.9
        commands.scope[:] = rng.integers(0, 4, n)
        commands.first[:] = rng.random(n) < 0.1
        commands.last[:] = rng.random(n) < rng.choice([0.1, 0.5])
        if len(self.outside):
            commands.address[rng.random(commands.address.shape) < 0.1] = rng.choice(self.outside)
        return commands

    def _rows(self):
        """SpMM rows back to back: none, one or a few non-zeros in each engine."""
        lengths = self.rng.choice([1, 1, 2, 5], 6)
        commands = self._blank(int(lengths.sum()))
        commands.operation[:] = VectorOp.SPMM
        commands.scope[:] = Scope.LANES
        ends = np.cumsum(lengths)
        commands.last[ends - 1] = True
        commands.first[ends - lengths] = self.rng.random(len(ends)) < 0.7
        counts = self.rng.integers(0, lengths[:, None] + 1, (len(ends), self.parameters.n_engines))
        counts[self.rng.integers(len(ends))] = 0
        position = np.concatenate([np.arange(length) for length in lengths])
        commands.enable[:] = position[:, None] < np.repeat(counts, lengths, axis=0)
        return commands

    def _maxima(self):
        """Short maxima back to back, in which most terms count: of nothing, NaNs and infinities among them."""
        rng, fmt = self.rng, self.format
        commands = self._blank(8)
        commands.operation[:] = VectorOp.MAXIMUM
        commands.scope[:] = rng.choice([Scope.LANES, Scope.LANES, Scope.ENGINE, Scope.ALL], 8)
        commands.first[:] = rng.random(8) < 0.8
        commands.last[:] = rng.random(8) < 0.8
        commands.lane_enable[:] = rng.random(commands.lane_enable.shape) < rng.choice([0.2, 0.9])
        special = rng.choice([fmt.infinity, fmt.infinity | fmt.sign_bit, fmt.nan], commands.a.shape)
        commands.a[:] = np.where(rng.random(commands.a.shape) < 0.2, special, commands.a)
        commands.scope[:2] = Scope.LANES
        commands.first[:2] = commands.last[:2] = True
        commands.lane_enable[0, :, 0], commands.lane_enable[1] = False, True
        commands.a[1, 0] = fmt.infinity
        return commands

    def _after_write(self):
        """Reads and SpMM rows of words that the command before has written, wholly or in part."""
        commands = self._blank(4)
        reader = self.rng.choice([VectorOp.READ_BANK, VectorOp.SPMM], 2)
        commands.operation[:] = [VectorOp.WRITE_BANK, reader[0], VectorOp.WRITE_BANK, reader[1]]
        commands.address[1], commands.address[3] = commands.address[0], commands.address[2]
        commands.lane_enable[2] = self.rng.random(commands.lane_enable[2].shape) < 0.5
        commands.lane_enable[2, 0, 0] = False
        commands.last[:] = True
        return commands

    def _extremes(self):
        """Sums of finite words from all binades: the smallest beside the largest, zeros, cancellation."""
        fmt, rng = self.format, self.rng
        commands = self._blank(9)
        shape = commands.a.shape
        words = rng.integers(0, fmt.infinity, shape)
        kind = rng.integers(0, 8, shape)
        words = np.where(kind == 0, 0, np.where(kind == 1, 1, np.where(kind == 2, fmt.infinity - 1, words)))
        commands.a[:] = words | fmt.sign_bit * rng.integers(0, 2, shape)
        commands.operation[:] = rng.choice(ADDING_OPS, len(commands))
        commands.operation[:2] = VectorOp.WRITE_BANK
        commands.scope[:] = rng.integers(0, 3, len(commands))
        commands.address[2:] = commands.address[rng.integers(0, 2, len(commands) - 2)]
        commands.last[4::2] = True
        # The smallest square before the largest one, and a sum that loses its first terms.
        commands.operation[2:5:2] = VectorOp.SUM_SQUARES
        commands.a[2], commands.a[4] = 1, fmt.infinity - 1
        commands.a[8] = commands.a[7] ^ fmt.sign_bit
        commands.operation[7:] = VectorOp.SUM
        return commands

    def _functions(self):
        """Functions of words of the sizes at which they change, and roundings of FP32 words at or beside a tie."""
        fmt, rng = self.format, self.rng
        commands = self._blank(8)
        shape = commands.a.shape
        field = rng.integers(fmt.bias - 12, fmt.bias + 6, shape)
        commands.a[:] = field << fmt.fraction_width | rng.integers(0, 1 << fmt.fraction_width, shape)
        commands.a |= rng.choice(np.array([0, fmt.sign_bit], word_type(fmt)), shape)
        commands.operation[:] = rng.choice([VectorOp.EXP, VectorOp.RECIPROCAL, VectorOp.RSQRT, VectorOp.GELU], 8)
        commands.operation[:2] = VectorOp.TO_FP16
        shape = (2, *shape[1:])
        field = rng.integers(max(1, FP32.bias - fmt.bias - fmt.fraction_width - 2), FP32.bias + fmt.bias + 2, shape)
        kept = rng.integers(0, FP32.fraction_width, shape)
        tie = ((2 * rng.integers(0, 1 << kept) + 1) << FP32.fraction_width - kept - 1) + rng.integers(-1, 2, shape)
        words = (field << FP32.fraction_width) + tie | FP32.sign_bit * rng.integers(0, 2, shape)
        commands.a[:2], commands.b[:2] = words & 0xFFFF, words >> 16
        return commands

    def _squares(self):
        """Totals of one square each, of any size, half of them at or beside a tie of the format."""
        rng = self.rng
        commands = self._blank(4)
        shape = commands.a.shape
        commands.a[:] = np.where(
            rng.random(shape) < 0.5,
            rng.choice(square_ties(self.format), shape),
            rng.integers(0, self.format.infinity, shape),
        )
        commands.operation[:] = VectorOp.SUM_SQUARES
        commands.scope[:] = Scope.LANES
        commands.first[:] = commands.last[:] = True
        commands.enable[:] = np.arange(shape[1]) == rng.integers(shape[1], size=(len(commands), 1))
        return commands

    def _cancelling(self):
        """Sums of which the large terms cancel, so that what is left has any number of leading zeros."""
        fmt, rng = self.format, self.rng
        commands = self._blank(3)
        shape = commands.a.shape[1:]
        field = rng.integers(fmt.max_exponent // 2, fmt.max_exponent, shape)
        rest = np.maximum(0, field - rng.integers(8, 32, shape))
        fraction = rng.integers(0, 1 << fmt.fraction_width, (2, *shape)) >> rng.integers(
            0, fmt.fraction_width + 1, (2, *shape)
        )
        commands.a[:2] = np.array([field, rest]) << fmt.fraction_width | fraction
        commands.a[:2] |= (rng.integers(0, 2, (2, *shape)) * fmt.sign_bit).astype(word_type(fmt))
        commands.a[2] = commands.a[0] ^ fmt.sign_bit
        commands.operation[:] = VectorOp.SUM
        commands.scope[:] = Scope.LANES
        commands.enable[:] = np.arange(shape[0]) == rng.integers(shape[0])
        commands.first[0] = commands.last[2] = True
        return commands

    def _fused(self):
        """Products of about half a last place of the addend, others at any distance, and sums that are nearly ties."""
        fmt, rng = self.format, self.rng
        commands = self._blank(6)
        shape = commands.a.shape
        fields = {"c": rng.integers(1, fmt.max_exponent, shape), "a": rng.integers(1, fmt.max_exponent, shape)}
        away = rng.integers(-30, 31, shape) * (rng.random(shape) < 0.4)
        product = fields["c"] + fmt.bias - fmt.fraction_width - 1 + away
        fields["b"] = np.clip(product - fields["a"], 1, fmt.max_exponent - 1)
        near = rng.integers(0, 4, shape) << rng.integers(0, fmt.fraction_width - 2, shape)
        fraction = {
            "a": near,
            "b": rng.choice([0, 1, -1], shape) * near,
            "c": rng.integers(0, 1 << fmt.fraction_width, shape),
        }
        for name, field in fields.items():
            word = (field << fmt.fraction_width) + fraction[name] | fmt.sign_bit * rng.integers(0, 2, shape)
            getattr(commands, name)[:] = word
        for name, words in zip("abc", fused_ties(fmt, rng, commands.a[4:].size), strict=False):
            getattr(commands, name)[4:] = words.reshape(commands.a[4:].shape)
        commands.operation[:] = VectorOp.FMA
        return commands

    def _corners(self):
        """What must occur in every run: each operation, special result and scope; a batch has about half of it."""
        fmt = self.format
        one, minus = fmt.bias << fmt.fraction_width, fmt.sign_bit
        operations = list(VectorOp) + [UNDEFINED_CODES[0]]
        each = self._blank(len(operations))
        each.operation[:] = operations
        each.scope[:] = self.rng.integers(0, 4, len(each))
        each.last[:] = True

        special = self._blank(10)
        special.operation[:] = [*[VectorOp.SUM] * 4, *[VectorOp.SPMM] * 2, VectorOp.READ_BANK, *[VectorOp.MUL] * 3]
        special.scope[:4] = [Scope.ALL, Scope.ENGINE, Scope.LANES, Scope.LANES]
        special.first[:] = special.last[:] = True
        special.last[2] = special.first[3] = False
        special.a[0], special.a[1] = fmt.infinity | minus, fmt.nan
        special.a[2] = np.where(special.a[2] & fmt.infinity == fmt.infinity, one, special.a[2])
        special.a[3] = special.a[2] ^ minus
        special.enable[4:7] = False
        special.enable[5, 0] = True
        special.a[7], special.b[7] = 1 << fmt.fraction_width, one - (1 << fmt.fraction_width)
        special.a[8], special.b[8] = fmt.infinity, one
        special.a[9] = fmt.nan
        # Infinity times zero, and infinities of both signs.
        invalid = self._blank(5)
        invalid.operation[:] = [VectorOp.WRITE_BANK, VectorOp.SPMM, VectorOp.WRITE_BANK, VectorOp.SPMM, VectorOp.SUM]
        invalid.address[:] = self.addresses[0]
        invalid.a[0], invalid.a[1], invalid.a[2] = 0, fmt.infinity, fmt.infinity
        invalid.a[3], invalid.a[4] = one | minus, fmt.infinity
        invalid.first[3] = invalid.last[1] = invalid.last[4] = True
        outside = self._blank(2 if len(self.outside) else 0)
        outside.operation[:] = [VectorOp.READ_BANK, VectorOp.SPMM][: len(outside)]
        outside.address[:] = self.outside.max(initial=0)
        outside.last[:] = True
        parts = [
            each,
            special,
            invalid,
            outside,
            self._near_tie(),
            self._after_write(),
            self._maxima(),
            self._extremes(),
        ]
        taken = self.rng.random(len(parts)) < 0.5
        taken[self.rng.integers(len(parts))] = True
        return Commands.join(*(part for part, is_taken in zip(parts, taken, strict=True) if is_taken))

    def _near_tie(self):
        """In the middle between two subnormals, of any size, but for one bit, which is near or far below."""
        fmt, rng = self.format, self.rng
        n_lanes = self.parameters.n_lanes
        half = -fmt.bias - fmt.fraction_width
        odd = 2 * rng.integers(1 << rng.integers(fmt.fraction_width, size=n_lanes)) + 1
        far = half - rng.integers(1, 20, n_lanes)
        weight = 2.0 ** (half + 5)
        commands = self._blank(4)
        commands.operation[:] = [VectorOp.WRITE_BANK, VectorOp.SPMM] * 2
        commands.address[:] = self.addresses[0]
        commands.a[0] = from_float64(fmt, odd * 2.0 ** (half // 2))
        commands.a[1] = from_float64(fmt, np.array(2.0 ** (half - half // 2)))
        commands.a[2] = from_float64(fmt, rng.choice([-1, 1], n_lanes) * np.exp2(far) / weight)
        commands.a[3] = from_float64(fmt, np.array(weight))
        commands.scope[:] = Scope.LANES
        commands.enable[:, 1:] = False
        commands.first[1] = commands.last[3] = True
        return commands

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
