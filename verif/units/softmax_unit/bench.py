"""Stimulus and expectation for the softmax unit: rows of all lengths and kinds, one scale and threshold a batch."""

import math

import numpy as np

from golden.arith.floats import from_float64, to_float64
from golden.spec.formats import FP16
from golden.units.softmax_unit import decode_scale, encode_scale, retained_mass, softmax
from verif.bench.batch import Batch, Bench
from verif.bench.packing import join, pack

INFINITY, NEGATIVE_INFINITY, NAN = FP16.infinity, FP16.infinity | FP16.sign_bit, FP16.nan
LARGEST = 0x7BFF
THETAS = (from_float64(FP16, 2.0**-9), 0xBC00, NAN, 0x8000, 0, 0x3C00, 0x4000, INFINITY, 1)
KINDS = ("spread", "near", "flat", "ties", "far", "edge", "gap", "huge", "tiny", "any", "finite")


class SoftmaxUnitBench(Bench):
    """Every batch has rows of the same length, of one beat, or of any length; the first ones are corner cases."""

    unit = "softmax_unit"

    def __init__(self, block, seed):
        super().__init__(block, seed)
        self._turn = 0

    @property
    def required_bins(self):
        bins = {
            "empty_row",
            "one_element",
            "underflow_to_zero",
            "subnormal_result",
            "nan",
            "inf",
            "minus_inf_only",
            "full_row",
            "retained_none",
            "retained_all",
            "factor",
            "equals_theta",
            "negative_theta",
            "nan_theta",
        }
        p = self.parameters
        several = {"ties_of_maximum", "all_equal", "infinite_ties"}
        # A result that is small, but not 0, needs something besides it.
        return frozenset(bins | several if p.n_banks * p.n_slots > 1 else bins - {"underflow_to_zero"})

    @property
    def longest_silence(self):
        return self.parameters.n_slots

    def batch(self, count):
        p, rng = self.parameters, self.rng
        scale = encode_scale(float(rng.choice([1, 1 / math.sqrt(32), 1 / math.sqrt(rng.integers(1, 2000)), 0.001, 8])))
        rows = self._corners(scale) + [self._row(scale) for _ in range(self._n_rows(count))]
        lengths = [len(row) // p.n_banks for row, _ in rows]
        scores, enable = (np.zeros((len(rows), p.n_slots * p.n_banks), dtype) for dtype in (np.uint16, bool))
        for index, (row, elements) in enumerate(rows):
            scores[index, : len(row)], enable[index, : len(row)] = row, elements
        factor = rng.integers(0, 1 << 16, len(rows))
        kind = rng.random(len(rows))
        factor[kind < 0.4] = FP16.one
        subnormal = kind > 0.8
        factor[subnormal] = rng.integers(1, 1 << rng.integers(1, 11, subnormal.sum()))
        factor[:2] = 0x03A5, 0xC000
        theta = self._theta(softmax(scores, enable, scale, 0, factor).values)
        self._turn += 1
        found = softmax(scores, enable, scale, theta, factor)
        return Batch(
            {"score": pack_scores(p, scores, enable, lengths, factor, rng)},
            {"probability": pack_probabilities(p, found, enable, lengths)},
            bins=count_bins(scores, enable, lengths, found, factor, theta, p),
            statics={"scale": scale, "theta": theta},
            causes={},
        )

    def _theta(self, values):
        """A threshold of a special kind, or one of the probabilities, which is then retained, or any."""
        if self._turn % 2:
            return int(THETAS[self._turn // 2 % len(THETAS)])
        finite = values[(values > 0) & (values < INFINITY)]
        return int(self.rng.choice(finite) if len(finite) else from_float64(FP16, self.rng.random()))

    def _n_rows(self, count):
        """Besides the corner cases; short ones are more, but not as many as there is time for."""
        return 8 + count // (self.parameters.n_slots, 2, 1 + self.parameters.n_slots // 2)[self._turn % 3]

    def _length(self):
        p = self.parameters
        return (p.n_slots, 1, int(self.rng.integers(1, p.n_slots + 1)))[self._turn % 3]

    def _corners(self, scale):
        """Rows ``(words, enable)``."""
        p, rng = self.parameters, self.rng
        n = p.n_banks * p.n_slots
        ones = np.ones(n, bool)
        single = np.zeros(n, bool)
        single[rng.integers(n)] = True
        few = np.arange(n) < max(2, n // 2)
        ties = self._words("spread", n, scale)
        ties[rng.permutation(n)[: max(2, n // 3)]] = 0x5000
        with_nan, with_inf = self._words("spread", n, scale), self._words("any", n, scale)
        with_nan[rng.integers(n)] = NAN | int(rng.integers(2)) << 15 | int(rng.integers(512))
        with_inf = np.where(with_inf & 0x7C00 == 0x7C00, 0x1234, with_inf)
        with_inf[rng.permutation(n)[:2]] = INFINITY
        # From the largest probability to the smallest one and below, in steps of half an octave.
        stairs = from_float64(FP16, -np.arange(n) % 64 / decode_scale(scale) / 2)
        corners = [
            (self._words("any", n, scale), ~ones),
            (self._words("near", n, scale), single),
            (ties, ones),
            (np.full(n, ties[0]), few),
            (stairs, ones),
            (with_nan, ones),
            (with_inf, ones),
            (np.full(n, NEGATIVE_INFINITY), ones),
            (np.where(single, LARGEST, LARGEST | FP16.sign_bit), ones),
        ]
        corners = [(words.astype(np.uint16), enable) for words, enable in corners]
        if p.n_slots > 1:
            corners.insert(1, (corners[0][0][: p.n_banks], ones[: p.n_banks]))
        return [corners[place] for place in rng.permutation(len(corners))] if self._turn else corners

    def _row(self, scale):
        n = self._length() * self.parameters.n_banks
        density = self.rng.choice([0.1, 0.5, 0.9, 1])
        return self._words(str(self.rng.choice(KINDS)), n, scale), self.rng.random(n) < density

    def _words(self, kind, n, scale):
        rng, unit = self.rng, 1 / decode_scale(scale)
        if kind == "any":
            return rng.integers(0, 1 << 16, n).astype(np.uint16)
        if kind == "finite":
            return (rng.integers(0, INFINITY, n) | rng.integers(0, 2, n) << 15).astype(np.uint16)
        if kind == "ties":
            return rng.choice(rng.integers(0, 0x7C00, 3), n).astype(np.uint16)
        base = 2.0 ** rng.uniform(5, 16)
        values = {
            "spread": rng.normal(0, 5 * unit, n),
            "near": rng.normal(0, unit, n) + rng.normal(0, 100 * unit),
            "flat": rng.normal(0, 0.01 * unit, n),
            "far": rng.normal(0, 40 * unit, n),
            "edge": -rng.uniform(12, 27, n) * unit * (np.arange(n) != rng.integers(n)),  # subnormal results, down to 0
            "gap": base - 2.0 ** rng.integers(-6, 16, n) * (np.arange(n) != rng.integers(n)),  # differences of one bit
            "huge": rng.choice([-65504.0, 65504, 65472, 60000], n),
            "tiny": rng.integers(-3000, 3000, n) * 2.0**-24,
        }[kind]
        return from_float64(FP16, np.clip(values, -65504, 65504))


def count_bins(scores, enable, lengths, found, factor, theta, p):
    """How many rows of a batch are of which kind."""
    n_enabled = enable.sum(axis=1)
    inside = np.arange(enable.shape[1]) < np.array(lengths)[:, None] * p.n_banks
    words = np.where(enable, scores, NEGATIVE_INFINITY)
    special = enable & (scores & INFINITY == INFINITY)
    finite = ~special.any(axis=1) & (n_enabled > 0)
    numbers = to_float64(FP16, words)
    largest = np.where(finite, np.where(finite[:, None], numbers, 0).max(axis=1), np.inf)
    n_largest = (numbers == largest[:, None]).sum(axis=1)
    is_nan = (special & (scores & 0x3FF != 0)).any(axis=1)
    n_infinite = (enable & (scores == INFINITY)).sum(axis=1)
    kinds = {
        "empty_row": n_enabled == 0,
        "one_element": n_enabled == 1,
        "ties_of_maximum": finite & (n_largest > 1) & (n_largest < n_enabled),
        "all_equal": finite & (n_enabled > 1) & (n_largest == n_enabled),
        "underflow_to_zero": finite & (enable & (found.values == 0) & (factor[:, None] & 0x3FFF != 0)).any(axis=1),
        "subnormal_result": ((found.values > 0) & (found.values < 0x400)).any(axis=1),
        "nan": is_nan,
        "inf": ~is_nan & (n_infinite > 0),
        "infinite_ties": ~is_nan & (n_infinite > 1),
        "minus_inf_only": (n_enabled > 0) & (words == NEGATIVE_INFINITY).all(axis=1),
        "full_row": inside.all(axis=1) & (enable == inside).all(axis=1),
        "retained_none": finite & ~found.keep.any(axis=1),
        "retained_all": finite & (found.keep == enable).all(axis=1),
        "equals_theta": finite & (enable & (found.values == theta) & (found.values > 0)).any(axis=1),
        "negative_theta": finite & (0x8000 < theta <= NEGATIVE_INFINITY),
        "nan_theta": finite & (theta & 0x7FFF > INFINITY),
        "factor": finite & (factor & 0x3FFF != FP16.one),
    }
    return {name: int(rows.sum()) for name, rows in kinds.items()}


def pack_scores(p, scores, enable, lengths, factor, rng):
    """Beats of rows ``[rows, n_slots * n_banks]``, of which the first ``lengths`` beats are sent."""
    beats = []
    for row, elements, length, row_factor in zip(scores, enable, lengths, factor, strict=False):
        words = pack(row.reshape(-1, p.n_banks)[:length], FP16.width)
        bits = pack(elements.reshape(-1, p.n_banks)[:length].astype(np.int64), 1)
        for beat, (word, bit) in enumerate(zip(words, bits, strict=False), start=1):
            last = beat == length
            given = row_factor if last else rng.integers(1 << 16)
            beats.append(join((word, FP16.width * p.n_banks), (bit, p.n_banks), (last, 1), (given, 16)))
    return beats


def pack_probabilities(p, found, enable, lengths):
    """Beats of the results of such rows, with the mass up to each beat."""
    beats = []
    for values, keep, elements, length in zip(found.values, found.keep, enable, lengths, strict=False):
        values, keep, elements = (array.reshape(-1, p.n_banks)[:length] for array in (values, keep, elements))
        so_far = np.arange(length)[:, None] >= np.arange(length)
        masses = retained_mass(values.reshape(1, -1), (so_far[:, :, None] & keep).reshape(length, -1))
        words = pack(values, FP16.width)
        keeps, enables = pack(keep.astype(np.int64), 1), pack(elements.astype(np.int64), 1)
        for beat in range(length):
            beats.append(
                join(
                    (words[beat], FP16.width * p.n_banks),
                    (keeps[beat], p.n_banks),
                    (enables[beat], p.n_banks),
                    (beat == length - 1, 1),
                    (masses[beat], FP16.width),
                )
            )
    return beats
