"""Cycle model of the core: when each row of a command is complete if no external stream stalls.

A command begins in clock 0, that of its ``start``, and a row can be read from ``available[row]`` on (default 0, as for
the first command of a chain). Each unit is a recursion over rows; the constants are those of
:class:`golden.timing.latencies.Latencies`. Where all rows have equal masks the recursion is run for a few rows, which
give the clocks of the first row and those from row to row of all others.

* The array: :func:`golden.units.dot_product_array.schedule`. A dense product is a mask of ones over the units' columns.
* SOFTMAX: a row takes as many steps as its fullest bank has elements, at least one. Scan, exponentials and products are
  three phases; a row enters a phase when it has left the one before and the previous row has left this one.
* SPMM: :func:`golden.units.spmm_array.schedule`.
* LAYER_NORM has three phases, too: sums, deviations, results; gamma and beta come before them.
* ELEMENTWISE takes a clock for each vector_lanes elements of the words, more for a function, and as many as are read.
* WEIGHTED_SUM: as a dense product of n_in columns whose rows have a beat, or more, for each slot.
* PROJECT: as a dense product of a row for each slot of the hash, group of n_banks columns, and bank.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from golden.spec.commands import Opcode, form_of
from golden.spec.sizes import CoreSizes, spmm_array_of, words_for
from golden.spec.spmm_array import SpmmArrayParameters
from golden.spec.vector_operations import FUNCTION_OPS, VectorOp
from golden.timing.latencies import Latencies
from golden.units.dot_product_array import schedule
from golden.units.spmm_array import schedule as schedule_spmm

__all__ = ["CoreTiming", "Latencies", "Times", "row_steps"]


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


_PROBED = 24
"""Rows of a product of equal rows for which the recursion is run; the others follow each other steadily."""


def _in_order(ready, work):
    """Clock of each row's last step: it takes ``work`` steps, from ``ready`` on, after the row before."""
    before = np.cumsum(work) - work
    return np.maximum.accumulate(np.maximum(ready, 0) - before) + before + work - 1


def _are_equal(counts):
    """Whether all rows are one, by how the array is made: that of mask 0, or of all columns."""
    return len(counts) > 0 and counts.strides[0] == 0


