"""Commands for the vector unit at random: all operations mixed, and corners of each kind of arithmetic."""

import numpy as np

from golden.arith.floats import from_float64, word_type
from golden.spec.formats import FORMATS, FP32
from golden.spec.vector_operations import ACCUMULATING_OPS, ADDING_OPS, Scope, VectorOp
from golden.units.vector_unit import Commands
from verif.bench.tie_stimulus import fused_ties, square_ties

__all__ = ["UNDEFINED_CODES", "CommandStimulus"]

UNDEFINED_CODES = sorted(set(range(32)) - {int(op) for op in VectorOp})


class CommandStimulus:
    """Pieces of programs; what they read from the banks ``writes`` has written."""

    def __init__(self, parameters, rng):
        self.parameters, self.rng = parameters, rng
        self.format = FORMATS[parameters.format]
        # A few rows of each bank, with its ends: deep banks need not be filled.
        self.addresses = np.unique(np.linspace(0, parameters.bank_depth - 1, 6).astype(np.int64))
        self.outside = np.arange(parameters.bank_depth, 1 << max(1, (parameters.bank_depth - 1).bit_length()))[:3]

    def _words(self, shape):
        """Numbers near 1, in a quarter of the commands any words, corner values among them."""
        fmt, rng = self.format, self.rng
        spread = rng.choice([0, 3, 10], (shape[0], *[1] * (len(shape) - 1)))
        words = from_float64(fmt, rng.standard_normal(shape) * np.exp2(rng.uniform(-1, 1, shape) * spread))
        one = fmt.bias << fmt.fraction_width
        smallest = 1 << fmt.fraction_width
        corners = np.array(
            [0, 1, smallest - 1, smallest, one, one + 1, fmt.infinity - 1, fmt.infinity, fmt.infinity + 1, fmt.nan]
        )
        corners = np.concatenate([corners, corners | fmt.sign_bit])
        wild = np.where(rng.random(shape) < 0.5, rng.choice(corners, shape), rng.integers(0, 1 << fmt.width, shape))
        is_wild = (rng.random(shape) < 0.3) & (rng.random(spread.shape) < 0.25)
        return np.where(is_wild, wild, words).astype(word_type(fmt))

    def _blank(self, n):
        p = self.parameters
        commands = Commands.empty(n, p.n_engines, p.n_lanes)
        for name in "abc":
            setattr(commands, name, self._words((n, p.n_engines, p.n_lanes)))
        commands.address[:] = self.rng.choice(self.addresses, (n, p.n_engines))
        return commands

    def writes(self):
        """Everything that will be read."""
        commands = self._blank(len(self.addresses))
        commands.operation[:] = VectorOp.WRITE_BANK
        commands.address[:] = self.addresses[:, None]
        return commands

    def mixed(self):
        """Any operations in any order, accumulations nested in each other."""
        n, rng = int(self.rng.integers(4, 25)), self.rng
        commands = self._blank(n)
        accumulating = np.array(ACCUMULATING_OPS)
        every = np.concatenate([np.array(list(VectorOp)), rng.choice(UNDEFINED_CODES, 1), accumulating, accumulating])
        commands.operation[:] = rng.choice(every, n)
        commands.enable[:] = rng.random(commands.enable.shape) < 0.8
        commands.lane_enable[:] = rng.random(commands.lane_enable.shape) < 0.9
        commands.scope[:] = rng.integers(0, 4, n)
        commands.first[:] = rng.random(n) < 0.1
        commands.last[:] = rng.random(n) < rng.choice([0.1, 0.5])
        if len(self.outside):
            commands.address[rng.random(commands.address.shape) < 0.1] = rng.choice(self.outside)
        return commands

    def rows(self):
        """SpMM rows back to back: none, one or a few non-zeros in each engine."""
        lengths = self.rng.choice([1, 1, 2, 5], 6)
        commands = self._blank(int(lengths.sum()))
        commands.operation[:] = VectorOp.SPMM
        commands.scope[:] = Scope.LANES
        ends = np.cumsum(lengths)
        commands.last[ends - 1] = True
        commands.first[ends - lengths] = self.rng.random(len(ends)) < 0.7
        counts = self.rng.integers(0, lengths[:, None] + 1, (len(ends), self.parameters.n_engines))
        counts[self.rng.integers(len(ends))] = 0
        position = np.concatenate([np.arange(length) for length in lengths])
        commands.enable[:] = position[:, None] < np.repeat(counts, lengths, axis=0)
        return commands

    def maxima(self):
        """Short maxima back to back, in which most terms count: of nothing, NaNs and infinities among them."""
        rng, fmt = self.rng, self.format
        commands = self._blank(8)
        commands.operation[:] = VectorOp.MAXIMUM
        commands.scope[:] = rng.choice([Scope.LANES, Scope.LANES, Scope.ENGINE, Scope.ALL], 8)
        commands.first[:] = rng.random(8) < 0.8
        commands.last[:] = rng.random(8) < 0.8
        commands.lane_enable[:] = rng.random(commands.lane_enable.shape) < rng.choice([0.2, 0.9])
        special = rng.choice([fmt.infinity, fmt.infinity | fmt.sign_bit, fmt.nan], commands.a.shape)
        commands.a[:] = np.where(rng.random(commands.a.shape) < 0.2, special, commands.a)
        commands.scope[:2] = Scope.LANES
        commands.first[:2] = commands.last[:2] = True
        commands.lane_enable[0, :, 0], commands.lane_enable[1] = False, True
        commands.a[1, 0] = fmt.infinity
        return commands

    def after_write(self):
        """Reads and SpMM rows of words that the command before has written, wholly or in part."""
        commands = self._blank(4)
        reader = self.rng.choice([VectorOp.READ_BANK, VectorOp.SPMM], 2)
        commands.operation[:] = [VectorOp.WRITE_BANK, reader[0], VectorOp.WRITE_BANK, reader[1]]
        commands.address[1], commands.address[3] = commands.address[0], commands.address[2]
        commands.lane_enable[2] = self.rng.random(commands.lane_enable[2].shape) < 0.5
        commands.lane_enable[2, 0, 0] = False
        commands.last[:] = True
        return commands

    def extremes(self):
        """Sums of finite words from all binades: the smallest beside the largest, zeros, cancellation."""
        fmt, rng = self.format, self.rng
        commands = self._blank(9)
        shape = commands.a.shape
        words = rng.integers(0, fmt.infinity, shape)
        kind = rng.integers(0, 8, shape)
        words = np.where(kind == 0, 0, np.where(kind == 1, 1, np.where(kind == 2, fmt.infinity - 1, words)))
        commands.a[:] = words | fmt.sign_bit * rng.integers(0, 2, shape)
        commands.operation[:] = rng.choice(ADDING_OPS, len(commands))
        commands.operation[:2] = VectorOp.WRITE_BANK
        commands.scope[:] = rng.integers(0, 3, len(commands))
        commands.address[2:] = commands.address[rng.integers(0, 2, len(commands) - 2)]
        commands.last[4::2] = True
        # The smallest square before the largest one, and a sum that loses its first terms.
        commands.operation[2:5:2] = VectorOp.SUM_SQUARES
        commands.a[2], commands.a[4] = 1, fmt.infinity - 1
        commands.a[8] = commands.a[7] ^ fmt.sign_bit
        commands.operation[7:] = VectorOp.SUM
        return commands

    def functions(self):
        """Functions of words of the sizes at which they change, and roundings of FP32 words at or beside a tie."""
        fmt, rng = self.format, self.rng
        commands = self._blank(8)
        shape = commands.a.shape
        field = rng.integers(fmt.bias - 12, fmt.bias + 6, shape)
        commands.a[:] = field << fmt.fraction_width | rng.integers(0, 1 << fmt.fraction_width, shape)
        commands.a |= rng.choice(np.array([0, fmt.sign_bit], word_type(fmt)), shape)
        commands.operation[:] = rng.choice([VectorOp.EXP, VectorOp.RECIPROCAL, VectorOp.RSQRT, VectorOp.GELU], 8)
        commands.operation[:2] = VectorOp.TO_FP16
        shape = (2, *shape[1:])
        field = rng.integers(max(1, FP32.bias - fmt.bias - fmt.fraction_width - 2), FP32.bias + fmt.bias + 2, shape)
        kept = rng.integers(0, FP32.fraction_width, shape)
        tie = ((2 * rng.integers(0, 1 << kept) + 1) << FP32.fraction_width - kept - 1) + rng.integers(-1, 2, shape)
        words = (field << FP32.fraction_width) + tie | FP32.sign_bit * rng.integers(0, 2, shape)
        commands.a[:2], commands.b[:2] = words & 0xFFFF, words >> 16
        return commands

    def squares(self):
        """Totals of one square each, of any size, half of them at or beside a tie of the format."""
        rng = self.rng
        commands = self._blank(4)
        shape = commands.a.shape
        commands.a[:] = np.where(
            rng.random(shape) < 0.5,
            rng.choice(square_ties(self.format), shape),
            rng.integers(0, self.format.infinity, shape),
        )
        commands.operation[:] = VectorOp.SUM_SQUARES
        commands.scope[:] = Scope.LANES
        commands.first[:] = commands.last[:] = True
        commands.enable[:] = np.arange(shape[1]) == rng.integers(shape[1], size=(len(commands), 1))
        return commands

    def cancelling(self):
        """Sums of which the large terms cancel, so that what is left has any number of leading zeros."""
        fmt, rng = self.format, self.rng
        commands = self._blank(3)
        shape = commands.a.shape[1:]
        field = rng.integers(fmt.max_exponent // 2, fmt.max_exponent, shape)
        rest = np.maximum(0, field - rng.integers(8, 32, shape))
        fraction = rng.integers(0, 1 << fmt.fraction_width, (2, *shape)) >> rng.integers(
            0, fmt.fraction_width + 1, (2, *shape)
        )
        commands.a[:2] = np.array([field, rest]) << fmt.fraction_width | fraction
        commands.a[:2] |= (rng.integers(0, 2, (2, *shape)) * fmt.sign_bit).astype(word_type(fmt))
        commands.a[2] = commands.a[0] ^ fmt.sign_bit
        commands.operation[:] = VectorOp.SUM
        commands.scope[:] = Scope.LANES
        commands.enable[:] = np.arange(shape[0]) == rng.integers(shape[0])
        commands.first[0] = commands.last[2] = True
        return commands

    def fused(self):
        """Products of about half a last place of the addend, others at any distance, and sums that are nearly ties."""
        fmt, rng = self.format, self.rng
        commands = self._blank(6)
        shape = commands.a.shape
        fields = {"c": rng.integers(1, fmt.max_exponent, shape), "a": rng.integers(1, fmt.max_exponent, shape)}
        away = rng.integers(-30, 31, shape) * (rng.random(shape) < 0.4)
        product = fields["c"] + fmt.bias - fmt.fraction_width - 1 + away
        fields["b"] = np.clip(product - fields["a"], 1, fmt.max_exponent - 1)
        near = rng.integers(0, 4, shape) << rng.integers(0, fmt.fraction_width - 2, shape)
        fraction = {
            "a": near,
            "b": rng.choice([0, 1, -1], shape) * near,
            "c": rng.integers(0, 1 << fmt.fraction_width, shape),
        }
        for name, field in fields.items():
            word = (field << fmt.fraction_width) + fraction[name] | fmt.sign_bit * rng.integers(0, 2, shape)
            getattr(commands, name)[:] = word
        for name, words in zip("abc", fused_ties(fmt, rng, commands.a[4:].size), strict=False):
            getattr(commands, name)[4:] = words.reshape(commands.a[4:].shape)
        commands.operation[:] = VectorOp.FMA
        return commands

    def corners(self):
        """What must occur in every run: each operation, special result and scope; a batch has about half of it."""
        fmt = self.format
        one, minus = fmt.bias << fmt.fraction_width, fmt.sign_bit
        operations = list(VectorOp) + [UNDEFINED_CODES[0]]
        each = self._blank(len(operations))
        each.operation[:] = operations
        each.scope[:] = self.rng.integers(0, 4, len(each))
        each.last[:] = True

        special = self._blank(10)
        special.operation[:] = [*[VectorOp.SUM] * 4, *[VectorOp.SPMM] * 2, VectorOp.READ_BANK, *[VectorOp.MUL] * 3]
        special.scope[:4] = [Scope.ALL, Scope.ENGINE, Scope.LANES, Scope.LANES]
        special.first[:] = special.last[:] = True
        special.last[2] = special.first[3] = False
        special.a[0], special.a[1] = fmt.infinity | minus, fmt.nan
        special.a[2] = np.where(special.a[2] & fmt.infinity == fmt.infinity, one, special.a[2])
        special.a[3] = special.a[2] ^ minus
        special.enable[4:7] = False
        special.enable[5, 0] = True
        special.a[7], special.b[7] = 1 << fmt.fraction_width, one - (1 << fmt.fraction_width)
        special.a[8], special.b[8] = fmt.infinity, one
        special.a[9] = fmt.nan
        # Infinity times zero, and infinities of both signs.
        invalid = self._blank(5)
        invalid.operation[:] = [VectorOp.WRITE_BANK, VectorOp.SPMM, VectorOp.WRITE_BANK, VectorOp.SPMM, VectorOp.SUM]
        invalid.address[:] = self.addresses[0]
        invalid.a[0], invalid.a[1], invalid.a[2] = 0, fmt.infinity, fmt.infinity
        invalid.a[3], invalid.a[4] = one | minus, fmt.infinity
        invalid.first[3] = invalid.last[1] = invalid.last[4] = True
        outside = self._blank(2 if len(self.outside) else 0)
        outside.operation[:] = [VectorOp.READ_BANK, VectorOp.SPMM][: len(outside)]
        outside.address[:] = self.outside.max(initial=0)
        outside.last[:] = True
        parts = [each, special, invalid, outside, self.near_tie(), self.after_write(), self.maxima(), self.extremes()]
        taken = self.rng.random(len(parts)) < 0.5
        taken[self.rng.integers(len(parts))] = True
        return Commands.join(*(part for part, is_taken in zip(parts, taken, strict=True) if is_taken))

    def near_tie(self):
        """In the middle between two subnormals, of any size, but for one bit, which is near or far below."""
        fmt, rng = self.format, self.rng
        n_lanes = self.parameters.n_lanes
        half = -fmt.bias - fmt.fraction_width
        odd = 2 * rng.integers(1 << rng.integers(fmt.fraction_width, size=n_lanes)) + 1
        far = half - rng.integers(1, 20, n_lanes)
        weight = 2.0 ** (half + 5)
        commands = self._blank(4)
        commands.operation[:] = [VectorOp.WRITE_BANK, VectorOp.SPMM] * 2
        commands.address[:] = self.addresses[0]
        commands.a[0] = from_float64(fmt, odd * 2.0 ** (half // 2))
        commands.a[1] = from_float64(fmt, np.array(2.0 ** (half - half // 2)))
        commands.a[2] = from_float64(fmt, rng.choice([-1, 1], n_lanes) * np.exp2(far) / weight)
        commands.a[3] = from_float64(fmt, np.array(weight))
        commands.scope[:] = Scope.LANES
        commands.enable[:, 1:] = False
        commands.first[1] = commands.last[3] = True
        return commands
