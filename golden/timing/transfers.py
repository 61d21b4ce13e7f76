"""When the beats of LOAD, CTR and STORE move: the load stream has a beat every ``interval`` clocks, the store stream
takes one a clock.

A beat to load takes a clock for each of its slices: what a memory writes in a clock, see
:class:`hw.top.host.load.LoadUnit`. It is offered ``interval`` clocks after the one before it was, and at the earliest
in the clock after that one was taken; so a beat is there when a command comes that waited for others.
"""

from dataclasses import dataclass

import numpy as np

from golden.core.streams import TokenCompare, n_load_beats
from golden.spec.commands import Memory, Opcode
from golden.spec.sizes import CoreSizes, words_for

__all__ = ["LoadStream", "WeightLoads", "load_beats", "slices", "store_rows"]

_COMPARE = 12  # clocks of the token selector's pipeline


def slices(command, sizes):
    """Clocks that a beat of a LOAD or CTR takes."""
    if command.opcode == Opcode.CTR:
        return sizes.row_word // sizes.n_banks
    size = {
        Memory.WEIGHTS: sizes.n_lanes,
        Memory.VALUES: sizes.simd_lanes,
        Memory.SCORES: sizes.n_banks,
        Memory.PROBABILITIES: sizes.n_banks,
        Memory.TOKENS: 1,
        Memory.MASS: 1,
    }.get(command.function)
    if size is not None:
        return sizes.row_word // size
    bits = sizes.n_banks * sizes.key_slots
    return max(1, 16 * sizes.row_word // bits) if command.function == Memory.MASK else 1


def load_beats(command, sizes):
    """Beats that a LOAD or CTR takes."""
    return TokenCompare(sizes).n_beats if command.opcode == Opcode.CTR else n_load_beats(command, sizes)


@dataclass
class LoadStream:
    """The stream from reset on: ``next_offer`` is the clock in which the next beat comes."""

    sizes: CoreSizes
    interval: float = 1
    next_offer: float = 0

    def run(self, command, begin):
        """Clocks of the last slice of each beat, of a command that starts in clock ``begin``."""
        sizes = self.sizes
        n_beats, n_slices = load_beats(command, sizes), slices(command, sizes)
        if n_beats == 0:
            return np.array([begin])
        first = max(begin + 1, self.next_offer) + n_slices - 1
        second = max(first + 1, self.next_offer + self.interval)
        step = max(n_slices, self.interval)
        offers = second + step * np.arange(n_beats - 1)
        ends = np.concatenate([[first], offers + n_slices - 1])
        # The last beat has as many slices as there are pieces left.
        if n_beats > 1 and (short := n_slices - self._last_slices(command, n_beats, n_slices)):
            ends[-1] -= short
        self.next_offer = max(ends[-1] + 1, (offers[-1] if n_beats > 1 else self.next_offer) + self.interval)
        return np.ceil(ends).astype(np.int64)

    def _last_slices(self, command, n_beats, n_slices):
        if command.opcode == Opcode.CTR or command.function == Memory.ROWS:
            return n_slices
        banked = command.function in (Memory.WEIGHTS, Memory.VALUES)
        pieces = command.n_rows * (self.sizes.n_banks if banked else 1)
        return n_slices if n_slices == 1 else pieces - (n_beats - 1) * n_slices

    def rows_done(self, command, begin):
        """Clocks from which each row of a LOAD ROWS can be read; for others, the one clock in which all is there."""
        ends = self.run(command, begin) + 1
        if command.opcode == Opcode.LOAD and command.function == Memory.ROWS:
            words = words_for(command.n_in, self.sizes.row_word)
            return ends[words - 1 :: words]
        return ends[-1:] + (_COMPARE if command.opcode == Opcode.CTR else 0)


class WeightLoads:
    """When loads write the weight banks, which keeps PROJECT from writing keys or columns in that clock."""

    def __init__(self):
        self._clocks, self._free = [0.0], [0.0]  # of the begins and ends of loads: free clocks before each of them

    def add(self, begin, end, n_writes):
        """A load that writes in so many of these clocks; they come in order."""
        begin = max(begin, self._clocks[-1])
        if end <= begin:
            return
        self._free += [self._free[-1] + begin - self._clocks[-1]]
        self._free += [self._free[-1] + max(1e-6, end - begin - n_writes)]
        self._clocks += [begin, end]

    def after(self, clock, n):
        """The clock in which n writes are done that may begin in ``clock``."""
        last, free = self._clocks[-1], self._free[-1]
        clocks, frees = [*self._clocks, last + 1e9], [*self._free, free + 1e9]
        return int(np.ceil(np.interp(np.interp(clock, clocks, frees) + n, frees, clocks)))


def store_rows(command, sizes, begin, available, latency):
    """Clock in which the last beat of a STORE is sent, and the number of its beats."""
    if command.function == Memory.ROWS:
        words = words_for(command.n_in, sizes.row_word)
        work = np.full(command.n_rows, words)
    elif command.function == Memory.MASK:
        work = np.full(command.n_rows, sizes.mask_pieces)
    else:
        work = np.full(command.n_rows, 1)
    ready = np.maximum(begin, 0 if available is None else np.asarray(available))
    before = np.cumsum(work) - work
    through = np.maximum.accumulate(ready - before) + before + work - 1
    return int(through[-1]) + latency, int(work.sum())
