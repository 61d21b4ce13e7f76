"""Random commands of the mixed-precision core, legal and illegal, with the data that they load."""

import numpy as np

from golden.arith.floats import from_float64
from golden.spec.formats import FP16, FP32
from golden.spec.mixed_precision import FINEST_EXPONENTS
from golden.spec.mixed_precision_core import COMMANDS, FIELDS, FLAGS, Code, Command, Memory
from verif.bench.packing import pack

__all__ = ["RandomCommands"]

_ILLEGAL = {
    "opcode": {"opcode": 77},
    "function": {"opcode": Code.ACTIVATE, "function": 9},
    "flags": {"opcode": Code.MULTIPLY, "flags": 1},
    "clear flags": {"opcode": Code.CLEAR, "flags": 4},
    "empty": {"opcode": Code.QUANTISE, "flags": 0, "count": 0},
    "count": {"opcode": Code.LOAD, "function": Memory.ACTIVATIONS, "flags": 0, "count": 0xFFFF},
    "far": {"opcode": Code.STORE, "function": Memory.REFERENCES, "flags": 0, "count": 1, "source": 0xFFFF},
    "tile": {"opcode": Code.STORE, "function": Memory.OUTPUTS, "flags": 0, "source": 0xFFFE},
    "buffer": {"opcode": Code.MULTIPLY, "flags": 0, "buffer": 15, "region": 15, "destination": 0},
    "region": {"opcode": Code.LOAD, "function": Memory.SCALES, "flags": 0, "region": 15},
    "threshold": {"threshold": 0x03FF},
    "infinite threshold": {"threshold": 0x7C00},
    "large exponent": {"finest_exponent": FINEST_EXPONENTS[1] + 1},
    "small exponent": {"finest_exponent": FINEST_EXPONENTS[0] - 1},
}
"""Fields that make a command illegal; those without an opcode change a legal QUANTISE."""


