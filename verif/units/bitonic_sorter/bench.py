"""Stimulus and expectation for the sorter: ordered, reversed, equal and extreme keys, few distinct ones, any."""

import numpy as np

from golden.units.bitonic_sorter import sort
from verif.bench.batch import Batch, Bench
from verif.bench.packing import join, pack


class BitonicSorterBench(Bench):
    """The kinds of vectors take turns, also from one batch to the next: nine batches meet all of them."""

    unit = "bitonic_sorter"
    required_bins = frozenset({"ties", "already_sorted", "reversed", "all_equal", "extreme_keys"})

    def __init__(self, block, seed):
        super().__init__(block, seed)
        p = block.parameters
        self._lowest = -(1 << p.key_width - 1) if p.signed else 0
        self._highest = self._lowest + (1 << p.key_width) - 1
        self._dtype = np.int64 if p.signed else np.uint64
        self._turn = 0

    def batch(self, count):
        p = self.parameters
        keys = np.stack([self._vector() for _ in range(max(1, count))])
        payloads = self.rng.integers(0, 1 << p.payload_width, keys.shape, np.uint64, endpoint=False)
        sorted_keys, sorted_payloads = sort(keys, payloads, network=p.network, descending=p.descending, stable=p.stable)
        return Batch(
            inputs={"unsorted": self._pack(keys, payloads)},
            outputs={"sorted": self._pack(sorted_keys, sorted_payloads)},
            bins=self._bins(keys, sorted_keys),
        )

    def _vector(self):
        # An odd number, so that batches of any one length do not miss a kind by skipping every other batch.
        kinds = (self._reversed, self._ordered, self._equal, self._extreme, self._few, *[self._any] * 4)
        kind = kinds[self._turn % len(kinds)]
        self._turn += 1
        return kind()

    def _draw(self, choices=None):
        n = self.parameters.n
        if choices is not None:
            return self.rng.choice(choices, n)
        return self.rng.integers(self._lowest, self._highest, n, self._dtype, endpoint=True)

    def _any(self):
        return self._draw()

    def _ordered(self):
        keys = np.sort(self._draw())
        return keys[::-1] if self.parameters.descending else keys

    def _reversed(self):
        keys = self._ordered()[::-1].copy()
        # Not equal throughout, even where keys have one bit.
        keys[[0, -1]] = [self._highest, self._lowest]
        if self.parameters.descending:
            keys[[0, -1]] = keys[[-1, 0]]
        return keys

    def _equal(self):
        return np.repeat(self._draw()[:1], self.parameters.n)

    def _extreme(self):
        keys = self._draw(np.array([self._lowest, self._highest], self._dtype))
        keys[:2] = self.rng.permutation(np.array([self._lowest, self._highest], self._dtype))
        return self.rng.permutation(keys)

    def _few(self):
        return self._draw(self._draw()[:3])

    def _pack(self, keys, payloads):
        p = self.parameters
        fields = (pack(keys, p.key_width), p.n * p.key_width), (pack(payloads, p.payload_width), p.n * p.payload_width)
        (key_words, key_bits), (payload_words, payload_bits) = fields
        return [
            join((key, key_bits), (payload, payload_bits))
            for key, payload in zip(key_words, payload_words, strict=True)
        ]

    def _bins(self, keys, sorted_keys):
        distinct = keys.min(-1) != keys.max(-1)
        extremes = (keys.min(-1) == self._lowest) & (keys.max(-1) == self._highest)
        return {
            "ties": int((sorted_keys[:, 1:] == sorted_keys[:, :-1]).any(-1).sum()),
            "already_sorted": int((keys == sorted_keys).all(-1).sum()),
            "reversed": int(((keys == sorted_keys[:, ::-1]).all(-1) & distinct).sum()),
            "all_equal": int((~distinct).sum()),
            "extreme_keys": int(extremes.sum()),
        }
