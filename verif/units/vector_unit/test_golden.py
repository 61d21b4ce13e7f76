"""The vector unit's golden model against an interpreter that executes one command after the other."""

import numpy as np
import pytest

from golden.arith.elementwise import ELEMENTWISE_OPS, elementwise
from golden.arith.floats import from_float64, is_nan, to_float64
from golden.spec.formats import FORMATS, FP32
from golden.spec.vector_operations import Scope, VectorOp
from golden.units.vector_unit import ACCUMULATING_OPS, FUNCTIONS, Commands, VectorUnit


def random_commands(rng, unit, n):
    """Commands of all codes, known or not, on words of all kinds."""
    shape = (n, unit.n_engines, unit.n_lanes)
    fmt = FORMATS[unit.format]
    operands = []
    for _ in "abc":
        tame = from_float64(fmt, rng.standard_normal(shape))
        operands.append(np.where(rng.random(shape) < 0.9, tame, rng.integers(0, 1 << 16, shape).astype(np.uint16)))
    operation = rng.choice(np.concatenate([np.arange(32), *[np.array(ACCUMULATING_OPS)] * 8, [24] * 8]), n)
    return Commands(
        operation,
        *operands,
        rng.random(shape[:2]) < 0.8,
        rng.random(shape) < 0.9,
        rng.integers(0, unit.bank_depth + 1, shape[:2]),
        rng.integers(0, 4, n),
        rng.random(n) < 0.2,
        rng.random(n) < 0.3,
    )


def order(fmt, word):
    """Sorts words as MAXIMUM does."""
    value = to_float64(fmt, word)
    return (-1, 0) if np.isnan(value) else (0, value, not np.signbit(value))


class Interpreter:
    """Accumulators as lists of factors; totals through one-run calls of the accumulator's model."""

    def __init__(self, unit):
        self.unit, self.banks = unit, unit.empty_banks()
        self.fmt = FORMATS[unit.format]
        self.terms = {"sum": [], "maximum": []}
        self.fresh = {"sum": True, "maximum": True}

    def row(self, command, engine):
        works = command.enable[engine] and command.address[engine] < self.unit.bank_depth
        return self.banks[engine, command.address[engine]] if works else None

    def step(self, command):
        """(values, single, rounded) of a result, or None."""
        unit, op = self.unit, int(command.operation)
        values = np.zeros((unit.n_engines, unit.n_lanes), np.uint32)
        single, rounded = np.zeros(unit.n_totals, np.uint32), np.zeros(unit.n_totals, np.uint16)
        if op in ELEMENTWISE_OPS:
            values[:] = elementwise(op, command.a, command.b, command.c, self.fmt)
        elif op in FUNCTIONS:
            values[:] = FUNCTIONS[op](command.a, self.fmt)
        elif op in (VectorOp.READ_BANK, VectorOp.WRITE_BANK):
            for engine in range(unit.n_engines):
                row = self.row(command, engine)
                if row is not None and op == VectorOp.READ_BANK:
                    values[engine] = row
                elif row is not None:
                    np.copyto(row, command.a[engine], where=command.lane_enable[engine].astype(bool))
            if op == VectorOp.WRITE_BANK:
                return None
        elif op in ACCUMULATING_OPS:
            kind = "maximum" if op == VectorOp.MAXIMUM else "sum"
            if command.first or self.fresh[kind]:
                self.terms[kind] = []
            self.fresh[kind] = bool(command.last)
            self.terms[kind].append(
                [[self.term(command, v, lane) for lane in range(unit.n_lanes)] for v in range(unit.n_engines)]
            )
            if not command.last:
                return None
            total = self.maximum if kind == "maximum" else self.sum
            total(int(command.scope), single, rounded)
        return values, single, rounded

    def term(self, command, engine, lane):
        """The factors that go into a lane's accumulator, the word for MAXIMUM, or None."""
        one = self.fmt.bias << self.fmt.fraction_width
        a = command.a[engine, lane]
        if not (command.enable[engine] and command.lane_enable[engine, lane]):
            return None
        if command.operation == VectorOp.SPMM:
            row = self.row(command, engine)
            return None if row is None else (command.a[engine, 0], row[lane])
        return (a, a) if command.operation == VectorOp.SUM_SQUARES else (one, a)

    def sum(self, scope, single, rounded):
        accumulator = self.unit.accumulator
        factors = np.array([[[pair or (0, 0) for pair in lanes] for lanes in beat] for beat in self.terms["sum"]])
        sums = accumulator.accumulate(accumulator.products(factors[..., 0], factors[..., 1]), [0])
        if scope == Scope.LANES:
            sums = accumulator.align(sums, 1)
        else:
            sums = accumulator.align(sums, 2)
            if scope != Scope.ENGINE:
                sums = accumulator.align(type(sums)(*(field[:, None] for field in sums)), 2, guard_bits=0)
        for target, words in zip((single, rounded), accumulator.round(sums), strict=True):
            target[: words.shape[1]] = words[0]

    def maximum(self, scope, single, rounded):
        unit = self.unit
        groups = {
            Scope.LANES: [[(v, lane) for v in range(unit.n_engines)] for lane in range(unit.n_lanes)],
            Scope.ENGINE: [[(v, lane) for lane in range(unit.n_lanes)] for v in range(unit.n_engines)],
        }
        everything = [[place for group in groups[Scope.LANES] for place in group]]
        for index, group in enumerate(groups.get(scope, everything)):
            words = [beat[v][lane][1] for beat in self.terms["maximum"] for v, lane in group if beat[v][lane]]
            word = max(words, key=lambda word: order(self.fmt, word), default=self.fmt.infinity | self.fmt.sign_bit)
            if is_nan(self.fmt, word):
                word = self.fmt.nan
            rounded[index] = word
            single[index] = FP32.nan if word == self.fmt.nan else from_float64(FP32, to_float64(self.fmt, word))


@pytest.mark.parametrize("format", ["fp16", "bf16"])
@pytest.mark.parametrize("shape", [(1, 1, 2), (4, 3, 5), (2, 4, 8)])
def test_equals_the_interpreter(format, shape):
    unit = VectorUnit(n_engines=shape[0], n_lanes=shape[1], bank_depth=shape[2], format=format)
    rng = np.random.default_rng(4)
    commands = random_commands(rng, unit, 600)
    banks = unit.empty_banks()
    results = unit.execute(commands, banks)
    interpreter = Interpreter(unit)
    found = 0
    for index in range(len(commands)):
        expected = interpreter.step(commands[index])
        if expected is not None:
            assert results.command[found] == index
            for name, words in zip(("values", "single", "rounded"), expected, strict=True):
                assert np.array_equal(getattr(results, name)[found], words), (name, commands.operation[index])
            found += 1
    assert found == len(results.command) > 300
    assert np.array_equal(banks, interpreter.banks)
