"""Stimulus and expectation for the dot-product array: every unit's scores from its own bank, the golden model a unit."""

import numpy as np

from golden.dot_product_unit import dot_product_stream
from hw.units.dot_product_unit import DotProductUnit
from verif.bench import Batch, Bench
from verif.benches.dot_product_unit import DotProductUnitBench
from verif.packing import join, pack

MAX_WRITES = 256


class DotProductArrayBench(Bench):
    """Each batch writes some words of every bank, the last one among them, then reads only these."""

    unit = "dot_product_array"
    required_bins = frozenset({"last_word", "same_address", "different_addresses", "multi_beat"})

    def __init__(self, block, seed):
        super().__init__(block, seed)
        p = self.parameters
        self._words = DotProductUnitBench(DotProductUnit(**p.unit()), seed)
        self._width = 8 if p.format == "int8" else 16
        self._address_width = (p.bank_depth - 1).bit_length()
        self._was_reset = False
        if p.n_units == 1:
            self.required_bins -= {"different_addresses"}

    def forget(self):
        self._was_reset = True

    def batch(self, count):
        p = self.parameters
        n_words = max(1, min(p.bank_depth, MAX_WRITES // p.n_units))
        addresses = np.unique(np.append(self.rng.integers(0, p.bank_depth, n_words), p.bank_depth - 1))
        query, first, last = self._queries(count)
        banks = np.zeros((p.n_units, p.bank_depth, p.n_lanes), np.int64)
        writes = []
        for unit in range(p.n_units):
            _, keys = self._words.operands(len(addresses))
            banks[unit, addresses] = keys
            for address, key in zip(addresses, pack(keys, self._width)):
                writes.append(join((key, self._width * p.n_lanes), (address, self._address_width), (unit, _log2(p.n_units))))
        reads = self.rng.choice(addresses, (len(query), p.n_units))
        reads[: len(reads) // 4] = reads[: len(reads) // 4, :1]  # every unit the same word, as in a dense product
        reads[-1, self.rng.integers(p.n_units)] = p.bank_depth - 1
        scores = [
            dot_product_stream(
                query, banks[unit, reads[:, unit]], first, last,
                format=p.format, align_width=p.align_width, max_terms=p.max_terms,
            )
            for unit in range(p.n_units)
        ]
        bins = {
            "last_word": int((reads == p.bank_depth - 1).sum()),
            "same_address": int((reads == reads[:, :1]).all(axis=1).sum()),
            "different_addresses": int((reads != reads[:, :1]).any(axis=1).sum()),
            "multi_beat": int((~np.array(last)).sum()),
        }
        operands = [
            join((row, self._width * p.n_lanes), (address, self._address_width * p.n_units), (begins, 1), (ends, 1))
            for row, address, begins, ends in zip(pack(query, self._width), pack(reads, self._address_width), first, last)
        ]
        expected = pack(np.stack([score.wide for score in scores], axis=1), 32)
        if p.format != "int8":
            narrow = pack(np.stack([score.narrow for score in scores], axis=1), 16)
            expected = [join((wide, 32 * p.n_units), (word, 16 * p.n_units)) for wide, word in zip(expected, narrow)]
        return Batch(
            {"weight": self.rng.permutation(np.array(writes, object)).tolist(), "operands": operands},
            {"scores": expected},
            bins,
            causes={"scores": ("operands", np.flatnonzero(last).tolist())},
            after={"operands": ("weight",)},
        )

    def _queries(self, count):
        """At least ``count`` query beats with their ``first`` and ``last``."""
        count = max(4, count)
        query, _ = self._words.operands(count)
        last = self.rng.random(count) < 0.5
        last[-1] = True
        first = np.append(not self._was_reset, last[:-1]) & (self.rng.random(count) < 0.5)
        self._was_reset = False
        return query, first.tolist(), last.tolist()


def _log2(count):
    return (count - 1).bit_length()
