"""Stimulus and expectation for the dot-product unit: sums that cancel, overflow, underflow or are NaN."""

import numpy as np

from golden.arith import floats
from golden.spec.formats import FORMATS
from golden.units.dot_product_unit import dot_product_stream
from verif.bench.batch import Batch, Bench
from verif.bench.packing import join, pack

SHORTEST = 24
"""Beats a batch at least, so that every kind has its turn in a run."""


class DotProductUnitBench(Bench):
    """The kinds of dot products take turns; about one in eight is first begun in vain and then begun again.

    Every batch ends with a ``last``, and none relies on its first beat being a ``first``.
    """

    unit = "dot_product_unit"

    def __init__(self, block, seed):
        super().__init__(block, seed)
        p = block.parameters
        self._format = FORMATS.get(p.format)
        self._width = self._format.width if self._format else 8
        self._kinds = INTEGER_KINDS if self._format is None else FLOAT_KINDS
        self._turn = 0
        self._was_reset = False

    @property
    def required_bins(self):
        bins = {"zero_sum", "cancellation", "length_one", "multi_beat", "first_mid"}
        return frozenset(bins | ({"extreme"} if self._format is None else {"nan", "inf", "subnormal", "overflow"}))

    def forget(self):
        """Reset ends a sum that is open: the first dot product after it need not say first."""
        self._was_reset = True

    def batch(self, count):
        p = self.parameters
        queries, keys, first, last = [], [], [], []
        bins = dict.fromkeys(self.required_bins, 0)
        while len(first) < max(count, SHORTEST):
            query, key = self._dot_product(longest=count // 2)
            n_beats = len(query)
            if first and not self._turn % 8:
                # A sum that is never finished; the next dot product says first.
                cut = int(self.rng.integers(1, n_beats + 1))
                queries.append(query[:cut])
                keys.append(key[:cut])
                first += [False] * cut
                last += [False] * cut
                begins, bins["first_mid"] = True, bins["first_mid"] + 1
            else:
                begins = not self._was_reset and self.rng.random() < 0.5
            self._was_reset = False
            queries.append(query)
            keys.append(key)
            first += [begins] + [False] * (n_beats - 1)
            last += [False] * (n_beats - 1) + [True]
            self._count(bins, query, key)
        query, key = np.concatenate(queries), np.concatenate(keys)
        scores = dot_product_stream(
            query, key, first, last, format=p.format, align_width=p.align_width, max_terms=p.max_terms
        )
        operands = [
            join((left, self._width * p.n_lanes), (right, self._width * p.n_lanes), (begins, 1), (ends, 1))
            for left, right, begins, ends in zip(
                pack(query, self._width), pack(key, self._width), first, last, strict=False
            )
        ]
        narrow = [0] * len(scores.wide) if scores.narrow is None else scores.narrow
        wide = scores.wide if p.wide_score else [0] * len(narrow)
        wide_width = 32 * p.wide_score
        expected = [join((score, wide_width), (word, 16)) for score, word in zip(wide, narrow, strict=True)]
        causes = {"score": ("operands", np.flatnonzero(last).tolist())}
        return Batch({"operands": operands}, {"score": expected}, bins, causes=causes)

    def operands(self, n_beats):
        """Query and key words [n_beats, lanes] of all kinds in turn."""
        parts = [self._dot_product()]
        while sum(len(query) for query, _ in parts) < n_beats:
            parts.append(self._dot_product())
        return [np.concatenate(words)[:n_beats] for words in zip(*parts, strict=False)]

    def _dot_product(self, longest=0):
        """Query and key words [beats, lanes] of the kind whose turn it is, mostly short."""
        kind = self._kinds[self._turn % len(self._kinds)]
        self._turn += 1
        n_beats = int(self.rng.choice([1, 1, 2, 3, 4, 9]))
        if kind is _one_sign:
            n_beats = max(n_beats, longest >> int(self.rng.integers(7)))  # any number of leading zeros
        return kind(self._format, self.rng, (n_beats, self.parameters.n_lanes))

    def _count(self, bins, query, key):
        """Which corner cases a dot product is."""
        bins["length_one"] += len(query) == 1
        bins["multi_beat"] += len(query) > 1
        if self._format is None:
            values = [words.astype(np.uint8).view(np.int8).astype(np.int64) for words in (query, key)]
            products = values[0] * values[1]
            bins["extreme"] += bool((products == 1 << 14).any())
            total = int(products.sum())
        else:
            terms = [floats.decode(self._format, words) for words in (query, key)]
            with np.errstate(invalid="ignore", over="ignore"):
                products = floats.to_float64(self._format, query) * floats.to_float64(self._format, key)
                total = products.sum()
            special = bool(sum((term.is_nan | term.is_inf).any() for term in terms))
            largest = floats.to_float64(self._format, np.array(self._format.infinity - 1))
            bins["nan"] += bool(np.isnan(total))
            bins["inf"] += bool(np.isinf(total) and special)
            bins["overflow"] += bool(not special and abs(total) > 1.01 * largest)
            hidden = 1 << self._format.fraction_width
            bins["subnormal"] += bool(sum(((t.significand < hidden) & ~t.is_zero).any() for t in terms)) and not special
        bins["zero_sum"] += bool(total == 0)
        bins["cancellation"] += bool(np.isfinite(total) and 0 < abs(total) * 64 <= abs(products).max())


def _words(fmt, rng, shape, field, fraction=None):
    """Words with given exponent fields, random signs and, if none is given, random fractions."""
    fraction = rng.integers(0, 1 << fmt.fraction_width, shape) if fraction is None else fraction
    return rng.integers(0, 2, shape) * fmt.sign_bit | field << fmt.fraction_width | fraction


def _gaussian(fmt, rng, shape):
    return [floats.from_float64(fmt, rng.standard_normal(shape)).astype(np.int64) for _ in range(2)]


def _any(fmt, rng, shape):
    top = (1 << fmt.exponent_width) - 1
    return [_words(fmt, rng, shape, rng.integers(0, top, shape)) for _ in range(2)]


def _close(fmt, rng, shape):
    """Exponents near each other, anywhere; sums of any length stay in the window."""
    top = (1 << fmt.exponent_width) - 4
    return [_words(fmt, rng, shape, int(rng.integers(0, top)) + rng.integers(0, 3, shape)) for _ in range(2)]


def _subnormal(fmt, rng, shape):
    """Subnormals of all magnitudes and zeros against any numbers, small or large ones."""
    fraction = rng.integers(0, 1 << fmt.fraction_width, shape) >> rng.integers(0, fmt.fraction_width + 1, shape)
    small = _words(fmt, rng, shape, 0, fraction)
    span = int(rng.integers(1, (1 << fmt.exponent_width) - 1))
    other = _words(fmt, rng, shape, rng.integers(max(0, span - 3), span + 1, shape))
    swap = rng.random(shape) < 0.5
    return [np.where(swap, small, other), np.where(swap, other, small)]


def _zero_times_large(fmt, rng, shape):
    """A zero product whose exponent fields tower above those of all other products."""
    query, key = (_words(fmt, rng, shape, rng.integers(0, fmt.bias // 2, shape)) for _ in range(2))
    at = int(rng.integers(query.size))
    query.flat[at], key.flat[at] = int(rng.integers(2)) * fmt.sign_bit, fmt.infinity - 1
    return [query, key] if rng.random() < 0.5 else [key, query]


def _subnormal_tie(fmt, rng, shape):
    """A sum just above, on or just below halfway between two subnormals of the narrow format, of any size.

    What is beside the middle may be as near as a bit or two below it, or far: the rounding's shifter loses it in any of
    its steps. The middle mostly has an even number below it, which a tie goes to, and often few bits: a long shift.
    """
    shape = (1 if shape[1] > 1 else 2, shape[1])
    query, key = np.zeros((2, *shape), np.int64)
    odd = 4 * int(rng.integers(0, 1 << rng.choice([0, 1, 2, rng.integers(fmt.fraction_width - 1)])))
    odd += int(rng.choice([1, 1, 3]))
    query.flat[0], key.flat[0] = odd, _one(fmt) - (1 << fmt.fraction_width)
    beside = max(1, fmt.bias - int(rng.integers(2, 21))) << fmt.fraction_width
    query.flat[-1], key.flat[-1] = int(rng.integers(4) > 0), beside | int(rng.integers(2)) * fmt.sign_bit
    return [query, key]


def _cancelling(fmt, rng, shape, change=0.3):
    """Pairs of products that differ in sign and, some of them, in the last bit of a factor."""
    query, key = (_close if rng.random() < 0.7 else _subnormal)(fmt, rng, shape)
    half = query.size // 2
    mirrored = [words.ravel().copy() for words in (query, key)]
    for words in mirrored:
        words[half : 2 * half] = words[:half]
    mirrored[1][half : 2 * half] ^= fmt.sign_bit
    if half:
        mirrored[0][half : 2 * half] ^= rng.random(half) < change
        for words in mirrored:
            words[2 * half :] = 0
    elif rng.random() < 0.5:
        mirrored[0][:] &= fmt.sign_bit
    return [words.reshape(shape) for words in mirrored]


def _zero_sum(fmt, rng, shape):
    query, key = _cancelling(fmt, rng, shape, change=0)
    if query.size == 1:
        query &= fmt.sign_bit
    return [query, key]


def _near_miss(fmt, rng, shape):
    """Large terms cancel but for one unit; with a single term there is nothing to cancel."""
    query, key = _zero_sum(fmt, rng, (max(2, shape[0]), shape[1]))
    query.flat[0] ^= 1
    return [query, key]


def _small_remainder(fmt, rng, shape):
    """Two large products cancel and leave one far below them, so that the sum has any number of leading zeros."""
    query, key = np.zeros((2, max(shape[0], -(-3 // shape[1])), shape[1]), np.int64)
    top = (1 << fmt.exponent_width) - 2
    fields = rng.integers(top // 2, top + 1, 2)
    total = max(2, int(fields.sum() - rng.integers(0, 32)))
    lowest, highest = max(1, total - top), min(top, total - 1)
    small = int(rng.integers(lowest, highest + 1))
    at = rng.choice(query.size, 3, replace=False)
    left, right = _words(fmt, rng, 2, fields)
    query.flat[at[:2]], key.flat[at[:2]] = left, (right, right ^ fmt.sign_bit)
    query.flat[at[2]], key.flat[at[2]] = _words(fmt, rng, 2, np.array([small, total - small]))
    return [query, key]


def _just_below(fmt, rng, shape):
    """A power of two less a little: rounding carries through all ones, at the edge of either precision or beyond it."""
    query, key = np.zeros((2, 1 if shape[1] > 1 else 2, shape[1]), np.int64)
    top = (1 << fmt.exponent_width) - 2
    below = int(rng.choice([fmt.fraction_width + rng.integers(1, 5), 23 + rng.integers(1, 5), rng.integers(1, 30)]))
    total = int(rng.integers(min(below + 2, 2 * top), 2 * top + 1))
    at = rng.choice(query.size, 2, replace=False)
    for place, fields, sign in zip(at, (total, max(2, total - below)), (0, fmt.sign_bit), strict=True):
        query.flat[place] = fields // 2 << fmt.fraction_width | sign
        key.flat[place] = fields - fields // 2 << fmt.fraction_width
    query[query != 0] ^= int(rng.integers(2)) * fmt.sign_bit
    return [query, key]


def _one_sign(fmt, rng, shape):
    """A sum that grows as much as its terms can make it: the largest significands, at the reference, of one sign."""
    total = 4 * int(rng.integers(1, (1 << fmt.exponent_width) // 2 - 1)) + 3
    sign, ones = int(rng.integers(2)) * fmt.sign_bit, (1 << fmt.fraction_width) - 1
    return [
        sign * is_query | field << fmt.fraction_width | ones - rng.integers(0, 2, shape)
        for is_query, field in ((1, total // 2), (0, total - total // 2))
    ]


def _overflow(fmt, rng, shape):
    """The largest numbers, of one sign."""
    return [np.full(shape, fmt.infinity - 1) - rng.integers(0, 3, shape), np.full(shape, fmt.infinity - 1)]


def _boundary(fmt, rng, shape):
    """One term near the limits of overflow and underflow of either result, the others much smaller."""
    field = int(rng.integers(1, (1 << fmt.exponent_width) - 1))
    query = _words(fmt, rng, shape, 1)
    key = _words(fmt, rng, shape, 1)
    query.flat[0] = field << fmt.fraction_width | (1 << fmt.fraction_width) - 1
    key.flat[0] = _one(fmt) | int(rng.integers(0, 4))
    return [query, key]


def _ramp(fmt, rng, shape):
    """Exponents that rise or fall from beat to beat, so that accumulator and beat take turns in being shifted."""
    top = (1 << fmt.exponent_width) - 2
    step = int(rng.integers(-6, 7))
    field = np.clip(int(rng.integers(1, top)) + step * np.arange(shape[0])[:, None], 0, top) + np.zeros(shape, np.int64)
    return [_words(fmt, rng, shape, field), _words(fmt, rng, shape, np.full(shape, fmt.bias))]


def _one(fmt):
    return fmt.bias << fmt.fraction_width


def _with(fmt, rng, shape, *pairs):
    """Random terms, some of them replaced by the given factors."""
    query, key = _close(fmt, rng, shape)
    for left, right in pairs:
        at = int(rng.integers(query.size))
        query.flat[at], key.flat[at] = (left, right) if rng.random() < 0.5 else (right, left)
    return [query, key]


def _nan(fmt, rng, shape):
    payload = int(rng.integers(1, 1 << fmt.fraction_width)) | int(rng.integers(2)) * fmt.sign_bit
    return _with(fmt, rng, shape, (fmt.infinity | payload, int(rng.integers(1 << fmt.width))))


def _infinite_zero(fmt, rng, shape):
    signs = rng.integers(0, 2, 2) * fmt.sign_bit
    return _with(fmt, rng, shape, (fmt.infinity | int(signs[0]), int(signs[1])))


def _infinite(fmt, rng, shape):
    """An infinity against a number that may be subnormal."""
    sign = int(rng.integers(2)) * fmt.sign_bit
    return _with(fmt, rng, shape, (fmt.infinity | sign, 1 << int(rng.integers(fmt.width - 2))))


def _two_infinities(fmt, rng, shape):
    """Of equal or of opposite signs, in the same or in different beats."""
    signs = rng.integers(0, 2, 2) * fmt.sign_bit
    return _with(fmt, rng, shape, *((fmt.infinity | int(sign), _one(fmt)) for sign in signs))


def _bytes(fmt, rng, shape):
    return list(rng.integers(0, 256, (2, *shape)))


def _extreme_bytes(fmt, rng, shape):
    query, key = rng.choice([0x80, 0x81, 0x7F, 0xFF, 0, 1], (2, *shape))
    query.flat[0] = key.flat[0] = 0x80
    return [query, key]


def _all_lowest(fmt, rng, shape):
    return [np.full(shape, 0x80), np.full(shape, 0x80)]


def _cancelling_bytes(fmt, rng, shape, remainder=1):
    query, key = rng.integers(1, 128, (2, max(2, shape[0]), shape[1]))
    half = query.size // 2
    key.flat[:half], query.flat[:half] = 127, 127
    query.flat[half : 2 * half] = 127
    key.flat[half : 2 * half] = -127 & 255
    query.flat[2 * half :] = 0
    if remainder:
        query.flat[0] = 126
    return [query, key]


def _zero_bytes(fmt, rng, shape):
    return _cancelling_bytes(fmt, rng, shape, remainder=0)


# Odd numbers of kinds, so that every kind comes with every eighth turn.
FLOAT_KINDS = (
    _nan,
    _zero_sum,
    _subnormal,
    _near_miss,
    _subnormal_tie,
    _overflow,
    _infinite,
    _gaussian,
    _two_infinities,
    _any,
    _cancelling,
    _subnormal_tie,
    _infinite_zero,
    _boundary,
    _ramp,
    _close,
    _subnormal,
    _gaussian,
    _ramp,
    _zero_times_large,
    _subnormal_tie,
    _small_remainder,
    _one_sign,
    _just_below,
    _small_remainder,
)
INTEGER_KINDS = (_extreme_bytes, _zero_bytes, _bytes, _cancelling_bytes, _all_lowest, _bytes, _bytes)
