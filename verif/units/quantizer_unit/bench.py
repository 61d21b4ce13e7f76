"""Stimulus and expectation for the quantiser: tiles of vectors of all sizes, empty tiles, NaNs, and their entries."""

import numpy as np

from golden.arith.floats import from_float64
from golden.spec.formats import FP16
from golden.spec.mixed_precision import FINEST_EXPONENTS, KEY_OFFSET, MAX_SLICES, n_keys
from golden.units.quantizer_unit import encode, quantise, reconstruct, slices
from verif.bench.batch import Batch, Bench
from verif.bench.packing import join, pack


class QuantizerUnitBench(Bench):
    """All tiles of a batch have one threshold and one range of exponents, since those must not change in between."""

    unit = "quantizer_unit"

    @property
    def required_bins(self):
        bins = {"error", "empty_tile", "full_precision", "finest", "subnormal", "tie", "clipped"}
        bins |= {f"slices_{count}" for count in range(MAX_SLICES + 1)}
        return frozenset(bins | ({"shift"} if self.parameters.n_channels > 1 else set()))

    @property
    def longest_silence(self):
        """A tile of vectors that all count as zeros is read again before the next one is sorted."""
        return 2 * MAX_SLICES * self.parameters.n_channels

    @property
    def latency(self):
        """Until the last entry of what is inside has come."""
        return self.block.latency + 3 * (MAX_SLICES * self.parameters.n_channels + 4)

    def batch(self, count):
        p = self.parameters
        finest = int(self.rng.integers(FINEST_EXPONENTS[0], FINEST_EXPONENTS[1] + 1))
        threshold = self._threshold(finest)
        full = bool(self.rng.random() < 0.2)
        options = {"threshold": threshold, "finest_exponent": finest, "n_levels": p.n_levels}
        streams = {"vector": [], "quantised": [], "entry": []}
        bins = dict.fromkeys(self.required_bins | {"shift"}, 0)
        left = count
        tile = 0
        while left > 0 or tile < 2:
            n_channels = p.n_channels  # full tiles, too, if they are not much larger than the batch
            if n_channels > 2 * count or self.rng.random() < 0.7:
                n_channels = min(p.n_channels, 1 + int(self.rng.integers(max(1, min(left, p.n_channels)))))
            words = self._words(n_channels, finest, empty=tile == 1)
            channels = self.rng.integers(0, 1 << p.channel_width, n_channels)
            found = quantise(words, **options, full_precision=full)
            entries = encode(found, finest_exponent=finest, n_levels=p.n_levels)
            streams["vector"] += self._vectors(words, channels)
            streams["quantised"] += self._quantised(found, channels, finest)
            streams["entry"] += self._entries(entries, channels, finest)
            self._count(bins, words, found, entries, finest, full)
            left -= n_channels
            tile += 1
        vector = streams.pop("vector")
        statics = {"threshold": threshold, "finest_exponent": finest & 0x7F, "full_precision": int(full)}
        return Batch({"vector": vector}, streams, bins, statics, full_rate=(), causes={})

    def _threshold(self, finest):
        """An FP16 word near one quantum of the finest exponent, or any."""
        if self.rng.random() < 0.3:
            return int(self.rng.integers(0x0400, 0x7C00))
        return int(np.clip(from_float64(FP16, 2.0 ** (self.rng.integers(-1, 3) - finest)), 0x0400, 0x7BFF))

    def _words(self, n_channels, finest, empty):
        """FP16 words [channels, values]: sizes around what the range of exponents holds, ties, special ones."""
        p = self.parameters
        shape = (n_channels, p.n_values)
        size = 2.0 ** (self.rng.integers(-4, 12, (n_channels, 1)) - finest)
        values = self.rng.standard_normal(shape) * size
        halves = (self.rng.integers(-40, 41, shape) + 0.5) * 2.0**-finest
        values = np.where(self.rng.random((n_channels, 1)) < 0.3, halves, values)
        words = from_float64(FP16, np.clip(values, -65504, 65504) * (not empty))
        subnormal = self.rng.integers(0, 0x400, shape).astype(np.uint16)
        words = np.where(self.rng.random((n_channels, 1)) < 0.1 * (not empty), subnormal, words)
        special = self.rng.random((n_channels, 1)) < 0.1 * (not empty)
        lone = np.arange(p.n_values) == self.rng.integers(p.n_values)
        return np.where(special & lone, self.rng.choice([0x7C00, 0xFC00, 0x7E00, 0xFFFF]), words).astype(np.uint16)

    def _vectors(self, words, channels):
        p = self.parameters
        ends = np.arange(len(words)) == len(words) - 1
        return [
            join((word, 16 * p.n_values), (channel, p.channel_width), (end, 1))
            for word, channel, end in zip(pack(words, 16), channels, ends, strict=True)
        ]

    def _quantised(self, found, channels, finest):
        p = self.parameters
        levels = found.exponent - (finest - p.n_levels + 1)
        address = np.cumsum(found.n_slices) - found.n_slices
        codes = pack(slices(found).reshape(len(channels), -1), 2)
        numbers = pack(reconstruct(found), 16)
        return [
            join(
                (code, 2 * MAX_SLICES * p.n_values),
                (count, 3),
                (level, max(1, (p.n_levels - 1).bit_length())),
                (at, p.address_width),
                (channel, p.channel_width),
                (error, 1),
                (index == len(channels) - 1, 1),
                (number, 16 * p.n_values if p.reconstruct else 0),
            )
            for index, (code, count, level, at, channel, error, number) in enumerate(
                zip(codes, found.n_slices, levels, address, channels, found.error, numbers, strict=True)
            )
        ]

    def _entries(self, entries, channels, finest):
        p = self.parameters
        width = (n_keys(p.n_levels) - 1).bit_length()
        if not len(entries.key):
            return [_unused(p, width)]
        fields = zip(entries.address, entries.vector, entries.shift, entries.key, entries.is_top, strict=True)
        last = len(entries.key) - 1
        return [
            _entry(p, width, address, channels[vector], shift, key, finest, is_top, index == last)
            for index, (address, vector, shift, key, is_top) in enumerate(fields)
        ]

    def _count(self, bins, words, found, entries, finest, full):
        number = words.view(np.float16).astype(np.float64)
        with np.errstate(invalid="ignore"):
            scaled = np.abs(np.where(found.error[:, None], 0, number) * 2.0 ** found.exponent[:, None])
        bins["error"] += int(found.error.sum())
        bins["empty_tile"] += int(not found.n_slices.any())
        bins["full_precision"] += int(full)
        bins["finest"] += int((found.exponent == finest).sum())
        bins["subnormal"] += int(((words & 0x7C00 == 0) & (words & 0x3FF != 0)).sum())
        bins["tie"] += int((scaled % 1 == 0.5).sum())
        bins["clipped"] += int((scaled >= 127.5).sum())
        bins["shift"] += int((entries.shift > 0).sum())
        for count in range(MAX_SLICES + 1):
            bins[f"slices_{count}"] += int((found.n_slices == count).sum())


def _entry(p, width, address, channel, shift, key, finest, is_top, last):
    """The beat of one entry; its exponent is that of its own key."""
    exponent = int(key) - KEY_OFFSET + finest - p.n_levels + 1
    fields = ((address, p.address_width), (channel, p.channel_width), (shift, width), (exponent, 7))
    return join(*fields, (is_top, 1), (1, 1), (last, 1))


def _unused(p, width):
    """The beat of a tile without slices: nothing but the mark of its end."""
    return 1 << (p.address_width + p.channel_width + width + 7 + 2)
