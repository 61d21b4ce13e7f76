"""Programs for the mixed-precision core: a feed-forward layer of some tiles of tokens, step after step."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from golden.arith.floats import check_words, from_float64
from golden.differential.layer import DifferentialLayer
from golden.spec.formats import FP16
from golden.spec.mixed_precision_core import Activation, Code, Command, Memory, MixedPrecisionCoreParameters

__all__ = ["FeedForward", "Program"]


@dataclass
class Program:
    """Commands, beats of the load stream as integers, and how many beats are stored."""

    commands: list = field(default_factory=list)
    beats: list = field(default_factory=list)
    n_stored: int = 0

    def load(self, memory, words, width, **fields):
        """A LOAD and its data, [beats, elements]."""
        mask = (1 << width) - 1
        self.add(Code.LOAD, function=memory, **fields)
        for row in np.asarray(words).tolist():
            self.beats.append(sum((word & mask) << index * width for index, word in enumerate(row)))

    def add(self, code, **fields):
        self.commands.append(Command(opcode=code, **fields))


class FeedForward:
    """``fc2(GELU(fc1(x)))`` of ``n_tiles`` tiles of tokens, everything but weights in the core's memories.

    ``first`` and ``second`` are :class:`golden.differential.layer.DifferentialLayer`; of their options the finest
    exponents and thresholds are used, the others are the core's. References and outputs stay in the core from step to
    step; weights and scales are loaded again for each tile of columns, once for all tiles of tokens. While the array
    multiplies, outputs that are complete are activated, and the next piece of the second layer is quantised.
    """

    def __init__(
        self, sizes: MixedPrecisionCoreParameters, first: DifferentialLayer, second: DifferentialLayer, n_tiles: int = 1
    ):
        self.sizes, self.layers, self.n_tiles = sizes, (first, second), n_tiles
        n_in, n_hidden, n_out = *first.weights.shape, second.weights.shape[1]
        if second.weights.shape[0] != n_hidden:
            raise ValueError(f"second must have {n_hidden} channels, not {second.weights.shape[0]}")
        if n_tiles < 1:
            raise ValueError(f"n_tiles must be at least 1, not {n_tiles}")
        self._buffers = self._pieces(n_in), self._pieces(n_hidden)
        self._tiles = self._columns(n_hidden), self._columns(n_out)
        self._hidden = -(-n_in // sizes.n_output_lanes) * sizes.n_output_lanes
        needed = {
            "n_buffers": n_tiles * sum(self._buffers),
            "n_tiles": n_tiles * sum(self._tiles),
            "activation_depth": n_tiles * self._activations,
            "reference_depth": n_tiles * (n_in + n_hidden),
        }
        for name, value in needed.items():
            if getattr(sizes, name) < value:
                raise ValueError(f"{name} must be at least {value} for these layers, not {getattr(sizes, name)}")

    @property
    def _activations(self):
        """Channels of activations of one tile of tokens: inputs, and those of the hidden layer."""
        return self._hidden + self._tiles[0] * self.sizes.n_columns

    def _pieces(self, n_channels):
        """Tiles of channels."""
        return -(-n_channels // self.sizes.n_channels)

    def _columns(self, n):
        """Tiles of columns."""
        return -(-n // self.sizes.n_columns)

    def begin(self):
        """Outputs to the biases, references to zero."""
        p, program = self.sizes, Program()
        for tile in range(self.n_tiles):
            for index, layer in enumerate(self.layers):
                bias = layer.bias.astype(np.float32).view(np.uint32)
                for column in range(self._tiles[index]):
                    words = self._cut(bias[None], column).repeat(p.n_rows, axis=0).reshape(-1, p.n_output_lanes)
                    program.load(Memory.OUTPUTS, words, 32, destination=self._output(index, tile, column))
        depth = self.n_tiles * sum(len(layer.weights) for layer in self.layers)
        program.load(Memory.REFERENCES, np.zeros((depth, p.n_rows), np.int64), 16, destination=0, count=depth)
        return program

    def step(self, words):
        """A step on activations, FP16 words [tokens, channels]; the outputs go to the store stream."""
        check_words("words", words, FP16.width)
        p, words = self.sizes, np.asarray(words)
        n_in = len(self.layers[0].weights)
        if words.shape != (self.n_tiles * p.n_rows, n_in):
            raise ValueError(f"words must have the shape {(self.n_tiles * p.n_rows, n_in)}, not {words.shape}")
        program = Program()
        for tile in range(self.n_tiles):
            rows = words[tile * p.n_rows : (tile + 1) * p.n_rows]
            program.load(Memory.ACTIVATIONS, rows.T, 16, destination=tile * self._activations, count=n_in)
            for piece in range(self._buffers[0]):
                program.commands.append(self._quantise(0, tile, piece))
        later = deque()
        for tile, column in self._multiply(program, 0, later):
            later.append(self._activate(tile, column))
        program.commands.extend(later)
        later = deque(
            self._quantise(1, tile, piece) for piece in range(self._buffers[1]) for tile in range(self.n_tiles)
        )
        program.commands.extend(later.popleft() for _ in range(self.n_tiles))
        for _ in self._multiply(program, 1, later):
            pass
        for tile in range(self.n_tiles):
            for column in range(self._tiles[1]):
                program.add(Code.STORE, function=Memory.OUTPUTS, source=self._output(1, tile, column))
                program.n_stored += p.tile_beats
        return program

    def outputs(self, beats):
        """The outputs [tokens, columns], FP32 words, from the stored beats of a step."""
        p, mask = self.sizes, (1 << 32) - 1
        words = np.array([[beat >> 32 * lane & mask for lane in range(p.n_output_lanes)] for beat in beats])
        tiles = words.reshape(self.n_tiles, -1, p.n_rows, p.n_columns).transpose(0, 2, 1, 3)
        tokens = tiles.reshape(self.n_tiles * p.n_rows, -1)
        return tokens[:, : self.layers[1].weights.shape[1]].astype(np.uint32)

    def _multiply(self, program, index, later):
        """The products of a layer; gives each tile of tokens and columns whose sums are complete.

        Pieces of the channels come one after the other, for all columns each, so that a piece can be quantised during
        the products of the one before. The weights of the next products are loaded after the first one with those
        before. Commands that wait follow the products, one each; of the second layer one a tile of tokens, apart.
        """
        n_pieces = self._buffers[index]
        steps = [(column, piece) for piece in range(n_pieces) for column in range(self._tiles[index])]
        self._load_weights(program, index, 0, steps[0])
        for number, (column, piece) in enumerate(steps):
            for tile in range(self.n_tiles):
                program.add(
                    Code.MULTIPLY,
                    buffer=self._buffer(index, tile, piece),
                    region=number % self.sizes.n_regions,
                    destination=self._output(index, tile, column),
                )
                if tile == 0 and number + 1 < len(steps) and self.sizes.n_regions > 1:
                    self._load_weights(program, index, number + 1, steps[number + 1])
                if later and (index == 0 or (column * self.n_tiles + tile) % self._tiles[1] == 0):
                    program.commands.append(later.popleft())
                if piece == n_pieces - 1:
                    yield tile, column
            if number + 1 < len(steps) and self.sizes.n_regions == 1:
                self._load_weights(program, index, number + 1, steps[number + 1])

    def _load_weights(self, program, index, number, step):
        """Weights and scales of the products with this number."""
        (column, piece), layer, n = step, self.layers[index], self.sizes.n_channels
        region = number % self.sizes.n_regions
        weights = self._cut(layer.weights[piece * n : (piece + 1) * n], column)
        # The scales first: the commands behind need not wait for the longer load.
        program.load(Memory.SCALES, self._cut(layer.scales[None], column), 16, region=region)
        program.load(Memory.WEIGHTS, weights, 8, region=region, count=len(weights))

    def _quantise(self, index, tile, piece):
        p, layer = self.sizes, self.layers[index]
        options, start = layer.options, piece * p.n_channels
        n_in, n_hidden = self.layers[0].weights.shape
        threshold = from_float64(FP16, options.threshold * 2.0**-options.finest_exponent)
        return Command(
            opcode=Code.QUANTISE,
            buffer=self._buffer(index, tile, piece),
            source=tile * self._activations + index * self._hidden + start,
            reference=tile * (n_in + n_hidden) + index * n_in + start,
            count=min(p.n_channels, len(layer.weights) - start),
            threshold=int(np.clip(threshold, 1 << FP16.fraction_width, FP16.infinity - 1)),
            finest_exponent=options.finest_exponent,
        )

    def _activate(self, tile, column):
        place = tile * self._activations + self._hidden + column * self.sizes.n_columns
        return Command(
            opcode=Code.ACTIVATE, function=Activation.GELU, source=self._output(0, tile, column), destination=place
        )

    def _buffer(self, index, tile, piece):
        return tile * sum(self._buffers) + index * self._buffers[0] + piece

    def _output(self, index, tile, column):
        return tile * sum(self._tiles) + index * self._tiles[0] + column

    def _cut(self, matrix, column):
        """The columns of a tile, zeros beyond the last one."""
        n = self.sizes.n_columns
        part = np.asarray(matrix)[:, column * n : (column + 1) * n]
        return np.pad(part, ((0, 0), (0, n - part.shape[1])))
