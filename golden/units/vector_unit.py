"""Bit-exact model of the vector unit: executes arrays of commands on engines with banks."""

from dataclasses import dataclass, fields, replace

import numpy as np

from golden.arith.accumulator import Accumulator, Sums
from golden.arith.elementwise import ELEMENTWISE_OPS, elementwise
from golden.arith.floats import check_words, decode, round_pack, word_type
from golden.arith.functions import exponential, gelu, reciprocal, reciprocal_root, silu
from golden.spec.formats import FP32
from golden.spec.vector_operations import (
    ACCUMULATING_OPS,
    ADDING_OPS,
    BANK_OPS,
    OPERATION_WIDTH,
    SCOPE_WIDTH,
    Scope,
    VectorOp,
)
from golden.spec.vector_unit import VectorUnitParameters

__all__ = ["ACCUMULATING_OPS", "ADDING_OPS", "BANK_OPS", "FUNCTIONS", "Commands", "Results", "VectorUnit"]


_NONE = next(code for code in range(1 << OPERATION_WIDTH) if code not in list(VectorOp))
"""A code without an operation."""

FUNCTIONS = {
    VectorOp.EXP: exponential,
    VectorOp.RECIPROCAL: reciprocal,
    VectorOp.RSQRT: reciprocal_root,
    VectorOp.GELU: gelu,
    VectorOp.SILU: silu,
}


