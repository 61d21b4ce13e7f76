"""Stimulus and expectation for the mixed-precision array: tiles of all kinds from the model of the quantiser."""

import numpy as np

from golden.arith.floats import from_float64, to_float64
from golden.spec.formats import FP16, FP32
from golden.spec.mixed_precision import GROUP, n_keys
from golden.units.mixed_precision_array import final_exponent, multiply, schedule
from golden.units.quantizer_unit import encode, quantise, slices
from verif.bench.batch import Batch, Bench
from verif.bench.packing import join, pack

THRESHOLD = 0x2E00
MAX_TILES = 12


class MixedPrecisionArrayBench(Bench):
    """A batch writes a tile's weights at addresses of its own, then sends tiles that use them, an empty one among them.

    The values are those of the golden quantiser on channels of all sizes. All tiles of a batch share weights and
    scales.
    """

    unit = "mixed_precision_array"

    @property
    def required_bins(self):
        bins = {"empty_tile", "lone_slice", "unused_lane", "top_slice", "special_output", "cancellation", "far_carry"}
        bins |= {"shift", "long_shift"}
        return frozenset(bins | ({"full_group"} if self.parameters.n_channels >= 8 else set()))

    @property
    def longest_silence(self):
        """Shifts."""
        return n_keys(self.parameters.n_levels)

    @property
    def latency(self):
        """From the last group of a tile to its first result."""
        return 6 + self.block.output_latency

    def batch(self, count):
        p = self.parameters
        n_channels = min(p.n_channels, p.weight_depth, 1 + count // 8)
        address = self.rng.permutation(p.weight_depth)[:n_channels]
        weights = self.rng.choice(
            [self.rng.integers(-128, 128, (n_channels, p.n_columns)), np.full((n_channels, p.n_columns), -128)],
            p=(0.9, 0.1),
        )
        scales = from_float64(FP16, self.rng.standard_normal(p.n_columns) * 2.0 ** self.rng.integers(-14, 4))
        special = self.rng.random(p.n_columns) < 0.1
        scales = np.where(special, self.rng.choice([0x7C00, 0xFC00, 0x7E00, 0x0000, 0x8000, 0x0001]), scales)
        beats = {"group": [], "previous": []}
        results, bins = [], dict.fromkeys(self.required_bins | {"full_group"}, 0)
        lanes_left = count
        for number in range(MAX_TILES):
            quantised, entries, finest = self._tile(n_channels, empty=number == 1)
            groups = self._groups(quantised, entries, address, finest, bins)
            of_tile = (quantised, entries, weights, scales)
            quanta = {"finest_exponent": finest, "n_levels": p.n_levels}
            products = multiply(*of_tile, np.zeros((p.n_rows, p.n_columns), np.uint32), **quanta)
            outputs = self._outputs(products, bins)
            found = multiply(*of_tile, outputs, **quanta)
            beats["group"] += groups
            beats["previous"] += self._rows(outputs)
            results += self._rows(found)
            bins["special_output"] += int((outputs & 0x7F800000 == 0x7F800000).sum())
            lanes_left -= len(groups)
            if number and lanes_left < 0:
                break
        weight = [
            join((at, p.address_width), (word, 8 * p.n_columns))
            for word, at in zip(pack(weights, 8), address, strict=True)
        ]
        return Batch(
            {"weight": weight, **beats},
            {"result": results},
            bins,
            {"scales": pack(scales, 16)},
            full_rate=("weight",),
            causes={},
            after={"group": ("weight",)},
        )

    def _tile(self, n_channels, empty):
        """A tile's quantised vectors, their entries, and the finest exponent."""
        p = self.parameters
        finest = int(self.rng.integers(-8, 20))
        spread = self.rng.choice([0.2, 1.5, 4.0])
        size = np.exp(spread * self.rng.standard_normal((n_channels, 1))) * 2.0 ** (3 - finest)
        words = from_float64(FP16, self.rng.standard_normal((n_channels, p.n_rows)) * size * (not empty))
        quantised = quantise(
            np.where(words & 0x7C00 == 0x7C00, 0x7BFF, words),
            threshold=THRESHOLD,
            finest_exponent=finest,
            n_levels=p.n_levels,
            full_precision=bool(self.rng.random() < 0.2),
        )
        return quantised, encode(quantised, finest_exponent=finest, n_levels=p.n_levels), finest

    def _groups(self, quantised, entries, address, finest, bins):
        """The beats of a tile: lanes that are not used carry anything."""
        p = self.parameters
        plan, codes = schedule(entries), slices(quantised)
        exponent = final_exponent(entries, finest_exponent=finest, n_levels=p.n_levels)
        bins["empty_tile"] += not len(plan.groups)
        bins["top_slice"] += int(entries.is_top.sum())
        starts = list(zip(plan.groups, plan.sizes, plan.shifts, strict=True)) or [(0, 0, 0)]
        beats = []
        for index, (first, size, shift) in enumerate(starts):
            lanes = []
            for lane in range(GROUP):
                used = lane < size
                digits = self.rng.integers(0, 4, p.n_rows)
                fields = int(self.rng.integers(p.weight_depth)), int(self.rng.integers(2))
                if used:
                    at = first + lane
                    digits = codes[entries.vector[at], entries.slice_index[at]]
                    fields = address[entries.vector[at]], entries.is_top[at]
                lanes += [(pack(digits, 2), 2 * p.n_rows), (fields[0], p.address_width), (fields[1], 1), (used, 1)]
            last = index == len(starts) - 1
            shown = exponent if last else int(self.rng.integers(-64, 64))
            beats.append(join(*lanes, (shift, (n_keys(p.n_levels) - 1).bit_length()), (shown, 7), (last, 1)))
            bins["full_group"] += int(size == GROUP)
            bins["lone_slice"] += int(size == 1)
            bins["unused_lane"] += int(size < GROUP)
            bins["shift"] += int(shift > 0)
            bins["long_shift"] += int(shift > 1)
        return beats

    def _outputs(self, products, bins):
        """FP32 words [rows, columns]: numbers of all sizes, some special.

        Some nearly cancel the products; some end in ones, so that rounding carries far.
        """
        p = self.parameters
        shape = (p.n_rows, p.n_columns)
        values = self.rng.standard_normal(shape) * 2.0 ** self.rng.integers(-20, 20, shape)
        words = from_float64(FP32, values * (self.rng.random(shape) < 0.9)).astype(np.int64)
        ones = (1 << self.rng.integers(1, 24, shape)) - 1
        words = np.where(self.rng.random(shape) < 0.2, words | ones, words)
        near = (products.astype(np.int64) ^ FP32.sign_bit) + self.rng.integers(-3, 4, shape) * self.rng.integers(0, 2)
        cancels = (self.rng.random(shape) < 0.25) & (products & 0x7F800000 != 0) & (near & 0x7F800000 != 0x7F800000)
        words = np.where(cancels, near & 0xFFFFFFFF, words)
        bins["cancellation"] += int(cancels.sum())
        # Sums just below a power of two, by less than half of the last bit: rounding carries through all of them.
        product = to_float64(FP32, products)
        carries = (self.rng.random(shape) < 0.15) & np.isfinite(product) & (np.abs(product) > 1e-30) & (product < 1e30)
        product = np.where(carries, np.abs(product), 1.0)
        below = 2.0 ** (np.ceil(np.log2(product)) + self.rng.integers(1, 5, shape)) * (1 - 2.0**-26)
        near = from_float64(FP32, below - product).astype(np.int64) ^ (products.astype(np.int64) & FP32.sign_bit)
        words = np.where(carries, near, words)
        bins["far_carry"] += int(carries.sum())
        special = self.rng.choice(np.array([0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x80000000], np.uint32), shape)
        chosen = self.rng.random(shape) < 0.05
        chosen.flat[0] = True
        return np.where(chosen, special, words).astype(np.uint32)

    def _rows(self, words):
        """Beats of rows [rows, columns]."""
        return pack(np.asarray(words).reshape(-1, self.parameters.lanes).astype(np.int64), 32)
