"""Cycle model of the core: when each row of a command is complete if no external stream stalls.

A command begins in clock 0, that of its ``start``, and a row can be read from ``available[row]`` on (default 0, as for
the first command of a chain). Each unit is a recursion over rows; the constants are the hardware's latencies, see
:class:`Latencies`.

* The array: :func:`golden.units.dot_product_array.schedule`. A dense product is a mask of ones over the units' columns.
* SOFTMAX: a row takes as many steps as its fullest bank has elements, at least one. Scan, exponentials and products are
  three phases; a row enters a phase when it has left the one before and the previous row has left this one.
* SPMM: :func:`golden.units.spmm_array.schedule`.
* ELEMENTWISE takes a clock for each vector_lanes elements of the words, more for a function, and as many as are read.
* LAYER_NORM: a clock for each piece of gamma and beta and of the rows; a row waits twice until it is complete.
* WEIGHTED_SUM: as a dense product of n_in columns whose rows have a beat, or more, for each slot.
* PROJECT: as a dense product of a row for each slot of the hash, group of n_banks columns, and bank.
"""

from dataclasses import dataclass

import numpy as np

from golden.spec.commands import Opcode, form_of
from golden.spec.sizes import CoreSizes, spmm_array_of, words_for
from golden.spec.spmm_array import SpmmArrayParameters
from golden.spec.vector_operations import FUNCTION_OPS, VectorOp
from golden.units.dot_product_array import schedule
from golden.units.spmm_array import schedule as schedule_spmm

__all__ = ["CoreTiming", "Latencies", "Times", "row_steps"]


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """Clocks that the hardware's registers take; the defaults are those of edge."""

    command: int = 16  # from a command's start to that of the next in its chain
    array: int = 3  # from start to the first row's mask at the array
    array_query: int = 2  # from there to the earliest clock of its query
    product: int = 2  # the same for MATMUL and PROJECT, whose mask is not read
    product_query: int = 3
    score: int = 7  # from the last beat of a dot product to its score
    array_end: int = 1  # from a row's report to where its results can be read
    softmax: int = 36  # from start to where a row of one step can be read
    softmax_mask: int = 1  # added to it by make_mask
    spmm: int = 7  # from start to where a row can be read, beside the array's schedule
    elementwise: int = 27  # from start to where a row of one piece can be read
    layer_norm: int = 76  # the same for LAYER_NORM, after gamma and beta
    done: int = 1  # from where the last row can be read to the end of the command


@dataclass(frozen=True)
class Times:
    """When a command is at work; clocks count from the start of the chain's first command."""

    begin: int
    rows_done: np.ndarray  # clock from which on each row's results can be read
    end: int
    work: int  # clocks of issue on the fullest bank, the lower bound

    @property
    def cycles(self):
        """Clocks from start to done, as the counters of busy units count them."""
        return self.end - self.begin

    @property
    def utilisation(self):
        """Fraction of these clocks that the work takes."""
        return self.work / self.cycles if self.cycles else 1.0


def row_steps(bits):
    """Steps of each row of ``bits`` [rows, banks, slots] (or of counts [rows, banks]): its fullest bank, at least 1."""
    counts = np.asarray(bits).sum(axis=2) if np.ndim(bits) == 3 else np.asarray(bits)
    return np.maximum(counts.max(axis=1, initial=0), 1)


def _in_order(ready, work):
    """Clock of each row's last step: it takes ``work`` steps, from ``ready`` on, after the row before."""
    last, found = -1, []
    for begins, steps in zip(ready.tolist(), work.tolist(), strict=True):
        last = max(begins, last + 1) + steps - 1
        found.append(last)
    return np.array(found, np.int64)


def _ready(begin, available, work):
    """The earliest clock of each row."""
    return np.broadcast_to(np.maximum(0 if available is None else available, begin), work.shape)


