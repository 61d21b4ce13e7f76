"""Programs for the mixed-precision core: a feed-forward layer of one tile of tokens, step after step."""

from typing import NamedTuple

import numpy as np

from golden.arith.floats import check_words, from_float64
from golden.differential.layer import DifferentialLayer
from golden.spec.formats import FP16
from golden.spec.mixed_precision_core import Activation, Code, Command, Memory, MixedPrecisionCoreParameters

__all__ = ["FeedForward", "Program"]


class Program(NamedTuple):
    """Commands, beats of the load stream as integers, and how many beats are stored."""

    commands: list
    beats: list
    n_stored: int


class FeedForward:
    """``fc2(GELU(fc1(x)))`` of one tile of tokens, everything but weights in the core's memories.

    ``first`` and ``second`` are :class:`golden.differential.layer.DifferentialLayer`; their options but the finest
    exponents and thresholds are the core's. References and outputs stay in the core from step to step, weights and
    scales are loaded again for each tile of columns. The first layer's references come first, then the second one's.
    """

    def __init__(self, sizes: MixedPrecisionCoreParameters, first: DifferentialLayer, second: DifferentialLayer):
        self.sizes, self.layers = sizes, (first, second)
        n_in, n_hidden, n_out = *first.weights.shape, second.weights.shape[1]
        if second.weights.shape[0] != n_hidden:
            raise ValueError(f"second must have {n_hidden} channels, not {second.weights.shape[0]}")
        needed = {
            "n_buffers": self._pieces(n_in) + self._pieces(n_hidden),
            "n_tiles": self._columns(n_hidden) + self._columns(n_out),
            "activation_depth": max(n_in, self._columns(n_hidden) * sizes.n_columns),
            "reference_depth": n_in + n_hidden,
        }
        for name, value in needed.items():
            if getattr(sizes, name) < value:
                raise ValueError(f"{name} must be at least {value} for these layers, not {getattr(sizes, name)}")

    def _pieces(self, n_channels):
        """Tiles of channels."""
        return -(-n_channels // self.sizes.n_channels)

    def _columns(self, n):
        """Tiles of columns."""
        return -(-n // self.sizes.n_columns)

    def begin(self):
        """Outputs to the biases, references to zero."""
        p, program = self.sizes, Program([], [], 0)
        tile = 0
        for layer in self.layers:
            bias = layer.bias.astype(np.float32).view(np.uint32)
            for column in range(self._columns(len(bias))):
                words = self._cut(bias[None], column).repeat(p.n_rows, axis=0)
                self._load(program, Memory.OUTPUTS, words.reshape(-1, p.n_output_lanes), 32, destination=tile)
                tile += 1
        depth = sum(len(layer.weights) for layer in self.layers)
        zeros = np.zeros((depth, p.n_rows), np.int64)
        self._load(program, Memory.REFERENCES, zeros, 16, destination=0, count=depth)
        return program

    def step(self, words, *, stores=True):
        """The activations, FP16 words [tokens, channels], and the outputs to the store stream if wanted."""
        check_words("words", words, FP16.width)
        p, (first, second) = self.sizes, self.layers
        n_in, n_hidden = first.weights.shape
        words = np.asarray(words)
        if words.shape != (p.n_rows, n_in):
            raise ValueError(f"words must have the shape {(p.n_rows, n_in)}, not {words.shape}")
        program = Program([], [], 0)
        self._load(program, Memory.ACTIVATIONS, words.T, 16, destination=0, count=n_in)
        n_pieces, n_tiles = self._pieces(n_in), self._columns(n_hidden)
        self._layer(program, first, reference=0, buffer=0, tile=0)
        for tile in range(n_tiles):
            program.commands.append(
                Command(opcode=Code.ACTIVATE, function=Activation.GELU, source=tile, destination=tile * p.n_columns)
            )
        self._layer(program, second, reference=n_in, buffer=n_pieces, tile=n_tiles)
        n_stored = 0
        if stores:
            tiles = range(n_tiles, n_tiles + self._columns(second.weights.shape[1]))
            program.commands.extend(Command(opcode=Code.STORE, function=Memory.OUTPUTS, source=tile) for tile in tiles)
            n_stored = len(tiles) * p.tile_beats
        return program._replace(n_stored=n_stored)

    def outputs(self, beats):
        """The outputs [tokens, columns], FP32 words, from the stored beats of a step."""
        p = self.sizes
        mask = (1 << 32) - 1
        words = np.array([[beat >> 32 * lane & mask for lane in range(p.n_output_lanes)] for beat in beats])
        tiles = words.reshape(-1, p.n_rows, p.n_columns)
        return np.concatenate(list(tiles), axis=1)[:, : self.layers[1].weights.shape[1]].astype(np.uint32)

    def _layer(self, program, layer, *, reference, buffer, tile):
        """Quantise the pieces of the activations, then multiply them with the weights of every tile of columns."""
        p, options = self.sizes, layer.options
        n_channels = len(layer.weights)
        pieces = range(0, n_channels, p.n_channels)
        threshold = int(np.clip(from_float64(FP16, options.threshold * 2.0**-options.finest_exponent), 0x0400, 0x7BFF))
        for index, start in enumerate(pieces):
            program.commands.append(
                Command(
                    opcode=Code.QUANTISE,
                    buffer=buffer + index,
                    source=start,
                    reference=reference + start,
                    count=min(p.n_channels, n_channels - start),
                    threshold=threshold,
                    finest_exponent=options.finest_exponent,
                )
            )
        region = 0
        for column in range(self._columns(layer.weights.shape[1])):
            scales = self._cut(layer.scales[None], column)
            for index, start in enumerate(pieces):
                weights = self._cut(layer.weights[start : start + p.n_channels], column)
                self._load(program, Memory.WEIGHTS, weights, 8, region=region, count=len(weights))
                self._load(program, Memory.SCALES, scales, 16, region=region)
                program.commands.append(
                    Command(opcode=Code.MULTIPLY, buffer=buffer + index, region=region, destination=tile + column)
                )
                region ^= 1

    def _cut(self, matrix, column):
        """The columns of a tile, zeros beyond the last one."""
        n = self.sizes.n_columns
        part = np.asarray(matrix)[:, column * n : (column + 1) * n]
        return np.pad(part, ((0, 0), (0, n - part.shape[1])))

    @staticmethod
    def _load(program, memory, words, width, **fields):
        mask = (1 << width) - 1
        program.commands.append(Command(opcode=Code.LOAD, function=memory, **fields))
        for row in np.asarray(words).tolist():
            program.beats.append(sum((word & mask) << index * width for index, word in enumerate(row)))
