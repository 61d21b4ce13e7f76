"""Stimulus and expectation for the dot-product array: masks of all kinds, each unit's scores from its own bank."""

import numpy as np

from golden.units.dot_product_array import keys_in_banks, sampled_scores, schedule
from hw.units.dot_product_unit.unit import DotProductUnit
from verif.bench.batch import Batch, Bench
from verif.bench.packing import join, pack
from verif.units.dot_product_unit.bench import DotProductUnitBench

MAX_ROWS = 40


class DotProductArrayBench(Bench):
    """Each batch writes the keys that its mask uses, in any order, and then sends rows; all have the same beats.

    Keys lie anywhere in the banks, also so that slots share words. Some words are written lane by lane: words of their
    own, while others are written whole, or lanes of words that were written whole before.
    """

    unit = "dot_product_array"

    def __init__(self, block, seed):
        super().__init__(block, seed)
        self._words = DotProductUnitBench(DotProductUnit(**self.parameters.dot_product_unit()), seed)
        self._turn = 0
        p = self.parameters
        rows = min(p.n_places, p.query_depth // p.query_words) if p.query_depth else 0
        self._ring = {"row_words": p.query_words, "max_rows": rows, "restart": 0} if rows else {}
        self._n_slots = min(self.parameters.n_slots, self.parameters.bank_depth)  # for more there is no room

    @property
    def required_bins(self):
        p = self.parameters
        bins = {"empty_row", "empty_subrow", "full_row", "single_bit", "last_slot", "max_beats", "one_beat"}
        bins |= {"lanes_at_once", "lanes_afterwards", "last_word"}
        # Where rows load more slowly than a full one is worked through, no unit meets the limit.
        if self._n_slots * p.max_beats > 2 + p.n_places * p.query_words:
            bins |= {"run_ahead_limit"}
        return frozenset(bins | ({"ragged_transfer"} if p.max_beats % p.query_width else set()))

    @property
    def longest_silence(self):
        """A long dot product may be all that goes on."""
        return 2 * self.parameters.max_beats

    def batch(self, count):
        p = self.parameters
        bitmap = self._bitmap(count)
        n_beats = (p.max_beats, 1, int(self.rng.integers(1, p.max_beats + 1)))[self._turn % 3]
        self._turn += 1
        n_rows = len(bitmap)
        query = self._vectors(n_rows, n_beats)
        base, stride = self._layout(n_beats)
        used = keys_in_banks(np.arange(p.bank_depth)[None, :, None], base, stride, self._n_slots, n_beats)[0, :, :, 0]
        banks = np.zeros((p.n_units, p.bank_depth, p.n_lanes), np.int64)
        unit, slot = np.nonzero(bitmap.any(axis=0))
        is_read = np.zeros(banks.shape[:2], bool)
        is_read[unit[:, None], used[slot]] = True
        banks[is_read] = self._vectors(int(is_read.sum()), 1)[:, 0]
        keys = keys_in_banks(banks, base, stride, self._n_slots, n_beats)
        scores = sampled_scores(bitmap, query, keys, format=p.format, align_width=p.align_width, max_terms=p.max_terms)
        plan = schedule(
            bitmap.sum(axis=-1), n_beats, p.run_ahead, query_beats=p.query_width, score_latency=1 + p.plan.latency
        )
        ones = bitmap.sum(axis=-1)
        bins = {
            "empty_row": int((ones == 0).all(axis=1).sum()),
            "empty_subrow": int((ones == 0).sum()),
            "full_row": int((ones == self._n_slots).all(axis=1).sum()),
            "single_bit": int((ones.sum(axis=1) == 1).sum()),
            "run_ahead_limit": int(plan.waits_for_rows.sum()),
            "last_slot": int(bitmap[..., self._n_slots - 1].sum()),
            "one_beat": n_beats == 1,
            "max_beats": n_beats == p.max_beats,
            "last_word": int(is_read[:, -1].sum()),
            "ragged_transfer": int(n_beats % p.query_width),
        }
        writes_at_once = bool(self.rng.integers(2))
        weight, weight_lane = self._writes(banks, is_read, writes_at_once, count)
        bins["lanes_at_once" if writes_at_once else "lanes_afterwards"] = len(weight_lane)
        before_rows = ("weight", "weight_lane")
        return Batch(
            {
                "weight": weight,
                "weight_lane": weight_lane,
                "query": pack_queries(p, query),
                "mask": pack_mask(p, bitmap),
            },
            {**{f"score_{index}": pack_scores(p, each) for index, each in enumerate(scores)}, "row_done": [0] * n_rows},
            bins,
            {"weight_base": base, "weight_stride": stride, **self._ring},
            full_rate=("weight",),
            causes={},
            after={"query": before_rows, "mask": before_rows, "weight_lane": () if writes_at_once else ("weight",)},
        )

    def _bitmap(self, count):
        """``[rows, units, slots]``: corner cases, then rows of any density, for ``count`` beats or so."""
        p = self.parameters
        shape = (p.n_units, p.n_slots)
        single, one_unit, others, last_slot = (np.zeros(shape, bool) for _ in range(4))
        single[self.rng.integers(p.n_units), self.rng.integers(self._n_slots)] = True
        one_unit[slow := self.rng.integers(p.n_units)] = True
        others[:, 0] = np.arange(p.n_units) != slow
        last_slot[:, self._n_slots - 1] = True
        # One unit is busy while the others, which have little to do, meet the limit.
        corners = [one_unit, *[others] * (p.run_ahead + 2)]
        corners += [np.ones(shape, bool), np.zeros(shape, bool), single, last_slot]
        if self._turn % 2:
            corners = [corners[place] for place in self.rng.permutation(len(corners))]
        n_rows = min(MAX_ROWS, len(corners) + 2 + 2 * count // (p.n_slots * p.max_beats))
        density = self.rng.choice([0.02, 0.1, 0.3, 0.5, 0.9], (n_rows, 1, 1)) * self.rng.random((1, p.n_units, 1))
        drawn = self.rng.random((n_rows, *shape)) < density
        bitmap = np.concatenate([corners, drawn[len(corners) :]])
        bitmap[..., self._n_slots :] = False
        return bitmap

    def _vectors(self, n_vectors, n_beats):
        """Words ``[vectors, beats, lanes]``, of the kinds that the dot-product unit is tested with."""
        operands = self._words.operands(max(1, n_vectors * n_beats))[int(self.rng.integers(2))]
        return operands[: n_vectors * n_beats].reshape(n_vectors, n_beats, -1)

    def _layout(self, n_beats):
        """``(base, stride)``: anywhere, from the banks' beginning, or up to their end; beats with or without a gap."""
        p = self.parameters
        room = p.bank_depth - self._n_slots
        if n_beats == 1:
            stride, rest = int(self.rng.integers(1 << p.address_width)), room
        else:
            most = room // (n_beats - 1)
            stride = (min(self._n_slots, most), most, int(self.rng.integers(most + 1)))[int(self.rng.integers(3))]
            rest = room - (n_beats - 1) * stride
        return (0, rest, int(self.rng.integers(rest + 1)))[int(self.rng.integers(3))], stride

    def _writes(self, banks, is_read, at_once, count):
        """Transfers of either form that leave the banks as given in all words that are read."""
        p = self.parameters
        addresses = self.rng.permutation(np.flatnonzero(is_read.any(axis=0)))
        by_lane = addresses[: min(len(addresses), 1 + int(self.rng.integers(1 + count // p.n_lanes)))]
        lanes = np.ones((len(by_lane), p.n_lanes), bool)
        whole, words = is_read.copy(), banks.copy()
        if at_once:
            whole[:, by_lane] = False
        else:
            lanes &= self.rng.random(lanes.shape) < 0.7
            words[:, by_lane] ^= lanes * self.rng.integers(1, 1 << 16, (p.n_units, *lanes.shape))
        unit, address = np.nonzero(whole)
        place, lane = np.nonzero(lanes)
        return (
            self._shuffled(pack_weights(p, words, unit, address)),
            self._shuffled(pack_weight_lanes(p, banks, by_lane[place], lane)),
        )

    def _shuffled(self, beats):
        return [beats[place] for place in self.rng.permutation(len(beats))]


def pack_weights(p, banks, unit, address):
    """Transfers that write these words of the banks ``[units, words, lanes]``."""
    return [
        join((word, 16 * p.n_lanes), (at, p.address_width), (index, _log2(p.n_units)))
        for word, at, index in zip(pack(banks[unit, address], 16), address, unit, strict=False)
    ]


def pack_weight_lanes(p, banks, address, lane):
    """Transfers that write these lanes of these words in all banks ``[units, words, lanes]``."""
    return [
        join((elements, 16 * p.n_units), (at, p.address_width), (index, _log2(p.n_lanes)))
        for elements, at, index in zip(pack(banks[:, address, lane].T, 16), address, lane, strict=False)
    ]


def pack_queries(p, query):
    """Transfers of the rows ``[rows, beats, lanes]``, query_beats beats each."""
    n_rows, n_beats, _ = query.shape
    n_transfers = -(-n_beats // p.query_width)
    padded = np.zeros((n_rows, n_transfers * p.query_width, p.n_lanes), np.int64)
    padded[:, :n_beats] = query
    last = np.zeros(padded.shape[:2], np.int64)
    last[:, n_beats - 1] = 1
    words = pack(padded.reshape(n_rows * n_transfers, -1), 16)
    ends = pack(last.reshape(n_rows * n_transfers, -1), 1)
    return [
        join((word, p.vector_width * p.query_width), (end, p.query_width))
        for word, end in zip(words, ends, strict=False)
    ]


def pack_mask(p, bitmap):
    """Transfers of the bitmaps ``[rows, units, slots]``."""
    return pack(bitmap.reshape(len(bitmap), -1).astype(np.int64), 1)


def pack_scores(p, scores):
    """Beats of one unit's :class:`golden.units.dot_product_array.UnitScores`."""
    return [
        join((wide if p.wide_score else 0, 32 * p.wide_score), (narrow, 16), (slot, _log2(p.n_slots)), (last, 1))
        for wide, narrow, slot, last in zip(scores.wide, scores.narrow, scores.slot, scores.last_of_row, strict=False)
    ]


def _log2(count):
    return (count - 1).bit_length()
