"""Stimulus and expectation for the hash bank mapper: corners, a sweep of all indices and slots, then random ones."""

import numpy as np

from golden.units.hash_bank_mapper import BankMap
from verif.bench.batch import Batch, Bench
from verif.bench.packing import join, pack


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
        bins = {"last_index"} if p.direction != "inverse" else set()
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
        inputs, outputs, causes = {}, {}, {}
        words = self._words(count, [p.n_columns - 1, 0, (1 << p.index_width) - 1, 1 << p.index_width >> 1])
        if p.direction != "inverse":
            bins["every_index"] = int(len(np.unique(words % (1 << p.index_width))) == 1 << p.index_width)
            bins["last_index"] = int((words == p.n_columns - 1).sum())
            inputs["index"] = self._pack((words, max(1, p.index_width)))
            outputs["location"] = self._slots(*bank_map.locate(words))
            causes["location"] = "index", list(range(len(words)))
        if p.direction != "forward":
            # The slots of the last column and of the index space's last index, which is empty where there is a gap.
            low = max(1, p.address_width)
            bank, address = bank_map.locate([p.n_columns - 1, (1 << p.index_width) - 1])
            words = self._words(count, [*(bank << low | address), 0, (1 << self._slot_width) - 1])
            bank, address = words >> low, words & ((1 << low) - 1)
            index, in_range = bank_map.column(bank, address)
            inputs["slot"] = self._slots(bank, address)
            outputs["column"] = self._pack((index, max(1, p.index_width)), (in_range, 1))
            causes["column"] = "slot", list(range(len(words)))
            bins["every_slot"] = int(len(np.unique(words)) == 1 << self._slot_width)
            bins["in_range"], bins["empty_slot"] = int(in_range.sum()), int((~in_range).sum())
        self._swept += len(words) * p.n_indices // 2
        self._batches += 1
        # The inverse of a run-time multiplier is found first, while slots wait.
        full_rate = tuple(name for name in inputs if name == "index" or not p.is_runtime)
        return Batch(inputs, outputs, bins, statics, full_rate, causes)

    def _multiplier(self):
        """Odd, even, large and then random multipliers; two batches each, as every other one may be cut short."""
        width = max(1, self.parameters.index_width)
        choices = (1, 0, (1 << width) - 1)
        number = self._batches // 2
        return choices[number] if number < len(choices) else int(self.rng.integers(0, 1 << width))

    @property
    def _slot_width(self):
        return max(1, self.parameters.bank_width) + max(1, self.parameters.address_width)

    def _words(self, count, corners):
        """``[beats, n_indices]`` words of all bits of a slot, of which an index uses the lower ones."""
        n_indices, space = self.parameters.n_indices, 1 << self._slot_width
        n_words = n_indices * max(count, -(-len(corners) // n_indices))
        swept = np.arange(self._swept, self._swept + min(space, n_words // 2)) % space
        words = np.concatenate([corners, swept, self.rng.integers(0, space, n_words)])[:n_words]
        return words.astype(np.int64).reshape(-1, n_indices)

    def _slots(self, bank, address):
        return self._pack((bank, max(1, self.parameters.bank_width)), (address, max(1, self.parameters.address_width)))

    def _pack(self, *fields):
        """One integer a beat from ``(array [beats, n_indices], bits)`` pairs, the first in the lowest bits."""
        n = self.parameters.n_indices
        rows = zip(*(pack(array, width) for array, width in fields), strict=True)
        return [join(*((value, width * n) for value, (_, width) in zip(row, fields, strict=False))) for row in rows]
