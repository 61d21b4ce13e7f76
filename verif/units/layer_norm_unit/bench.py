"""Stimulus and expectation for the layer-norm unit: rows of all lengths and kinds; one epsilon a batch."""

import numpy as np

from golden.arith.floats import from_float64, is_nan
from golden.spec.formats import FP16
from golden.units.layer_norm_unit import encode_epsilon, layer_norm
from verif.bench.batch import Batch, Bench
from verif.bench.packing import join, pack
from verif.units.layer_norm_unit.rows import load_rows

LARGEST, INFINITY, ONE = 0x7BFF, FP16.infinity, 0x3C00
EPSILONS = (1e-5, 1e-6, 1e-12, 4e-15, 1, 65000)
KINDS = ("spread", "offset", "fine", "outlier", "balanced", "steps", "close", "subnormal", "huge", "any")


class LayerNormUnitBench(Bench):
    """Every batch has rows of the same length, of one beat, or of any length; the first ones are corner cases."""

    unit = "layer_norm_unit"

    def __init__(self, block, seed):
        super().__init__(block, seed)
        self._turn = 0
        bins = {
            "empty_row",
            "one_element",
            "constant",
            "nan",
            "inf",
            "full_row",
            "negative_zero",
            "subnormal_elements",
            "largest_elements",
            "epsilon_dominates",
            "zero_gamma",
        }
        several = {"outlier", "opposite_extremes", "neighbours", "subnormal_result", "partly_enabled"}
        self.required_bins = frozenset(bins | several if self._n > 1 else bins)

    @property
    def _n(self):
        return self.parameters.n_lanes * self.parameters.n_slots

    @property
    def longest_silence(self):
        return self.parameters.n_slots

    def batch(self, count):
        p, rng = self.parameters, self.rng
        epsilon = encode_epsilon(float(EPSILONS[self._turn % len(EPSILONS)]) * rng.uniform(1, 1.5) % 65500)
        rows = self._corners() + [self._row() for _ in range(self._n_rows(count))]
        if self._turn % 3 == 1:
            epsilon, rows = self._sensitive(rows, count)
        lengths = [len(row) // p.n_lanes for row, _ in rows]
        elements, enable = (np.zeros((len(rows), self._n), dtype) for dtype in (np.uint16, bool))
        for index, (row, chosen) in enumerate(rows):
            elements[index, : len(row)], enable[index, : len(row)] = row, chosen
        gamma, beta = self._coefficients()
        self._turn += 1
        found = layer_norm(elements, enable, gamma, beta, epsilon)
        return Batch(
            {"coefficient": pack_coefficients(p, gamma, beta, rng), "element": pack_rows(p, elements, enable, lengths)},
            {"normalised": pack_rows(p, found, enable, lengths)},
            bins=count_bins(elements, enable, lengths, gamma, epsilon, found, p),
            statics={"epsilon": epsilon},
            causes={},
            after={"element": ("coefficient",)},
        )

    def _coefficients(self):
        """Near 1 and 0 as in a network, or any numbers; gamma has a zero in one of three batches."""
        rng, n = self.rng, self._n
        if self._turn % 3 == 0:
            gamma, beta = rng.normal(1, 0.3, n), rng.normal(0, 0.2, n)
            return from_float64(FP16, gamma), from_float64(FP16, beta)
        if self._turn % 3 == 1:
            return np.full(n, ONE, np.uint16), np.zeros(n, np.uint16)
        gamma, beta = rng.integers(0, 1 << 16, (2, n)).astype(np.uint16)
        gamma[rng.integers(n)] = 0
        return gamma, beta

    def _sensitive(self, rows, count):
        """Some rows more that show errors of one unit, and the epsilon for which they do."""
        p, rng, known = self.parameters, self.rng, load_rows()
        epsilon = int(rng.choice(known["epsilon"]))
        usable = np.flatnonzero((known["epsilon"] == epsilon) & (known["enable"].sum(axis=1) <= self._n))
        for index in rng.permutation(usable)[: 10 + count // 2]:
            values = known["values"][index][known["enable"][index]]
            least = -(-len(values) // p.n_lanes)
            n = int(rng.integers(least, p.n_slots + 1) if rng.random() < 0.2 else least) * p.n_lanes
            places = rng.permutation(n)[: len(values)]
            if not epsilon:
                values = self._scaled(values)
            words = self._words("any", n)
            words[places] = values
            rows.append((words, np.isin(np.arange(n), places)))
        return epsilon, rows

    def _scaled(self, values):
        """Times a power of two, none of the numbers becoming subnormal."""
        fields = values >> FP16.fraction_width & FP16.max_exponent
        if (fields == 0).any():
            return values
        by = int(self.rng.integers(1 - int(fields.min()), FP16.max_exponent - int(fields.max())))
        return values.astype(int) + (by << FP16.fraction_width)

    def _n_rows(self, count):
        """Besides the corner cases; short ones are more, but not as many as there is time for."""
        return 8 + count // (self.parameters.n_slots, 2, 1 + self.parameters.n_slots // 2)[self._turn % 3]

    def _length(self):
        p = self.parameters
        return (p.n_slots, 1, int(self.rng.integers(1, p.n_slots + 1)))[self._turn % 3]

    def _corners(self):
        """Rows ``(words, enable)``."""
        p, rng, n = self.parameters, self.rng, self._n
        ones = np.ones(n, bool)
        single = np.arange(n) == rng.integers(n)
        sign = rng.integers(2) << 15
        base = self._words("spread", n)
        word = int(rng.integers(1, LARGEST)) | sign
        corners = [
            (self._words("any", n), ~ones),
            (base, single),
            (np.full(n, word), ones),
            (np.where(single, word ^ 1, word), ones),
            (np.where(single, INFINITY + int(rng.integers(1, 1024)), base) | sign, ones),
            (np.where(single, INFINITY | sign, base), ones),
            (np.where(single, INFINITY, base), ~single),
            (np.where(single, LARGEST, self._words("fine", n)), ones),
            (np.where(single, LARGEST, LARGEST | FP16.sign_bit), ones),
            (np.full(n, FP16.sign_bit), ones),
            (np.full(n, LARGEST | sign), ones),
            (self._words("subnormal", n), ones),
            (np.where(single, 1, 0), ones),
        ]
        corners = [(words.astype(np.uint16), chosen) for words, chosen in corners]
        if p.n_slots > 1:
            corners.insert(1, (corners[0][0][: p.n_lanes], ones[: p.n_lanes]))
        return [corners[place] for place in rng.permutation(len(corners))] if self._turn else corners

    def _row(self):
        n = self._length() * self.parameters.n_lanes
        density = self.rng.choice([0.2, 0.9, 1, 1])
        return self._words(str(self.rng.choice(KINDS)), n), self.rng.random(n) < density

    def _words(self, kind, n):
        rng = self.rng
        if kind == "any":
            return (rng.integers(0, INFINITY, n) | rng.integers(0, 2, n) << 15).astype(np.uint16)
        one = rng.integers(n)
        pair = np.isin(np.arange(n), [one, (one + 1) % n])
        values = {
            "spread": rng.normal(0, np.exp2(rng.uniform(-14, 10)), n),
            "offset": rng.normal(100, 1, n) * np.exp2(rng.uniform(-10, 5)),
            "fine": rng.normal(0, 2.0**-20, n),
            "outlier": np.where(np.arange(n) == rng.integers(n), 1000, rng.normal(0, 0.01, n)),
            # Two outliers, the mean is near 0, and the others become subnormal numbers of any fraction.
            "balanced": np.where(pair, 60000 * (2.0 * (np.arange(n) == one) - 1), rng.normal(0, 1, n)),
            "steps": rng.integers(0, 2, n) + np.exp2(rng.integers(-5, 11)),
            "subnormal": rng.integers(-1000, 1000, n) * 2.0**-24,
            # The range is a few bits only.
            "close": np.ldexp(
                rng.integers(1024, 2048 - (few := 1 << rng.integers(1, 9))) + rng.integers(0, few, n),
                rng.integers(-24, 5),
            ),
            "huge": rng.choice([-65504.0, 65504, 65472, 60000], n),
        }[kind]
        return from_float64(FP16, np.clip(values, -65504, 65504))


def count_bins(elements, enable, lengths, gamma, epsilon, found, p):
    """How many rows of a batch are of which kind."""
    n_enabled = enable.sum(axis=1)
    inside = np.arange(enable.shape[1]) < np.array(lengths)[:, None] * p.n_lanes
    magnitude = elements & 0x7FFF
    units = np.where(enable, np.where(elements >> 15, -1, 1) * magnitude.astype(int), 0)  # in order of the numbers
    lowest = np.where(enable, units, 1 << 15).min(axis=1)
    highest = np.where(enable, units, -(1 << 15)).max(axis=1)
    special = enable & (magnitude >= INFINITY)
    finite = ~special.any(axis=1) & (n_enabled > 0)
    result = found & 0x7FFF
    kinds = {
        "empty_row": n_enabled == 0,
        "one_element": finite & (n_enabled == 1),
        "constant": finite & (lowest == highest) & (lowest != 0),
        "nan": (special & is_nan(FP16, elements)).any(axis=1),
        "inf": (special & ~is_nan(FP16, elements)).any(axis=1),
        "full_row": inside.all(axis=1) & (enable == inside).all(axis=1),
        "partly_enabled": finite & (enable.sum(axis=1) < inside.sum(axis=1)),
        "negative_zero": (enable & (elements == FP16.sign_bit)).any(axis=1),
        "subnormal_elements": finite & (~enable | (magnitude < 0x400)).all(axis=1) & (units != 0).any(axis=1),
        "largest_elements": finite & (enable & (magnitude == LARGEST)).any(axis=1),
        "opposite_extremes": finite & (lowest == -LARGEST) & (highest == LARGEST),
        "neighbours": finite & (highest - lowest == 1),
        "outlier": finite & (highest == LARGEST) & ((magnitude < 0x1000) & enable).any(axis=1),
        "subnormal_result": finite & ((result > 0) & (result < 0x400) & enable & (gamma == ONE)).any(axis=1),
        "epsilon_dominates": finite & (highest < 0x1000) & (lowest > -0x1000) & (epsilon >> 12 > 48 - 17),
        "zero_gamma": finite & (enable & (gamma == 0)).any(axis=1),
    }
    return {name: int(rows.sum()) for name, rows in kinds.items()}


def pack_rows(p, values, enable, lengths):
    """Beats of rows ``[rows, n_slots * n_lanes]``, of which the first ``lengths`` beats are sent."""
    beats = []
    for row, chosen, length in zip(values, enable, lengths, strict=False):
        words = pack(row.reshape(-1, p.n_lanes)[:length], FP16.width)
        bits = pack(chosen.reshape(-1, p.n_lanes)[:length].astype(np.int64), 1)
        for beat, (word, bit) in enumerate(zip(words, bits, strict=False), start=1):
            beats.append(join((word, FP16.width * p.n_lanes), (bit, p.n_lanes), (beat == length, 1)))
    return beats


def pack_coefficients(p, gamma, beta, rng):
    """A beat for each slot, in any order."""
    width, slot_width = FP16.width * p.n_lanes, max(1, (p.n_slots - 1).bit_length())
    gammas, betas = (pack(words.reshape(-1, p.n_lanes), FP16.width) for words in (gamma, beta))
    return [
        join((gammas[slot], width), (betas[slot], width), (int(slot), slot_width))
        for slot in rng.permutation(p.n_slots)
    ]