@dataclass
class Commands:
    """n commands, one array a field; words are unsigned integers of the format."""

    operation: np.ndarray  # [n], VectorOp codes (others give a result of zeros)
    a: np.ndarray  # [n, n_engines, n_lanes]
    b: np.ndarray  # [n, n_engines, n_lanes]
    c: np.ndarray  # [n, n_engines, n_lanes]
    enable: np.ndarray  # [n, n_engines], engines that take part in an accumulation or a bank access
    lane_enable: np.ndarray  # [n, n_engines, n_lanes], lanes that take part in an accumulation or a write
    address: np.ndarray  # [n, n_engines]
    scope: np.ndarray  # [n]
    first: np.ndarray  # [n]
    last: np.ndarray  # [n]

    @classmethod
    def empty(cls, n, n_engines, n_lanes):
        """n commands: ADD of zeros, everything enabled."""
        lanes = (n, n_engines, n_lanes)
        return cls(
            np.zeros(n, np.int64),
            np.zeros(lanes, np.uint16),
            np.zeros(lanes, np.uint16),
            np.zeros(lanes, np.uint16),
            np.ones(lanes[:2], bool),
            np.ones(lanes, bool),
            np.zeros(lanes[:2], np.int64),
            np.zeros(n, np.int64),
            np.zeros(n, bool),
            np.zeros(n, bool),
        )

    @classmethod
    def join(cls, *parts):
        """One program after the other."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def __getitem__(self, index):
        return Commands(*(getattr(self, field.name)[index] for field in fields(self)))

    def __len__(self):
        return len(self.operation)


@dataclass
class Results:
    """One entry a result beat, in order. Accumulations leave `values` zero, all others `single` and `rounded`."""

    command: np.ndarray  # [n_results], the command that gave the result
    values: np.ndarray  # uint32 [n_results, n_engines, n_lanes]
    single: np.ndarray  # uint32 [n_results, n_totals], totals as FP32
    rounded: np.ndarray  # uint16 [n_results, n_totals], totals in the format


def _starts(first, last):
    """Where accumulations start: at `first`, after `last`, and at the beginning."""
    starts = first.astype(bool).copy()
    starts[1:] |= last[:-1].astype(bool)
    starts[:1] = True
    return starts


@dataclass(frozen=True, kw_only=True)
class VectorUnit(VectorUnitParameters):
    """N engines of `n_lanes` lanes, each with a bank of `bank_depth` rows of `n_lanes` words.

    Source: DiSC, section IV-B and figure 14 (SpMM on the vector unit).
    """

    @property
    def accumulator(self):
        """The arithmetic of the accumulators and of the reduction bus."""
        return Accumulator(format=self.format, align_width=self.align_width, max_terms=self.max_terms)

    def empty_banks(self):
        """Banks of zeros, [n_engines, bank_depth, n_lanes]."""
        return np.zeros((self.n_engines, self.bank_depth, self.n_lanes), np.uint16)

    def execute(self, commands, banks=None):
        """Run commands from a reset; `banks` [n_engines, bank_depth, n_lanes] is read and changed.

        Element-wise operations act on a, b, c of every lane (golden.arith.elementwise, golden.arith.functions).
        WRITE_BANK puts the enabled lanes of row a of each enabled engine at its address and gives no result; READ_BANK
        gives all of that row, zeros where the engine is not enabled. An address outside the bank counts as not enabled.

        SUM, SUM_SQUARES and SPMM add a, a*a and `a[engine, 0] * bank row` of the enabled lanes of the enabled
        engines to one accumulator a lane; they restart at `first`, after one of them had `last`, and at reset, and
        give a result at `last`. MAXIMUM tracks the largest a in the same way, separately from the sums: numbers
        win over NaN, -0 < +0, only NaNs give NaN, and no element at all gives -Inf. Totals over the scope of the
        command with `last`: LANES in entry l < n_lanes, ENGINE in entry v < n_engines, ALL in entry 0; the other
        entries are 0. LANES and ENGINE use Accumulator.align once; ALL aligns the engines' totals once more, without
        new guard bits.

        A command with an operation that is not among `operations` gives a result of zeros, a scope that is not among
        `scopes` no totals; where there is one scope only, accumulating commands must have it. Results that no operation
        gives have no entries: values then is [n, 0, 0], single and rounded are [n, 0].
        """
        width = self.float_format.width
        for name, bits in (("operation", OPERATION_WIDTH), ("scope", SCOPE_WIDTH), *((name, width) for name in "abc")):
            check_words(name, getattr(commands, name), bits)
        banks = self.empty_banks() if banks is None else banks
        commands = self._present_only(commands)
        operation = np.asarray(commands.operation)
        rows = self._move(commands, banks)
        accumulates = np.isin(operation, ACCUMULATING_OPS)
        gives_result = np.where(accumulates, commands.last, operation != VectorOp.WRITE_BANK).astype(bool)
        place = np.cumsum(gives_result) - 1
        n_results = int(gives_result.sum())
        results = Results(
            np.flatnonzero(gives_result),
            np.zeros((n_results, self.n_engines, self.n_lanes) if self.gives_values else (n_results, 0, 0), np.uint32),
            np.zeros((n_results, self.n_totals * ("single" in self.total_forms)), np.uint32),
            np.zeros((n_results, self.n_totals * ("rounded" in self.total_forms)), np.uint16),
        )
        fmt = self.float_format
        for code in np.unique(operation):
            chosen = operation == code
            a, b, c = (getattr(commands, name)[chosen] for name in "abc")
            if code in ELEMENTWISE_OPS:
                results.values[place[chosen]] = elementwise(code, a, b, c, fmt)
            elif code in FUNCTIONS:
                results.values[place[chosen]] = FUNCTIONS[code](a, fmt)
            elif code == VectorOp.READ_BANK:
                results.values[place[chosen]] = rows[chosen]

        for chosen, totals in (
            (np.isin(operation, ADDING_OPS), self._sums),
            (operation == VectorOp.MAXIMUM, self._maxima),
        ):
            part = commands[chosen]
            starts = _starts(part.first, part.last)
            ends = np.flatnonzero(part.last)
            if not len(ends):
                continue
            single, rounded = totals(part, rows[chosen], np.flatnonzero(starts), (np.cumsum(starts) - 1)[ends], ends)
            for form, words in (("single", single), ("rounded", rounded)):
                if form in self.total_forms:
                    getattr(results, form)[place[chosen][ends]] = words
        return results

    def _present_only(self, commands):
        """The commands with a code without an operation where theirs does not exist."""
        operation = np.asarray(commands.operation)
        commands = replace(commands, operation=np.where(np.isin(operation, self.present(VectorOp)), operation, _NONE))
        if len(self.total_scopes) == 1:
            scope = Scope[self.total_scopes[0].upper()]
            others = np.isin(commands.operation, ACCUMULATING_OPS) & (np.minimum(commands.scope, Scope.ALL) != scope)
            if others.any():
                wrong = np.asarray(commands.scope)[others][0]
                raise ValueError(f"scope must be {int(scope)} ({scope.name}), the only one of the unit, not {wrong}")
        return commands

    def _move(self, commands, banks):
        """Execute WRITE_BANK and return the bank rows that the other commands read, [n, n_engines, n_lanes]."""
        operation = np.asarray(commands.operation)
        rows = np.zeros(np.shape(commands.a), np.uint16)
        engine = np.arange(self.n_engines)
        works = np.asarray(commands.enable, bool) & (np.asarray(commands.address) < self.bank_depth)
        works &= np.isin(operation, BANK_OPS)[:, None]
        writes = operation == VectorOp.WRITE_BANK
        borders = np.flatnonzero(np.diff(writes)) + 1
        for stretch in np.split(np.arange(len(operation)), borders):
            if not len(stretch):
                continue
            at, which = np.nonzero(works[stretch])
            at = stretch[at]
            if writes[stretch[0]]:
                # Of several writes to one word the last one remains.
                place, lane = np.nonzero(np.asarray(commands.lane_enable, bool)[at, which])
                at, which = at[place], which[place]
                banks[engine[which], commands.address[at, which], lane] = commands.a[at, which, lane]
            else:
                rows[at, which] = banks[engine[which], commands.address[at, which]]
        return rows

    def _takes_part(self, commands):
        return np.asarray(commands.enable, bool)[..., None] & np.asarray(commands.lane_enable, bool)

    def _sums(self, commands, rows, starts, runs, ends):
        operation = np.asarray(commands.operation)[:, None, None]
        fmt = self.float_format
        one = fmt.bias << fmt.fraction_width
        squares = operation == VectorOp.SUM_SQUARES
        spmm = operation == VectorOp.SPMM
        left = np.where(spmm, commands.a[..., :1], np.where(squares, commands.a, one))
        right = np.where(spmm, rows, commands.a)
        inside = (np.asarray(commands.address) < self.bank_depth)[..., None]
        takes_part = self._takes_part(commands) & (inside | ~spmm)
        terms = self.accumulator.products(np.where(takes_part, left, 0), np.where(takes_part, right, 0))
        sums = self.accumulator.accumulate(terms, starts)
        return self.reduced(Sums(*(field[runs] for field in sums)), np.asarray(commands.scope)[ends])

    def reduced(self, sums, scope):
        """Reduce accumulators [n, n_engines, n_lanes] over the scope of each, and round: `(single, rounded)`."""
        lanes = self.accumulator.align(sums, 1)
        engines = self.accumulator.align(sums, 2)
        everything = self.accumulator.align(Sums._make(field[:, None] for field in engines), 2, guard_bits=0)
        return tuple(
            self._by_scope(words, scope)
            for words in zip(*map(self.accumulator.round, (lanes, engines, everything)), strict=True)
        )

    def _by_scope(self, parts, scope):
        lanes, engines, everything = parts
        total = np.zeros((len(scope), self.n_totals), lanes.dtype)
        for code, name, words in (
            (scope == Scope.LANES, "lanes", lanes),
            (scope == Scope.ENGINE, "engine", engines),
            (scope > 1, "all", everything),
        ):
            if name in self.total_scopes:
                total[code, : words.shape[1]] = words[code]
        return total

    def _maxima(self, commands, rows, starts, runs, ends):
        fmt = self.float_format
        key = np.where(self._takes_part(commands), _to_key(fmt, commands.a), 0)
        key = np.maximum.reduceat(key, starts, axis=0)[runs]
        parts = [_from_key(fmt, part) for part in (key.max(axis=1), key.max(axis=2), key.max(axis=(1, 2))[:, None])]
        scope = np.asarray(commands.scope)[ends]
        return self._by_scope([_single(fmt, part) for part in parts], scope), self._by_scope(parts, scope)


def _to_key(fmt, word):
    """An integer that orders words as MAXIMUM does: 0 is none, 1 NaN, then from -Inf to +Inf."""
    word = np.asarray(word).astype(np.int64)
    key = np.where(word & fmt.sign_bit, word ^ (2 * fmt.sign_bit - 1), word | fmt.sign_bit)
    return np.where(decode(fmt, word).is_nan, 1, key)


def _from_key(fmt, key):
    word = np.where(key & fmt.sign_bit, key ^ fmt.sign_bit, key ^ (2 * fmt.sign_bit - 1))
    word = np.where(key == 0, fmt.sign_bit | fmt.infinity, np.where(key == 1, fmt.nan, word))
    return word.astype(word_type(fmt))


def _single(fmt, word):
    number = decode(fmt, word)
    return round_pack(FP32, number.sign, number.significand, number.exponent, nan=number.is_nan, inf=number.is_inf)
