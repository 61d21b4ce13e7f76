"""The core's testbench: random programs, piece after piece, against the golden model's stores and refusals."""

from collections import deque

from golden.spec.commands import Opcode
from verif.bench.batch import Batch, Bench
from verif.bench.endpoints import MaskedWord, word
from verif.core.random_programs import RandomPrograms


class CoreBench(Bench):
    """A batch is a piece of about so many commands; the core's state goes on from piece to piece."""

    unit = "core"
    latency = 100
    clocks_a_beat = 300

    def __init__(self, block, seed):
        super().__init__(block, seed)
        self._sizes = self.parameters
        self._programs = RandomPrograms(self._sizes, self.rng)
        self._refusals = deque()
        self._error = 0

    @property
    def required_bins(self):
        bins = {opcode.name.lower() for opcode in Opcode}
        bins |= {"no tokens", "all tokens", "empty rows", "whole chains of three or more", "refused", "dropped"}
        if self._sizes.n_banks > 1:
            bins.add("keys that do not fill the banks")
        if max(self._sizes.n_lanes, self._sizes.simd_lanes) > 1:
            bins.add("rows that do not fill the lanes")
        return frozenset(bins)

    @property
    def longest_silence(self):
        """1/40 of the cycles of the longest command; see :meth:`verif.bench.testbench.Testbench.run`."""
        sizes = self._sizes
        return sizes.max_tokens * sizes.array_slots * sizes.max_beats // 10

    def batch(self, count):
        piece = self._programs.piece(count)
        self._refusals.extend((refusal.code, refusal.command) for refusal in piece.refusals)
        return Batch(
            inputs={"commands": piece.command_integers(), "load": piece.load_integers()},
            outputs={"store": [MaskedWord(*beat) for beat in piece.store_integers()]},
            bins={**piece.bins, "refused": len(piece.refusals)},
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

    def check_end(self, report):
        for code, command in self._refusals:
            report(f"command {command} was not refused with error {code}")
        self._refusals.clear()
