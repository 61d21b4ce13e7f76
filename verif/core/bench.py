"""The core's testbench: random programs, piece after piece, against the golden model's stores and refusals."""

from collections import deque

from verif.bench.batch import Batch, Bench
from verif.bench.endpoints import Partly, word
from verif.core.random_programs import RandomPrograms


class CoreBench(Bench):
    """A batch is a piece of about so many commands; what the core remembers goes on from piece to piece."""

    unit = "core"
    latency = 100

    def __init__(self, block, seed):
        super().__init__(block, seed)
        self._sizes = self.parameters
        self._programs = RandomPrograms(self._sizes, self.rng)
        self._refusals = deque()
        self._error = 0

    @property
    def longest_silence(self):
        """A fortieth of the clocks of the longest command, see the player's patience."""
        sizes = self._sizes
        return sizes.max_tokens * sizes.array_slots * sizes.max_beats // 10

    def batch(self, count):
        piece = self._programs.piece(count)
        self._refusals.extend((refusal.code, refusal.command) for refusal in piece.refusals)
        return Batch(
            inputs={"commands": piece.command_integers(), "load": piece.load_integers()},
            outputs={"store": [Partly(*beat) for beat in piece.store_integers()]},
            bins=piece.bins,
            full_rate=(),
            causes={},
        )

    def forget(self):
        self._programs.forget()
        self._refusals.clear()
        self._error = 0

    def watch(self, dut, report):
        error = word(dut.error)
        if error == self._error:
            return
        self._error = error
        if error == 0:
            return
        found = (error, word(dut.error_command))
        expected = self._refusals.popleft() if self._refusals else None
        if found != expected:
            report(f"error and its command are {found}, expected {expected}")