class RandomCommands:
    """Data are around what a finest exponent, the same for some time, can hold."""

    def __init__(self, sizes, rng):
        self.sizes, self.rng = sizes, rng
        self.finest = 5

    def prologue(self):
        """Loads that define every memory."""
        p = self.sizes
        loads = [
            self._command(Code.LOAD, Memory.WEIGHTS, region=region, count=p.n_channels) for region in range(p.n_regions)
        ]
        loads += [self._command(Code.LOAD, Memory.SCALES, region=region) for region in range(p.n_regions)]
        loads += [
            self._command(Code.LOAD, Memory.ACTIVATIONS, destination=0, count=p.activation_depth),
            self._command(Code.LOAD, Memory.REFERENCES, destination=0, count=p.reference_depth),
        ]
        return loads + [self._command(Code.LOAD, Memory.OUTPUTS, destination=tile) for tile in range(p.n_tiles)]

    def legal(self, written):
        """A command that can be executed, if its buffer is one of ``written``, from which it is mostly taken."""
        form = COMMANDS[self.rng.choice(len(COMMANDS), p=_WEIGHTS)]
        if self.rng.random() < 0.05:
            self.finest = int(self.rng.integers(FINEST_EXPONENTS[0], FINEST_EXPONENTS[1] + 1))
        flags = sum(FLAGS[name] for name in form.flags if self.rng.random() < 0.2)
        places = {}
        count = 1
        if form.largest_count is not None:
            count = min(getattr(self.sizes, form.largest_count), 1 + int(self.rng.integers(self.sizes.n_channels)))
        for item in (*form.reads, *form.writes):
            length = {"count": count, "n_columns": self.sizes.n_columns}.get(item.length, 1)
            depth = getattr(self.sizes, item.depth)
            if length > depth:
                return self.legal(written)
            step = self.sizes.n_output_lanes if item.aligned else 1
            places[item.base] = step * int(self.rng.integers((depth - length) // step + 1))
        if form.code == Code.MULTIPLY and written and self.rng.random() < 0.95:
            places["buffer"] = self.rng.choice(sorted(written))
        if form.code == Code.QUANTISE:
            size = 2.0 ** (self.rng.integers(-1, 3) - self.finest)
            places["threshold"] = int(np.clip(from_float64(FP16, size), 0x0400, 0x7BFF))
            places["finest_exponent"] = self.finest
        return self._command(form.code, form.function, flags=flags, count=count, **places)

    def illegal(self, kind=None):
        """A command that is refused."""
        fields = _ILLEGAL[kind or self.rng.choice(list(_ILLEGAL))]
        quantise = {"source": 0, "reference": 0, "count": 1, "flags": 0, "threshold": 0x3C00, "finest_exponent": 5}
        base = {} if "opcode" in fields else {**quantise, "buffer": 0, "opcode": Code.QUANTISE}
        return self._fill(**{**base, **fields})

    def clear(self):
        return self._command(Code.CLEAR)

    def multiply_of(self, buffer):
        """A product with a buffer, whether anything was quantised into it or not."""
        return self._command(Code.MULTIPLY, buffer=buffer, region=0, destination=0)

    def store_reference(self):
        """A command that ends after all QUANTISE before it."""
        return self._command(Code.STORE, Memory.REFERENCES, source=0, count=1)

    def _command(self, code, function=None, flags=0, **fields):
        if function is not None:
            fields["function"] = int(function)
        return self._fill(opcode=int(code), flags=flags, **fields)

    def _fill(self, **fields):
        """A command whose other fields are anything."""
        values = {item.name: int(self.rng.integers(1 << item.width)) for item in FIELDS}
        values["finest_exponent"] -= 64
        return Command(**{**values, **{name: int(value) for name, value in fields.items()}})

    def beats(self, command):
        """Data for a LOAD, as integers whose bits above the elements are anything."""
        p, rng = self.sizes, self.rng
        memory = Memory(command.function)
        if memory == Memory.WEIGHTS:
            words, width = rng.integers(-128, 128, (command.count, p.n_columns)), 8
        elif memory == Memory.SCALES:
            words, width = self._words(FP16, (1, p.n_columns), 2.0 ** rng.integers(-12, 3), special=0.05), 16
        elif memory == Memory.ACTIVATIONS:
            words, width = self._activations(command.count), 16
        elif memory == Memory.REFERENCES:
            size = 1 << int(rng.integers(1, 16))
            words, width = rng.integers(-size, size, (command.count, p.n_rows)), 16
        else:
            shape = (p.tile_beats, p.n_output_lanes)
            words, width = self._words(FP32, shape, 2.0 ** rng.integers(-8, 8, shape), special=0.02), 32
        used = width * np.shape(words)[1]
        noise = [int.from_bytes(rng.bytes(p.beat_width // 8 + 1), "little") for _ in range(len(words))]
        keep = (1 << p.beat_width) - (1 << used)
        return [beat | (high & keep) for beat, high in zip(pack(words, width), noise, strict=True)]

    def _activations(self, count):
        size = 2.0 ** (self.rng.integers(-3, 12, (count, 1)) - self.finest)
        words = self._words(FP16, (count, self.sizes.n_rows), size, special=0)
        lone = self.rng.random((count, 1)) < 0.05
        place = np.arange(self.sizes.n_rows) == self.rng.integers(self.sizes.n_rows)
        return np.where(lone & place, self.rng.choice([0x7C00, 0xFC00, 0x7E01, 0x8000, 0x7BFF]), words)

    def _words(self, fmt, shape, size, special):
        values = self.rng.standard_normal(shape) * size * (self.rng.random(shape) < 0.9)
        words = from_float64(fmt, np.clip(values, -65504, 65504)).astype(np.int64)
        chosen = self.rng.choice([fmt.infinity, fmt.sign_bit | fmt.infinity, fmt.nan, 1, fmt.sign_bit], shape)
        return np.where(self.rng.random(shape) < special, chosen, words)


def _weight(form):
    if form.code == Code.CLEAR:
        return 0.3
    if form.code in (Code.LOAD, Code.STORE):
        return 1.0
    return {Code.QUANTISE: 6.0, Code.MULTIPLY: 9.0, Code.ACTIVATE: 2.0}[form.code]


_WEIGHTS = np.array([_weight(form) for form in COMMANDS])
_WEIGHTS /= _WEIGHTS.sum()
