"""Operands whose exact results are at or beside the middle of two numbers of a format."""

from functools import cache

import numpy as np

from golden.arith.floats import from_float64, to_float64

__all__ = ["fused_ties", "square_ties"]


@cache
def square_ties(fmt):
    """Finite words whose squares are nearest to a tie: 8 of each size of square of which half a unit is left."""
    words = np.arange(1, fmt.infinity)
    squares = to_float64(fmt, words) ** 2
    size = np.floor(np.log2(squares))
    smallest = 1 - fmt.bias
    distance = np.abs(squares / np.exp2(np.maximum(size, smallest) - fmt.fraction_width) % 1 - 0.5)
    ties = [
        words[size == each][np.argsort(distance[size == each], kind="stable")[:8]]
        for each in np.unique(size)
        if each >= smallest - fmt.fraction_width - 1
    ]
    return np.concatenate(ties)


def fused_ties(fmt, rng, n):
    """``(a, b, c)`` whose sums are nearest to a tie among random ones.

    Either the addend cancels the product more or less, or it is half a last place of a product of a subnormal.
    """
    n_tried = 1000
    a, b = (from_float64(fmt, rng.uniform(1, 2, n_tried) * np.exp2(rng.integers(-4, 4, n_tried))) for _ in range(2))
    a[::2] = rng.integers(1, 1 << rng.integers(1, fmt.fraction_width + 1, n_tried // 2))
    largest = to_float64(fmt, np.array(fmt.infinity - 1))
    b[::2] = from_float64(fmt, rng.uniform(1 / 16, 1, n_tried // 2) * largest)
    product = to_float64(fmt, a) * to_float64(fmt, b)
    last_place = np.exp2(np.floor(np.log2(product)) - fmt.fraction_width)
    near = rng.integers(1, 4, n_tried) << rng.integers(0, fmt.fraction_width - 2, n_tried)
    addend = -product * (1 + rng.choice([-1, 1], n_tried) * np.exp2(-rng.uniform(1, 10, n_tried)))
    addend[::2] = (last_place / 2 * (1 + near / 2**fmt.fraction_width))[::2] * rng.choice([-1, 1], n_tried // 2)
    c = from_float64(fmt, addend)
    total = np.abs(product + to_float64(fmt, c))  # exact
    unit = np.exp2(np.floor(np.log2(np.maximum(total, 2.0 ** (1 - fmt.bias)))) - fmt.fraction_width)
    distance = np.abs(total / unit % 1 - 0.5)
    parts = [
        rng.permutation(part[np.argsort(np.where(distance[part] == 0, 1, distance[part]))][: 2 * n])[: -(-n // 2)]
        for part in (np.arange(0, n_tried, 2), np.arange(1, n_tried, 2))
    ]
    chosen = np.concatenate(parts)[:n]
    return a[chosen], b[chosen], c[chosen]
