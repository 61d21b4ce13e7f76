"""What the vectors of Berkeley TestFloat say about the lane's operations."""

from dataclasses import dataclass

import numpy as np

from golden.arith.floats import is_nan
from golden.spec.formats import FP16, FP32, FloatFormat
from golden.spec.vector_operations import VectorOp
from verif.bench.datasets import testfloat

_SIGN = np.uint32(FP16.sign_bit)


@dataclass(frozen=True)
class Vectors:
    """Operands of one operation and the results that must come; ``target`` is their format, None for truth values."""

    name: str
    operation: VectorOp
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    expected: np.ndarray
    target: FloatFormat | None

    def wrong(self, results):
        """The rows whose result is another one; any NaN matches any NaN."""
        results = np.asarray(results, dtype=np.uint32)
        same = results == self.expected
        if self.target:
            low = results & np.uint32((1 << self.target.width) - 1)
            same |= is_nan(self.target, self.expected) & is_nan(self.target, low) & (results == low)
        return np.flatnonzero(~same)

    def first(self, count):
        """At most ``count`` rows, evenly spread."""
        rows = np.unique(np.linspace(0, len(self.a) - 1, min(count, len(self.a))).astype(int))
        a, b, c, expected = (array[rows] for array in (self.a, self.b, self.c, self.expected))
        return Vectors(self.name, self.operation, a, b, c, expected, self.target)


def _binary(operation, target=FP16, swap=False, negate=False, absolute=False):
    def rows(table):
        a, b, result = table[:, 0], table[:, 1], table[:, 2]
        if negate:
            b = b ^ _SIGN
        if swap:
            a, b = b, a
        if absolute:
            result = result & ~_SIGN
        return operation, a, b, np.zeros_like(a), result, target

    return rows


def _fused(table):
    return VectorOp.FMA, table[:, 0], table[:, 1], table[:, 2], table[:, 3], FP16


def _widen(table):
    zero = np.zeros_like(table[:, 0])
    return VectorOp.TO_FP32, table[:, 0], zero, zero, table[:, 1], FP32


def _narrow(table):
    word = table[:, 0]
    return VectorOp.TO_FP16, word & 0xFFFF, word >> 16, np.zeros_like(word), table[:, 1], FP16


# a - b is a + (-b), and b > a is a < b, so the same vectors also speak about these.
SOURCES = {
    "add": ("f16_add", _binary(VectorOp.ADD)),
    "subtract": ("f16_add", _binary(VectorOp.SUB, negate=True)),
    "absolute_difference": ("f16_add", _binary(VectorOp.ABS_DIFF, negate=True, absolute=True)),
    "multiply": ("f16_mul", _binary(VectorOp.MUL)),
    "fused_multiply_add": ("f16_mulAdd", _fused),
    "less": ("f16_lt_quiet", _binary(VectorOp.LESS, target=None)),
    "greater": ("f16_lt_quiet", _binary(VectorOp.GREATER, target=None, swap=True)),
    "less_equal": ("f16_le_quiet", _binary(VectorOp.LESS_EQUAL, target=None)),
    "to_fp32": ("f16_to_f32", _widen),
    "to_fp16": ("f32_to_f16", _narrow),
}


def vectors(name):
    """The vectors of one entry of :data:`SOURCES`."""
    key, select = SOURCES[name]
    return Vectors(name, *select(testfloat()[key].astype(np.uint32)))
