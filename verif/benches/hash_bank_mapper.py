"""Stimulus and expectation for the hash bank mapper: corners, a sweep of all indices and slots, then random ones."""

import numpy as np

from golden.hash_bank_mapper import BankMap
from verif.bench import Batch, Bench
from verif.packing import join, pack


class HashBankMapperBench(Bench):
    """Each batch goes on with the sweep where the last one stopped; at run time each batch has another multiplier."""

    unit = "hash_bank_mapper"

    def __init__(self, block, seed):
        super().__init__(block, seed)
        self._swept = 0
        self._batches = 0

    @property
    def required_bins(self):
        p = self.parameters
        bins = {"last_column"}
        if p.direction != "forward":
            bins |= {"in_range"}
            if p.n_columns != 1 << p.index_width or not p.bank_width or not p.address_width:
                bins |= {"empty_slot"}
        if p.is_runtime:
            bins |= {"odd_multiplier", "even_multiplier"}
        return frozenset(bins)

    def batch(self, count):
        p = self.parameters
        statics, bins, multiplier = {}, {}, p.multiplier
        if p.is_runtime:
            given = self._multiplier()
            statics["hash_multiplier"], multiplier = given, given | 1
            bins["odd_multiplier" if given & 1 else "even_multiplier"] = 1
        bank_map = BankMap(n_columns=p.n_columns, n_banks=p.n_banks, hash=p.hash, multiplier=multiplier)
        words = self._words(count)
        bins["every_index"] = int(len(np.unique(words % (1 << p.index_width))) == 1 << p.index_width)
        inputs, outputs, causes = {}, {}, {}
        bins["last_column"] = int((words == p.n_columns - 1).sum())
        if p.direction != "inverse":
            inputs["index"] = self._pack((words, max(1, p.index_width)))
            outputs["location"] = self._slots(*bank_map.locate(words))
            causes["location"] = "index", list(range(len(words)))
        if p.direction != "forward":
            bank, address = self._split(words)
            index, in_range = bank_map.column(bank, address)
            inputs["slot"] = self._slots(bank, address)
            outputs["column"] = self._pack((index, max(1, p.index_width)), (in_range, 1))
            causes["column"] = "slot", list(range(len(words)))
            bins["in_range"], bins["empty_slot"] = int(in_range.sum()), int((~in_range).sum())
        self._batches += 1
        # The inverse of a run-time multiplier is found first, while slots wait.
        full_rate = tuple(name for name in inputs if name == "index" or not p.is_runtime)
        return Batch(inputs, outputs, bins, statics, full_rate, causes)

    def _multiplier(self):
        """Small, large, even and random multipliers; the first two batches have an odd and an even one."""
        width = max(1, self.parameters.index_width)
        choices = (1, 0, (1 << width) - 1, 3 & ((1 << width) - 1))
        if self._batches < len(choices):
            return choices[self._batches]
        return int(self.rng.integers(0, 1 << width))

    def _words(self, count):
        """``[count, n_indices]`` words of all port bits, to serve as indices and, cut in two, as slots."""
        p = self.parameters
        width = max(1, p.bank_width) + max(1, p.address_width)
        corners = [p.n_columns - 1, 0, (1 << width) - 1, 1 << width - 1, p.n_columns % (1 << width)]
        n_words = max(1, count) * p.n_indices
        n_swept = min(1 << width, n_words // 2)
        swept = np.arange(self._swept, self._swept + n_swept) % (1 << width)
        self._swept += n_swept
        words = np.concatenate([corners, swept, self.rng.integers(0, 1 << width, n_words)])[:n_words]
        return words.astype(np.int64).reshape(-1, p.n_indices)

    def _split(self, words):
        low = max(1, self.parameters.address_width)
        return words >> low, words & ((1 << low) - 1)

    def _slots(self, bank, address):
        return self._pack((bank, max(1, self.parameters.bank_width)), (address, max(1, self.parameters.address_width)))

    def _pack(self, *fields):
        """One integer a beat from ``(array [beats, n_indices], bits)`` pairs, the first in the lowest bits."""
        n = self.parameters.n_indices
        rows = zip(*(pack(array, width) for array, width in fields), strict=True)
        return [join(*((value, width * n) for value, (_, width) in zip(row, fields))) for row in rows]