@dataclass(frozen=True)
class CoreTiming:
    """Times of the commands of a core."""

    sizes: CoreSizes
    latencies: Latencies = Latencies()

    def _times(self, begin, rows_done, work):
        end = max(begin, int(rows_done.max(initial=begin))) + self.latencies.done
        return Times(begin, rows_done, end, int(work))

    def _array(self, counts, n_beats, begin, available, first, query):
        """A schedule whose clock 0 is ``begin + first``, with queries ``query`` clocks later."""
        sizes, clocks = self.sizes, self.latencies
        available = query + (np.zeros(len(counts), int) if available is None else np.maximum(available - begin, 0))
        plan = schedule(
            counts,
            n_beats,
            sizes.run_ahead,
            query_beats=min(sizes.row_word // sizes.n_lanes, sizes.max_beats),
            score_latency=clocks.score,
            available=available,
        )
        rows_done = begin + first + plan.row_done + clocks.array_end
        return self._times(begin, rows_done, (counts.sum(axis=0) * n_beats).max(initial=0))

    def _product(self, counts, n_beats, begin, available):
        clocks = self.latencies
        return self._array(counts, n_beats, begin, available, clocks.product, clocks.product_query)

    def sddmm(self, bits, n_in, begin=0, available=None):
        """Scores under ``bits`` [rows, banks, slots]."""
        counts, n_beats = np.asarray(bits), words_for(n_in, self.sizes.n_lanes)
        counts = counts.sum(axis=2) if counts.ndim == 3 else counts
        return self._array(counts, n_beats, begin, available, self.latencies.array, self.latencies.array_query)

    def matmul(self, n_rows, n_in, n_out, has_bias=False, begin=0, available=None):
        """Rows times weights."""
        columns = np.bincount(np.arange(n_out) % self.sizes.n_banks, minlength=self.sizes.n_banks)
        counts = np.broadcast_to(columns, (n_rows, self.sizes.n_banks))
        return self._product(counts, words_for(n_in, self.sizes.n_lanes) + has_bias, begin, available)

    def weighted_sum(self, n_rows, n_in, n_keys, begin=0, available=None):
        """Probabilities of n_keys keys times columns of n_in elements."""
        sizes = self.sizes
        columns = np.bincount(np.arange(n_in) % sizes.n_banks, minlength=sizes.n_banks)
        counts = np.broadcast_to(columns, (n_rows, sizes.n_banks))
        return self._product(counts, sizes.slots_of(n_keys) * sizes.column_beats, begin, available)

    def project(self, n_rows, n_in, n_out, has_bias=False, begin=0):
        """Keys or values of n_rows tokens, all complete at the same time."""
        sizes, banks = self.sizes, self.sizes.n_banks
        units = np.arange(words_for(n_out, banks) * banks).reshape(-1, 1, banks) < n_out
        shape = sizes.slots_of(n_rows), len(units), banks, banks
        # The time of slots without a row is neglected.
        groups = np.broadcast_to(units, shape).reshape(-1, banks)[: n_rows * len(units)]
        times = self._product(groups.astype(np.int64), words_for(n_in, sizes.n_lanes) + has_bias, begin, None)
        done = np.full(n_rows, times.rows_done[-1] + 2 * banks + 2)
        return self._times(begin, done, times.work)

    def softmax(self, bits, begin=0, available=None, makes_mask=False):
        """Probabilities under ``bits``."""
        steps = row_steps(bits)
        scanned = _in_order(_ready(begin, available, steps), steps)
        through = _in_order(_in_order(scanned, steps), steps)
        latency = self.latencies.softmax + makes_mask * self.latencies.softmax_mask
        return self._times(begin, through + latency, steps.sum())

    def _vector(self, work, begin, available, latency):
        return self._times(begin, _in_order(_ready(begin, available, work), work) + latency, work.sum())

    def spmm(self, bits, n_in, begin=0, available=None):
        """Probabilities under ``bits`` times value rows of n_in elements."""
        counts = np.asarray(bits)
        counts = counts.sum(axis=2) if counts.ndim == 3 else counts
        passes = words_for(n_in, self.sizes.simd_lanes)
        array = SpmmArrayParameters(**spmm_array_of(self.sizes))
        early = None if available is None else np.maximum(np.asarray(available) - begin, 0)
        results = schedule_spmm(counts, passes, array, early).result[passes - 1 :: passes]
        work = np.maximum(counts, 1).sum(axis=0).max(initial=0) * passes
        return self._times(begin, begin + results + self.latencies.spmm, work)

    def elementwise(self, n_rows, n_in, n_operands=1, begin=0, available=None, is_function=False):
        """ELEMENTWISE on rows of n_in elements."""
        sizes = self.sizes
        words, pieces = words_for(n_in, sizes.row_word), sizes.row_word // sizes.n_vector_lanes
        passes = words_for(sizes.n_vector_lanes, sizes.n_special_lanes) if is_function else 1
        # While a word's pieces are taken, the second operand of the next one cannot be.
        work = np.full(n_rows, words * (pieces * passes + n_operands - 1))
        return self._vector(work, begin, available, self.latencies.elementwise)

    def layer_norm(self, n_rows, n_in, begin=0, available=None):
        """LAYER_NORM of rows of n_in elements."""
        sizes = self.sizes
        pieces = words_for(n_in, sizes.row_word) * (sizes.row_word // sizes.n_vector_lanes)
        coefficients = 2 * pieces
        ready = _ready(begin + coefficients, available, np.full(n_rows, pieces))
        last = _in_order(ready, np.full(n_rows, pieces))
        return self._times(begin, last + self.latencies.layer_norm + 2 * (pieces - 1), n_rows * pieces + coefficients)

    def of(self, command, bits=None, begin=0, available=None, n_rows=None):
        """The :class:`Times` of a command that the core accepts; ``bits`` are those of its mask, if it has one.

        ``n_rows`` are the rows that it processes, if not all: those of the token list.

        A command without a method of its own takes the time of ELEMENTWISE if all that it reads and writes are rows of
        IMEM. There is no model of transfers, whose time is that of the streams.
        """
        form, bias = form_of(command), command.has("bias")
        n_rows = command.n_rows if n_rows is None else n_rows
        n_in, n_out = command.n_in, command.n_out
        match form.opcode:
            case Opcode.SDDMM:
                return self.sddmm(bits, n_in, begin, available)
            case Opcode.SOFTMAX:
                return self.softmax(bits, begin, available, command.has("make_mask"))
            case Opcode.SPMM:
                return self.spmm(bits, n_in, begin, available)
            case Opcode.MATMUL:
                return self.matmul(n_rows, n_in, n_out, bias, begin, available)
            case Opcode.PROJECT:
                return self.project(n_rows, n_in, n_out, bias, begin)
            case Opcode.WEIGHTED_SUM:
                return self.weighted_sum(n_rows, n_in, n_out, begin, available)
            case Opcode.LAYER_NORM:
                return self.layer_norm(n_rows, n_in, begin, available)
        if not form.is_rowwise:
            raise ValueError(f"there is no cycle model of {form.name}")
        is_function = VectorOp(command.function) in FUNCTION_OPS if form.opcode == Opcode.ELEMENTWISE else False
        return self.elementwise(n_rows, n_in, len(form.reads), begin, available, is_function)

    def head(self, bits, n_in, n_out=None, makes_mask=False):
        """SDDMM, SOFTMAX and SPMM of an attention head under ``bits``, chained row by row; with ``n_out`` also the
        dense product of its outputs. ``{"sddmm": Times, ...}``."""
        bits = np.asarray(bits)
        clocks = self.latencies
        found = {"sddmm": self.sddmm(bits, n_in)}
        found["softmax"] = self.softmax(bits, clocks.command, found["sddmm"].rows_done, makes_mask)
        found["spmm"] = self.spmm(bits, n_in, 2 * clocks.command, found["softmax"].rows_done)
        if n_out is not None:
            # The array is free for it when the scores are done.
            begin = max(3 * clocks.command, found["sddmm"].end)
            found["matmul"] = self.matmul(len(bits), n_in, n_out, False, begin, found["spmm"].rows_done)
        return found
