"""Stimulus and expectation for the bitmap scanner: rows of all densities, empty and full ones, several passes."""

import numpy as np

from golden.core.bitmap_scanner import scan
from hw.top.rows.bitmap_scanner import BitmapScanner
from verif.bench.batch import Batch, Bench
from verif.bench.packing import join, pack

KINDS = ("random", "empty", "one", "full", "one_bank")


class BitmapScannerBench(Bench):
    unit = "bitmap_scanner"
    required_bins = frozenset({*KINDS, "unused_ones", "several_turns", "empty_after_empty"})

    @classmethod
    def make_block(cls, parameters):
        return BitmapScanner(**parameters)

    @property
    def longest_silence(self):
        return self.parameters.n_slots * self.parameters.max_turns

    def batch(self, count):
        p, rng = self.parameters, self.rng
        turns = int(rng.integers(1, p.max_turns + 1))
        used = np.arange(p.n_slots) < rng.choice([p.n_slots, rng.integers(1, p.n_slots + 1)])
        kinds = [*KINDS, "empty", "empty", *rng.choice(KINDS, max(4, count // (turns * p.n_slots)))]
        given = np.array([self._row(kind) for kind in kinds])
        bitmap = given & used
        steps = scan(np.repeat(bitmap, turns, axis=0))
        is_last_turn = steps.row % turns == turns - 1
        width = (p.n_slots - 1).bit_length()
        slots = np.where(steps.slot < 0, p.n_slots, steps.slot) & ((1 << width) - 1)
        beats = [
            join((enable, p.n_banks), (slot, width * p.n_banks), (first, 1), (last, 1), (last_turn, 1))
            for enable, slot, first, last, last_turn in zip(
                pack(steps.slot >= 0, 1), pack(slots, width), steps.first, steps.last, is_last_turn, strict=True
            )
        ]
        empty = ~bitmap.any(axis=(1, 2))
        taken = np.flatnonzero(steps.first & is_last_turn)
        causes = [None] * len(beats)
        for row, step in enumerate(taken):
            causes[step] = row
        return Batch(
            inputs={"bitmap": pack(given.reshape(len(given), -1), 1)},
            outputs={"step": beats},
            bins={
                **{kind: kinds.count(kind) for kind in KINDS},
                "unused_ones": int((given & ~used).any()) if p.n_slots > 1 else 1,
                "several_turns": int(turns > 1) if p.max_turns > 1 else 1,
                "empty_after_empty": int((empty[1:] & empty[:-1]).sum()),
            },
            statics={"used": pack(used, 1), "turns": turns},
            full_rate=(),
            causes={"step": ("bitmap", causes)},
            gapless=("step",),
        )

    def _row(self, kind):
        p, rng = self.parameters, self.rng
        shape = p.n_banks, p.n_slots
        if kind == "random":
            return rng.random(shape) < rng.random((p.n_banks, 1)) * rng.random()
        row = np.full(shape, kind == "full")
        if kind == "one":
            row[rng.integers(p.n_banks), rng.integers(p.n_slots)] = True
        elif kind == "one_bank":
            row[rng.integers(p.n_banks)] = True
        return row
