"""Stimulus and expectation for the SpMM array: masks of all kinds, values anywhere in the banks, writes at run time."""

import numpy as np

from golden.spec.formats import float_format
from golden.units.spmm_array import accumulator_of, schedule, sparse_product, values_in_banks
from verif.bench.batch import Batch, Bench
from verif.bench.endpoints import PATTERNS
from verif.bench.packing import join, pack
from verif.units.spmm_array.banks import ProbabilityBanks

MAX_ROWS = 40


class SpmmArrayBench(Bench):
    """Each batch writes the values that its rows use, in any order, and then sends rows; all have the same passes.

    While the rows run, words that they do not use are written, in either form. Probabilities begin anywhere in the
    ring; their reads are refused by a pattern of their own.
    """

    unit = "spmm_array"
    clocks_a_beat = 8

    def __init__(self, block, seed):
        super().__init__(block, seed)
        self._turn = 0
        self._n_slots = min(self.parameters.n_slots, self.parameters.bank_depth)  # for more there is no room
        self._banks = None

    @property
    def required_bins(self):
        p = self.parameters
        bins = {"empty_row", "empty_subrow", "full_row", "single_bit", "last_slot", "last_word", "one_pass"}
        bins |= {"lanes_before_rows", "ring_wraps", "special", "subnormal", "cancels", "reads_refused"}
        if p.bank_depth > self._n_slots:
            bins |= {"writes_beside_rows"}
        if self._most_passes > 1:
            bins |= {"several_passes"}
        # An engine with many bits, beside others with few, holds these up.
        if self._n_slots > p.queue_depth + 8:
            bins |= {"waits_for_engines"}
        return frozenset(bins)

    @property
    def longest_silence(self):
        """A pass over the fullest row may be all that goes on, and its reads may be refused."""
        return 26 * self.parameters.n_slots

    @property
    def _most_passes(self):
        """Passes with values at different words."""
        p = self.parameters
        return max(1, min(p.max_passes, 6, 1 + (p.bank_depth - self._n_slots)))

    def endpoints(self, dut, rng):
        self._banks = ProbabilityBanks(dut, self.parameters, rng)
        return [self._banks]

    def idle_statics(self):
        return super().idle_statics() | {"passes": 1}

    def batch(self, count):
        p = self.parameters
        bitmap = self._bitmap(count)
        ones = bitmap.sum(axis=-1)
        n_passes = (self._most_passes, 1, int(self.rng.integers(1, self._most_passes + 1)))[self._turn % 3]
        refusals = PATTERNS[self._turn // 3 % 3]
        self._turn += 1
        base, stride = self._layout(n_passes)
        used = values_in_banks(np.arange(p.bank_depth)[None, :, None], base, stride, self._n_slots, n_passes)[0, ..., 0]
        is_read = np.zeros((p.n_engines, p.bank_depth), bool)
        engine, slot = np.nonzero(bitmap.any(axis=0))
        is_read[engine[:, None], used[slot]] = True
        banks = np.zeros((p.n_engines, p.bank_depth, p.n_lanes), np.int64)
        kind = int(self.rng.integers(3))
        banks[is_read] = self._words((int(is_read.sum()), p.n_lanes), kind)
        coefficients, ring, first, wraps = self._probabilities(bitmap, kind)
        values = values_in_banks(banks, base, stride, self._n_slots, n_passes)
        if self._n_slots < p.n_slots:
            values = np.pad(values, ((0, 0), (0, p.n_slots - self._n_slots), (0, 0), (0, 0)))
        single, rounded = sparse_product(bitmap, coefficients, values, accumulator_of(p))
        self._banks.load(ring, refusals)

        word, lane, beside = self._writes(banks, is_read, count)
        fmt = p.float_format
        magnitude = rounded & ((1 << (fmt.width - 1)) - 1)
        bins = {
            "empty_row": int((ones == 0).all(axis=1).sum()),
            "empty_subrow": int((ones == 0).sum()),
            "full_row": int((ones == self._n_slots).all(axis=1).sum()),
            "single_bit": int((ones.sum(axis=1) == 1).sum()),
            "last_slot": int(bitmap[..., self._n_slots - 1].sum()),
            "last_word": int(is_read[:, -1].sum()),
            "one_pass": n_passes == 1,
            "several_passes": n_passes > 1,
            "lanes_before_rows": len(lane),
            "writes_beside_rows": beside,
            "ring_wraps": wraps,
            "reads_refused": int(refusals != "none"),
            "special": int((magnitude >= fmt.infinity).sum()),
            "subnormal": int(((magnitude > 0) & (magnitude < 1 << fmt.fraction_width)).sum()),
            "cancels": int((magnitude == 0)[ones.sum(axis=1) > 1].sum()),
            "waits_for_engines": _waits(p, ones, n_passes),
        }
        return Batch(
            {"write": word, "write_lane": lane, "bitmap": pack_bitmaps(bitmap)},
            {"result": pack_results(p, single, rounded)},
            bins,
            {"first_probability": first, "passes": n_passes, "value_base": base, "value_stride": stride},
            full_rate=(),
            causes={},
            after={"bitmap": self._after},
        )

    def _bitmap(self, count):
        """``[rows, engines, slots]``: corner cases, then rows of any density, for ``count`` terms or so."""
        p = self.parameters
        shape = (p.n_engines, p.n_slots)
        single, one_engine, others, last_slot = (np.zeros(shape, bool) for _ in range(4))
        single[self.rng.integers(p.n_engines), self.rng.integers(self._n_slots)] = True
        one_engine[slow := self.rng.integers(p.n_engines)] = True
        others[:, 0] = np.arange(p.n_engines) != slow
        last_slot[:, self._n_slots - 1] = True
        # One engine is busy while the others, which have little to do, run ahead of it.
        corners = [one_engine, *[others] * (p.queue_depth + 2)]
        corners += [np.ones(shape, bool), np.zeros(shape, bool), single, last_slot, np.ones(shape, bool)]
        if self._turn % 2:
            corners = [corners[place] for place in self.rng.permutation(len(corners))]
        n_rows = min(MAX_ROWS, len(corners) + 2 + 2 * count // p.n_slots)
        density = self.rng.choice([0.02, 0.1, 0.3, 0.5, 0.9], (n_rows, 1, 1)) * self.rng.random((1, p.n_engines, 1))
        drawn = self.rng.random((n_rows, *shape)) < density
        bitmap = np.concatenate([corners, drawn[len(corners) :]])
        bitmap[..., self._n_slots :] = False
        return bitmap

    def _words(self, shape, kind):
        """Words of the format: like real data, of any bits, or few values so that sums cancel."""
        return draw_words(self.rng, self.parameters.format, shape, kind)

    def _probabilities(self, bitmap, kind):
        """``(coefficients, ring, first, wraps)``: each engine's words one after the other from ``first`` on."""
        p = self.parameters
        needed = int(bitmap.sum(axis=(0, 2)).max())
        first = int(self.rng.choice([0, p.probability_depth - 1, self.rng.integers(p.probability_depth)]))
        # A word of the ring is used again by later rows where there are more terms than words.
        ring = self._words((p.n_engines, p.probability_depth), kind)
        coefficients = np.zeros(bitmap.shape, np.int64)
        for engine in range(p.n_engines):
            row, slot = np.nonzero(bitmap[:, engine])
            coefficients[row, engine, slot] = ring[engine, (first + np.arange(len(row))) % p.probability_depth]
        return coefficients, ring.tolist(), first, int(first + needed > p.probability_depth)

    def _layout(self, n_passes):
        """``(base, stride)``: anywhere, from the banks' beginning, or up to their end; passes with or without a gap."""
        p = self.parameters
        room = p.bank_depth - self._n_slots
        if n_passes == 1:
            stride, rest = int(self.rng.integers(1 << p.value_address_width)), room
        else:
            most = room // (n_passes - 1)
            stride = (min(self._n_slots, most), most, int(self.rng.integers(most + 1)))[int(self.rng.integers(3))]
            rest = room - (n_passes - 1) * stride
        return (0, rest, int(self.rng.integers(rest + 1)))[int(self.rng.integers(3))], stride

    def _writes(self, banks, is_read, count):
        """``(words, lanes, beside)``: transfers of either form that leave the banks as given in all words in use.

        One form is complete before the rows begin; the other one goes on beside them, in words that no row uses.
        """
        p = self.parameters
        free = np.flatnonzero(~is_read.any(axis=0))
        noise = free[self.rng.integers(len(free), size=count)] if len(free) else free
        addresses = self.rng.permutation(np.flatnonzero(is_read.any(axis=0)))
        by_lane = addresses[: min(len(addresses), 1 + int(self.rng.integers(1 + count // p.n_lanes)))]
        whole = is_read.copy()
        words_first = bool(self.rng.integers(2))
        if words_first:
            # All words, and after them what goes on by lanes beside the rows.
            engine, address = np.nonzero(whole)
            lane, at = self.rng.integers(p.n_lanes, size=len(noise)), noise
            self._after = ("write",)
        else:
            whole[:, by_lane] = False
            engine, address = np.nonzero(whole)
            lane, at = np.tile(np.arange(p.n_lanes), len(by_lane)), np.repeat(by_lane, p.n_lanes)
            self._after = ("write", "write_lane")
        words = self._shuffled(pack_words(p, banks, engine, address))
        lanes = self._shuffled(pack_lanes(p, banks, at, lane))
        return words, lanes, len(noise) if words_first else 0

    def _shuffled(self, beats):
        return [beats[place] for place in self.rng.permutation(len(beats))]


def draw_words(rng, format, shape, kind):
    """Words of a format: 0 like real data with some corner cases, 1 of any bits, 2 few values so that sums cancel."""
    fmt = float_format(format)
    any_bits = rng.integers(1 << fmt.width, size=shape)
    corners = np.array([0, 1, fmt.infinity, fmt.infinity - 1, fmt.nan, (1 << fmt.fraction_width) - 1], np.int64)
    corners = np.concatenate([corners, corners | 1 << (fmt.width - 1)])
    if kind == 1:
        # Without infinities and NaN in most words, or nothing else would be left of the sums.
        finite = any_bits % (fmt.infinity) | (any_bits & 1 << (fmt.width - 1))
        return np.where(rng.random(shape) < 0.02, rng.choice(corners, shape), finite)
    if kind == 2:
        one = fmt.bias << fmt.fraction_width
        few = np.array([one, one | 1 << (fmt.width - 1), one + 1, one - 1, 1, 0])
        return rng.choice(few, shape)
    near = rng.integers(max(1, fmt.bias - 8), fmt.bias + 4, size=shape) << fmt.fraction_width
    near |= any_bits & ((1 << fmt.fraction_width) - 1) | (any_bits & 1 << (fmt.width - 1))
    return np.where(rng.random(shape) < 0.01, rng.choice(corners, shape), near)


def pack_words(p, banks, engine, address):
    """Transfers that write these words of the banks ``[engines, words, lanes]``."""
    width = p.float_format.width
    return [
        join((word, width * p.n_lanes), (at, p.value_address_width), (index, _log2(p.n_engines)))
        for word, at, index in zip(pack(banks[engine, address], width), address, engine, strict=True)
    ]


def pack_lanes(p, banks, address, lane):
    """Transfers that write these lanes of these words in all banks ``[engines, words, lanes]``."""
    width = p.float_format.width
    return [
        join((elements, width * p.n_engines), (at, p.value_address_width), (index, _log2(p.n_lanes)))
        for elements, at, index in zip(pack(banks[:, address, lane].T, width), address, lane, strict=True)
    ]


def pack_bitmaps(bitmap):
    """Transfers of the bitmaps ``[rows, engines, slots]``."""
    return pack(bitmap.reshape(len(bitmap), -1).astype(np.int64), 1)


def pack_results(p, single, rounded):
    """Transfers of the results ``[rows, passes, lanes]``."""
    width = p.float_format.width
    n_rows, n_passes, n_lanes = rounded.shape
    words = pack(rounded.reshape(-1, n_lanes), width)
    wide = pack(single.reshape(-1, n_lanes), 32)
    fields = [
        [(word, width * n_lanes), *([(each, 32 * n_lanes)] if p.wide else [])]
        for word, each in zip(words, wide, strict=True)
    ]
    return [join(*each, (number % n_passes == n_passes - 1, 1)) for number, each in enumerate(fields)]


def _waits(p, ones, n_passes):
    """Passes whose last term waited for room though the engine itself was ready."""
    plan = schedule(ones, n_passes, p)
    gaps = np.diff(plan.issue, axis=0) - np.maximum(np.repeat(ones, n_passes, axis=0), 1)[1:]
    return int((gaps > 0).any(axis=1).sum())


def _log2(count):
    return (count - 1).bit_length()
