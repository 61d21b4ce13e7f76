"""A linear layer that is computed step after step from quantised differences, bit-exact, with its error account."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from golden.arith.elementwise import subtract
from golden.arith.floats import check_words, from_float64, to_float64
from golden.differential.statistics import Statistics
from golden.spec.formats import FP16, FP32
from golden.spec.mixed_precision import FINEST_EXPONENTS
from golden.spec.parameters import Parameters, choice, integer, number
from golden.units.differences import difference, next_reference
from golden.units.mixed_precision_array import multiply
from golden.units.quantizer_unit import dynamic_exponent, encode, quantise

__all__ = ["DifferentialLayer", "LayerOptions", "error_account", "quantise_weights"]

_FULL_SCALE = 127


@dataclass(frozen=True, kw_only=True)
class LayerOptions(Parameters):
    """How a layer is cut into tiles and quantised."""

    n_rows: int = integer(64, low=1, high=256, doc="tokens of a tile")
    n_channels: int = integer(128, low=1, high=4096, doc="channels of a tile at most")
    n_levels: int = integer(3, low=1, high=8, doc="number of different exponents in a tile")
    threshold: float = number(
        1.5, above=0, below=1024, doc="largest magnitude with 2 bits, in units of the finest scale"
    )
    loop: str = choice("closed", "closed", "open", doc="differences to what was computed with, or to the step before")
    base: str = choice("static", "static", "dynamic", doc="one finest scale of the layer, or one a tile")
    finest_exponent: int = integer(
        5,
        low=FINEST_EXPONENTS[0],
        high=FINEST_EXPONENTS[1],
        doc="of the static base; the largest one of a dynamic base",
    )
    first_passes: int = integer(2, low=1, high=4, doc="passes of the first step; those after the first refine it")


def quantise_weights(weights):
    """INT8 weights [channels, columns] and FP16 words of one scale a column, from float weights of that shape.

    ``weight ~ integer * scale``; the largest of a column is 127 units, as far as FP16 holds the scale.
    """
    weights = np.asarray(weights, np.float64)
    if weights.ndim != 2 or not np.isfinite(weights).all():
        raise ValueError(f"weights must be a matrix of finite numbers, not shape {weights.shape}")
    largest = np.abs(weights).max(axis=0, initial=0)
    scales = from_float64(FP16, np.where(largest > 0, largest / _FULL_SCALE, 1))
    integers = np.rint(weights / np.maximum(to_float64(FP16, scales), 2.0**-24))
    return np.clip(integers, -_FULL_SCALE, _FULL_SCALE).astype(np.int64), scales


class DifferentialLayer:
    """``y = x · weights + bias``, as ``y += (x - reference) · weights`` from step to step.

    ``weights`` are INT8 [channels, columns], ``scales`` FP16 words, one a column, ``bias`` float32 [columns] or None.
    With a closed loop the reference is what the outputs were computed with; with an open loop it is the x of the step
    before, so that errors of quantisation add up. A static base with a closed loop is what ``mixed_precision_core``
    computes, bit for bit.
    """

    def __init__(self, weights, scales, bias=None, **options):
        self.options = LayerOptions(**options)
        self.weights, self.scales = np.asarray(weights), np.asarray(scales)
        self.bias = np.zeros(self.weights.shape[1], np.float32) if bias is None else np.asarray(bias, np.float32)
        if self.scales.shape != self.weights.shape[1:] or self.bias.shape != self.scales.shape:
            raise ValueError(f"scales and bias must have {self.weights.shape[1]} elements, one a column of the weights")
        self.restart()

    def restart(self):
        """The next step is the first one of a sequence."""
        self._tiles = {}
        self._outputs = np.zeros((0, self.bias.size), np.uint32)
        self.last = Statistics()

    def step(self, words):
        """The outputs, FP32 words [tokens, columns], for activations as FP16 words [tokens, channels].

        Afterwards ``last`` has the :class:`Statistics` of this step.
        """
        check_words("words", words, FP16.width)
        words = np.asarray(words, np.uint16)
        if words.ndim != 2 or words.shape[1] != len(self.weights):
            raise ValueError(f"words must have {len(self.weights)} channels, not shape {words.shape}")
        first = not len(self._outputs)
        if first:
            self._outputs = np.broadcast_to(self.bias, (len(words), self.bias.size)).copy().view(np.uint32)
        if len(words) != len(self._outputs):
            raise ValueError(f"words must have {len(self._outputs)} tokens in every step, not {len(words)}")
        self.last = Statistics()
        for _ in range(self.options.first_passes if first and self.options.loop == "closed" else 1):
            self._pass(words)
        return self._outputs.copy()

    def _pass(self, words):
        options = self.options
        for row in range(0, len(words), options.n_rows):
            rows = slice(row, row + options.n_rows)
            for channel in range(0, words.shape[1], options.n_channels):
                channels = slice(channel, channel + options.n_channels)
                self._outputs[rows] = self._tile(words[rows, channels].T, (row, channel), channels, rows)

    def _tile(self, words, place, channels, rows):
        options = self.options
        tile = self._tiles.setdefault(place, _REFERENCES[options.loop](words.shape, options))
        delta = tile.difference(words)
        finest = options.finest_exponent
        if options.base == "dynamic":
            finest = min(finest, int(dynamic_exponent(delta)))
        quanta: dict[str, Any] = {"finest_exponent": finest, "n_levels": options.n_levels}
        threshold = int(np.clip(from_float64(FP16, options.threshold * 2.0**-finest), 0x0400, 0x7BFF))
        found = quantise(delta, threshold=threshold, **quanta)
        entries = encode(found, **quanta)
        tile.update(words, found)
        self.last += Statistics.of(found, entries)
        return multiply(found, entries, self.weights[channels], self.scales, self._outputs[rows], **quanta)


class _Closed:
    """The reference is what was computed with."""

    def __init__(self, shape, options):
        self._reference = np.zeros(shape, np.int64)
        self._quanta = {"finest_exponent": options.finest_exponent, "n_levels": options.n_levels}

    def difference(self, words):
        return difference(words, self._reference, **self._quanta)

    def update(self, words, found):
        self._reference = next_reference(self._reference, found, finest_exponent=self._quanta["finest_exponent"])


class _Open:
    """The reference is the activation of the step before, in FP16."""

    def __init__(self, shape, options):
        self._before = np.zeros(shape, np.uint16)

    def difference(self, words):
        return subtract(words, self._before)

    def update(self, words, found):
        self._before = words


_REFERENCES = {"closed": _Closed, "open": _Open}


def error_account(outputs, exact):
    """RMS error of FP32 words against float64 numbers, and the largest error, both in units of the numbers' RMS."""
    error = to_float64(FP32, outputs) - exact
    size = np.sqrt((np.asarray(exact, np.float64) ** 2).mean())
    return float(np.sqrt((error**2).mean()) / size), float(np.abs(error).max() / size)
