"""Between NumPy arrays and the packed integers that a testbench drives on a port."""

import numpy as np


def pack(array, width):
    """The last axis as one Python integer a row, element 0 in the lowest bits; negative values in two's complement.

    Returns a list of integers for a 2-D array, one integer for a 1-D array.
    """
    array = np.asarray(array)
    if array.ndim == 1:
        return pack(array[None], width)[0]
    if width == 0:
        return [0] * len(array)
    n_bytes = 1 if width <= 8 else 2 if width <= 16 else 4 if width <= 32 else 8
    if width == 8 * n_bytes:
        raw = np.ascontiguousarray(array.astype(np.int64) if array.dtype != np.uint64 else array)
        raw = raw.astype(f"<u{n_bytes}")
        return [int.from_bytes(row.tobytes(), "little") for row in raw]
    mask = (1 << width) - 1
    rows = []
    for row in array.tolist():
        value = 0
        for element in reversed(row):
            value = value << width | element & mask
        rows.append(value)
    return rows


def unpack(value, width, n):
    """The ``n`` unsigned elements of ``width`` bits in a packed integer, as an object array if wider than 63 bits."""
    mask = (1 << width) - 1
    return np.array([value >> width * index & mask for index in range(n)], object if width > 63 else np.int64)


def join(*fields):
    """Concatenate ``(value, width)`` pairs, the first in the lowest bits."""
    result, low = 0, 0
    for value, width in fields:
        result |= (int(value) & ((1 << width) - 1)) << low
        low += width
    return result
