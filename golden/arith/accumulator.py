"""The vector unit's accumulators and reduction bus: block-aligned integers under a running maximum exponent."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from golden.arith.floats import bit_length, decode, round_pack
from golden.spec.formats import FP32
from golden.spec.vector_unit import GUARD_BITS, AccumulatorParameters

_CHUNK = 1 << 22


class Terms(NamedTuple):
    """Exact products: `(-1)**sign * significand * 2**(exponent - zero_exponent)`; exponent 0 for a zero."""

    sign: np.ndarray
    significand: np.ndarray
    exponent: np.ndarray
    is_nan: np.ndarray
    is_positive_inf: np.ndarray
    is_negative_inf: np.ndarray


class Sums(NamedTuple):
    """Unrounded sums: `total * 2**(exponent - zero_exponent - fraction bits)`, and the specials among the terms."""

    total: np.ndarray
    exponent: np.ndarray
    is_nan: np.ndarray
    is_positive_inf: np.ndarray
    is_negative_inf: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Accumulator(AccumulatorParameters):
    """One accumulator a lane, and the bus that adds accumulators.

    A term is a product of two words of the format. Each factor is normalised to a significand of p bits, subnormals
    too, so a term that is not zero has a significand `M` of 2p bits, `2**(2p-2) <= M < 2**2p`, and an exponent code
    `k >= 1`; a zero has code 0. With `G = align_width - 2p` and `K[i] = max(k[0..i])`, term i adds the integer
    `t[i] = (-1)**sign * floor(M * 2**G / 2**(K[i] - k[i]))`, and the accumulator holds

        acc[i] = floor(acc[i-1] / 2**(K[i] - K[i-1])) + t[i]  =  floor(sum of t[j] * 2**(K[j] - K[i]) over j <= i)

    The bus aligns accumulators to the largest of their exponents, with GUARD_BITS bits below the last one,
    `floor(acc * 2**GUARD_BITS / 2**(max K - K))`, and adds the integers. A sum is rounded once to FP32 and once to the
    format, to nearest, ties to even. For n terms without NaN and Inf

        |result - exact| <= n * 2**(3 - align_width) * max|term| + 1/2 ulp

    A NaN term, a zero times an infinity, or infinities of both signs give NaN; otherwise an infinity wins. A sum of
    zeros, of nothing, or one that cancels is +0. The accumulator holds `max_terms` terms a lane.
    """

    @property
    def zero_exponent(self):
        """Exponent code minus this is the weight of the last bit of a product."""
        return 2 * self.float_format.bias + 4 * self.precision - 5

    def products(self, left, right):
        """The terms `left * right` of two arrays of words."""
        left, right = (decode(self.float_format, word) for word in np.broadcast_arrays(left, right))
        shifts = [self.precision - bit_length(factor.significand) for factor in (left, right)]
        significand = (left.significand << shifts[0]) * (right.significand << shifts[1])
        significand = np.where((left.significand == 0) | (right.significand == 0), 0, significand)
        code = left.field - shifts[0] + right.field - shifts[1] + 2 * self.precision - 3
        sign = left.sign ^ right.sign
        is_inf = left.is_inf | right.is_inf
        is_nan = left.is_nan | right.is_nan | (is_inf & (left.is_zero | right.is_zero))
        return Terms(
            sign,
            significand,
            np.where(significand == 0, 0, code),
            is_nan,
            is_inf & ~is_nan & (sign == 0),
            is_inf & ~is_nan & (sign == 1),
        )

    def accumulate(self, terms, starts):
        """Sums over axis 0, cut into runs that begin at the sorted indices `starts` (the first is 0).

        Terms are [n, ...]; the result is [len(starts), ...].
        """
        starts = np.asarray(starts, np.int64)
        n, lanes = terms.sign.shape[0], terms.sign.shape[1:]
        flat = [np.ascontiguousarray(field.reshape(n, -1).T) for field in terms[:3]]
        n_lanes = flat[0].shape[0]
        total = np.zeros((n_lanes, len(starts)), np.int64)
        exponent = np.zeros_like(total)
        step = max(1, _CHUNK // n)
        for low in range(0, n_lanes, step):
            part = slice(low, low + step)
            value, weight, finite = (field[part] for field in flat)
            total[part], exponent[part] = self._accumulate(value, weight, finite, starts)
        specials = (np.logical_or.reduceat(field, starts, axis=0) for field in terms[3:])
        shape = (len(starts), *lanes)
        return Sums(total.T.reshape(shape), exponent.T.reshape(shape), *specials)

    def _accumulate(self, sign, significand, code, starts):
        n_lanes, n = code.shape
        begins = np.zeros(n, bool)
        begins[starts] = True
        # An offset that grows from run to run keeps the running maximum from crossing a start.
        offset = np.cumsum(begins) << 12
        largest = np.maximum.accumulate(code + offset, axis=1) - offset
        aligned = significand << (self.align_width - 2 * self.precision) >> np.minimum(largest - code, 63)
        aligned = np.where(sign == 1, -aligned, aligned)

        # Between two changes of the maximum the accumulator only adds: sum these segments, then shift from one to
        # the next, the first segments of all runs together, then the second ones, and so on.
        changes = np.broadcast_to(begins, code.shape).copy()
        changes[:, 1:] |= largest[:, 1:] != largest[:, :-1]
        stretch = np.flatnonzero(changes)
        addend = np.add.reduceat(aligned.ravel(), stretch)
        level = largest.ravel()[stretch]
        first = np.searchsorted(stretch, (np.arange(n_lanes)[:, None] * n + starts).ravel())
        count = np.diff(np.append(first, len(stretch)))
        total, exponent = addend[first], level[first]
        self._check(total)
        for step in range(1, count.max(initial=0)):
            longer = np.flatnonzero(count > step)
            index = first[longer] + step
            shift = np.minimum(level[index] - exponent[longer], 63)
            total[longer] = (total[longer] >> shift) + addend[index]
            exponent[longer] = level[index]
            self._check(total[longer])
        return total.reshape(n_lanes, -1), exponent.reshape(n_lanes, -1)

    def _check(self, total):
        limit = 1 << (self.sum_width - 1)
        if np.any((total >= limit) | (total < -limit)):
            raise ValueError(f"an accumulator overflowed: it holds max_terms={self.max_terms} terms a lane")

    def align(self, sums, axis, guard_bits=GUARD_BITS):
        """Add sums over an axis: aligned to their largest exponent with `guard_bits` more fraction bits."""
        largest = sums.exponent.max(axis=axis, keepdims=True)
        aligned = sums.total << guard_bits >> np.minimum(largest - sums.exponent, 63)
        return Sums(aligned.sum(axis=axis), largest.squeeze(axis), *(field.any(axis=axis) for field in sums[2:]))

    def round(self, sums):
        """FP32 words and words of the format nearest to sums from the bus (with GUARD_BITS fraction bits)."""
        weight = sums.exponent - self.zero_exponent - (self.align_width - 2 * self.precision) - GUARD_BITS
        sign = (sums.total < 0).astype(np.int64)
        is_inf = sums.is_positive_inf | sums.is_negative_inf
        is_nan = sums.is_nan | (sums.is_positive_inf & sums.is_negative_inf)
        sign = np.where(is_inf, sums.is_negative_inf, sign)
        return tuple(
            round_pack(fmt, sign, np.abs(sums.total), weight, nan=is_nan, inf=is_inf)
            for fmt in (FP32, self.float_format)
        )
