"""Bit-exact model of the mixed-precision core: executes its commands one after the other.

Defines ``mixed_precision_core``. Units work at the same time where that gives the same results.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from golden.arith.elementwise import from_fp32
from golden.arith.functions import gelu
from golden.spec.formats import FP16
from golden.spec.mixed_precision import FINEST_EXPONENTS
from golden.spec.mixed_precision_core import (
    FLAGS,
    Activation,
    Code,
    Error,
    Memory,
    MixedPrecisionCoreParameters,
    form_of,
)
from golden.units.differences import difference, next_reference
from golden.units.mixed_precision_array import multiply, schedule
from golden.units.quantizer_unit import encode, quantise

__all__ = ["Buffer", "MixedPrecisionCore", "Run", "check"]


class Buffer(NamedTuple):
    """A quantised tile."""

    quantised: tuple
    entries: tuple
    finest_exponent: int


@dataclass
class Run:
    """What came of a sequence of commands."""

    executed: list = field(default_factory=list)  # one flag a command
    refusals: list = field(default_factory=list)  # (error, number of the command)
    stored: list = field(default_factory=list)  # (beat, last) of the store stream, beats as integers
    loaded: int = 0  # beats taken from the load stream
    groups: int = 0  # clocks in which groups enter the array
    shifts: int = 0  # clocks in which its sums are shifted


def check(command, sizes, written):
    """The first reason to refuse a command, ``Error.NONE`` if there is none; ``written`` are the buffers in use."""
    form = form_of(command.opcode, command.function)
    if form is None:
        known = command.opcode in list(Code)
        return Error.UNKNOWN_FUNCTION if known else Error.UNKNOWN_OPCODE
    if command.flags & ~sum(FLAGS[name] for name in form.flags):
        return Error.UNKNOWN_FUNCTION
    ranges = (*form.reads, *form.writes)
    if form.largest_count is not None and not 1 <= command.count <= getattr(sizes, form.largest_count):
        return Error.SIZE
    if any(item.aligned and getattr(command, item.base) % sizes.n_output_lanes for item in ranges):
        return Error.SIZE
    for item in ranges:
        length = item.length
        if isinstance(length, str):
            length = getattr(command if hasattr(command, length) else sizes, length)
        depth = getattr(sizes, item.depth)
        if getattr(command, item.base) + length > depth:
            return Error.RANGE
    if form.is_loop:
        low, high = FINEST_EXPONENTS
        is_normal = 1 << FP16.fraction_width <= command.threshold < FP16.infinity
        if not (is_normal and low <= command.finest_exponent <= high):
            return Error.PRECISION
    if form.code == Code.MULTIPLY and command.buffer not in written:
        return Error.BUFFER_MISSING
    return Error.NONE


class MixedPrecisionCore:
    """A core after reset; ``execute`` may be called again and goes on where it was.

    Memories are arrays of what was written last, zero where nothing was: there the hardware has anything.
    """

    def __init__(self, **sizes):
        self.sizes = p = MixedPrecisionCoreParameters(**sizes)
        self.weights = np.zeros((p.n_regions, p.n_channels, p.n_columns), np.int64)
        self.scales = np.zeros((p.n_regions, p.n_columns), np.uint16)
        self.activations = np.zeros((p.activation_depth, p.n_rows), np.uint16)
        self.references = np.zeros((p.reference_depth, p.n_rows), np.int64)
        self.outputs = np.zeros((p.n_tiles, p.n_rows, p.n_columns), np.uint32)
        self.buffers = {}
        self.error = Error.NONE
        self.invalid_vectors = 0
        self.n_commands = 0

    def execute(self, commands, beats=()):
        """Run commands on the beats of the load stream, integers; those that are not needed are ignored."""
        run = Run()
        for command in commands:
            number, self.n_commands = self.n_commands, self.n_commands + 1
            code = check(command, self.sizes, self.buffers)
            is_clear = command.opcode == Code.CLEAR and code == Error.NONE
            accepted = is_clear or self.error == Error.NONE and code == Error.NONE
            run.executed.append(accepted)
            if accepted:
                getattr(self, f"_{Code(command.opcode).name.lower()}")(command, run, beats)
            elif self.error == Error.NONE:
                self.error = code
                run.refusals.append((code, number))
        return run

    def _clear(self, command, run, beats):
        self.error, self.invalid_vectors = Error.NONE, 0

    def _load(self, command, run, beats):
        memory, p = Memory(command.function), self.sizes
        needed = command.count
        if memory in (Memory.SCALES, Memory.OUTPUTS):
            needed = 1 if memory == Memory.SCALES else p.tile_beats
        given = beats[run.loaded : run.loaded + needed]
        if len(given) < needed:
            raise ValueError(f"beats must hold {needed} beats for a LOAD, only {len(given)} are left")
        run.loaded += needed
        first = slice(command.destination, command.destination + command.count)
        if memory == Memory.WEIGHTS:
            self.weights[command.region, : command.count] = _signed(_unpack(given, 8, p.n_columns), 8)
        elif memory == Memory.SCALES:
            self.scales[command.region] = _unpack(given, 16, p.n_columns)[0]
        elif memory == Memory.ACTIVATIONS:
            self.activations[first] = _unpack(given, 16, p.n_rows)
        elif memory == Memory.REFERENCES:
            self.references[first] = _signed(_unpack(given, 16, p.n_rows), 16)
        else:
            self.outputs[command.destination] = _unpack(given, 32, p.n_output_lanes).reshape(p.n_rows, p.n_columns)

    def _store(self, command, run, beats):
        memory, p = Memory(command.function), self.sizes
        first = slice(command.source, command.source + command.count)
        if memory == Memory.ACTIVATIONS:
            rows, width = self.activations[first], 16
        elif memory == Memory.REFERENCES:
            rows, width = self.references[first] & 0xFFFF, 16
        else:
            rows, width = self.outputs[command.source].reshape(-1, p.n_output_lanes), 32
        words = [sum(int(word) << index * width for index, word in enumerate(row)) for row in rows]
        run.stored += [(word, index == len(words) - 1) for index, word in enumerate(words)]

    def _quantise(self, command, run, beats):
        p, finest = self.sizes, command.finest_exponent
        places = slice(command.reference, command.reference + command.count)
        words = self.activations[command.source : command.source + command.count]
        before = np.zeros_like(self.references[places]) if command.has("restart") else self.references[places]
        quanta = {"finest_exponent": finest, "n_levels": p.n_levels}
        delta = difference(words, before, **quanta)
        found = quantise(delta, threshold=command.threshold, full_precision=command.has("full_precision"), **quanta)
        self.references[places] = _signed(next_reference(before, found, finest_exponent=finest) & 0xFFFF, 16)
        self.buffers[command.buffer] = Buffer(found, encode(found, **quanta), finest)
        self.invalid_vectors += int(found.error.sum())

    def _multiply(self, command, run, beats):
        buffer = self.buffers[command.buffer]
        plan = schedule(buffer.entries)
        run.groups, run.shifts = run.groups + max(1, len(plan.groups)), run.shifts + int(plan.shifts.sum())
        self.outputs[command.destination] = multiply(
            buffer.quantised,
            buffer.entries,
            self.weights[command.region, : len(buffer.quantised.value)],
            self.scales[command.region],
            self.outputs[command.destination],
            finest_exponent=buffer.finest_exponent,
            n_levels=self.sizes.n_levels,
        )

    def _activate(self, command, run, beats):
        words = from_fp32(self.outputs[command.source], FP16)
        if command.function == Activation.GELU:
            words = gelu(words)
        self.activations[command.destination : command.destination + self.sizes.n_columns] = words.T


def _unpack(beats, width, n):
    """Elements of beats, integers, [beats, n]; element 0 is in the lowest bits."""
    return np.array([[beat >> index * width & (1 << width) - 1 for index in range(n)] for beat in beats], np.int64)


def _signed(values, width):
    """Two's complement of that many bits as numbers."""
    return values - (values >> width - 1 << width)