def _steady(probe, available):
    """Clocks of rows that take as long as those of ``probe``, which came at once, and come when they are available."""
    if len(available) <= len(probe) and not available.any():
        return probe[: len(available)]
    period = (probe[-1] - probe[len(probe) // 2]) / (len(probe) - 1 - len(probe) // 2)
    before = np.arange(len(available)) * period
    return np.ceil(np.maximum.accumulate(available - before) + before + probe[0]).astype(np.int64)


def _ready(begin, available, work):
    """The earliest clock of each row."""
    return np.broadcast_to(np.maximum(0 if available is None else available, begin), work.shape)


@dataclass(frozen=True)
class CoreTiming:
    """Times of the commands of a core."""

    sizes: CoreSizes
    given: Latencies | None = None  # by default those of the sizes

    @cached_property
    def _probes(self):
        return {}

    @cached_property
    def latencies(self):
        return self.given or Latencies.of(self.sizes)

    def _times(self, begin, rows_done, work):
        end = max(begin, int(rows_done.max(initial=begin))) + self.latencies.done
        return Times(begin, rows_done, end, int(work))

    def _array(self, counts, n_beats, begin, available, first, query):
        """A schedule whose clock 0 is ``begin + first``, with queries ``query`` clocks later."""
        available = query + (np.zeros(len(counts), int) if available is None else np.maximum(available - begin, 0))
        if _are_equal(counts):
            probe = self._probe("array", counts[0], n_beats, query)
            row_done = _steady(probe, available - query)
        else:
            row_done = self._schedule(counts, n_beats, available)
        rows_done = begin + first + row_done + self.latencies.array_end
        return self._times(begin, rows_done, (counts.sum(axis=0) * n_beats).max(initial=0))

    def _probe(self, unit, counts, length, query=0):
        """Clocks in which the first rows of equal ``counts`` are done, if all come at once."""
        key = unit, counts.tobytes(), length, query
        if key not in self._probes:
            rows = np.broadcast_to(counts, (_PROBED, len(counts)))
            if unit == "array":
                self._probes[key] = self._schedule(rows, length, np.full(_PROBED, query))
            else:
                array = SpmmArrayParameters(**spmm_array_of(self.sizes))
                self._probes[key] = schedule_spmm(rows, length, array).result[length - 1 :: length]
        return self._probes[key]

    def _schedule(self, counts, n_beats, available):
        sizes = self.sizes
        query_beats = min(sizes.row_word // sizes.n_lanes, sizes.max_beats)
        clocks = self.latencies.score
        return schedule(
            counts, n_beats, sizes.run_ahead, query_beats=query_beats, score_latency=clocks, available=available
        ).row_done

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

    def project(self, n_rows, n_in, n_out, has_bias=False, begin=0, writes=None):
        """Keys or values of n_rows tokens, all complete at the same time.

        ``writes(clock, n)`` is the clock in which n columns are in the banks if their writes may begin in ``clock``.
        """
        sizes, banks = self.sizes, self.sizes.n_banks
        units = np.arange(words_for(n_out, banks) * banks).reshape(-1, 1, banks) < n_out
        shape = sizes.slots_of(n_rows), len(units), banks, banks
        # The time of slots without a row is neglected.
        n_groups = n_rows * len(units)
        if units.all():
            groups = np.broadcast_to(np.ones(banks, np.int64), (n_groups, banks))
        else:
            groups = np.broadcast_to(units, shape).reshape(-1, banks)[:n_groups].astype(np.int64)
        times = self._product(groups, words_for(n_in, sizes.n_lanes) + has_bias, begin, None)
        tiles = times.rows_done[np.minimum(np.arange(banks - 1, n_groups + banks - 1, banks), n_groups - 1)]
        late, written = 0, begin
        for tile in tiles.tolist():
            # The writer holds a tile while the one before it is written; the array waits for it.
            ready = tile + late
            written = max(ready, written) + banks if writes is None else writes(max(ready, written), banks)
            late = max(late, written - banks - ready)
        done = np.full(n_rows, written + self.latencies.project)
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
        early = np.zeros(len(counts), int) if available is None else np.maximum(np.asarray(available) - begin, 0)
        if _are_equal(counts):
            results = _steady(self._probe("engines", counts[0], passes), early)
        else:
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
        """LAYER_NORM on rows of n_in elements."""
        sizes = self.sizes
        words, pieces = words_for(n_in, sizes.row_word), sizes.row_word // sizes.n_vector_lanes
        work = np.full(n_rows, words * pieces)
        coefficients = words * (max(2, pieces) + 1) - 1
        ready = np.maximum(_ready(begin, available, work), begin + coefficients)
        through = _in_order(_in_order(_in_order(ready, work), work), work)
        return self._times(begin, through + self.latencies.layer_norm, work.sum())

    def of(self, command, bits=None, begin=0, available=None, n_active=None, writes=None):
        """The :class:`Times` of a command that the core accepts; ``bits`` are those of its mask, if it has one.

        ``n_active`` are the rows that a gated command processes, by default all; ``writes`` is that of :meth:`project`.

        A command without a method of its own takes the time of ELEMENTWISE if all that it reads and writes are rows of
        IMEM. Transfers, whose time is that of the streams, are in :mod:`golden.timing.transfers`.
        """
        form, bias = form_of(command), command.has("bias")
        n_in, n_out = command.n_in, command.n_out
        n_rows = command.n_rows if n_active is None else n_active
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
                return self.project(n_rows, n_in, n_out, bias, begin, writes)
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
