"""Golden model of the sorter: Batcher's two networks executed on whole arrays of vectors, and stable sorting."""

import numpy as np

from golden.spec.bitonic_sorter import BitonicSorterParameters


def sort(keys, payloads=None, *, network="bitonic", descending=False, stable=False):
    """Sort each vector of keys and let the payloads move with them.

    ``keys`` is an integer array ``[..., n]`` with ``n`` a power of two from 2 to 128; ``payloads`` may be any array
    ``[..., n]`` or ``None``. Returns ``(keys, payloads)`` in order. Equal keys keep their order if ``stable``;
    otherwise they end where the network puts them, given that its comparators never exchange equal keys.
    """
    order = sort_order(keys, network=network, descending=descending, stable=stable)
    return np.take_along_axis(np.asarray(keys), order, -1), (
        None if payloads is None else np.take_along_axis(np.asarray(payloads), order, -1)
    )


def sort_order(keys, *, network="bitonic", descending=False, stable=False):
    """Where in the unsorted vector each element of the sorted one comes from: an index array ``[..., n]``.

    K. E. Batcher, "Sorting networks and their applications", AFIPS 1968.
    """
    keys = np.asarray(keys)
    n = keys.shape[-1]
    if not np.issubdtype(keys.dtype, np.integer):
        raise TypeError(f"keys must be integers, not {keys.dtype}")
    BitonicSorterParameters(n=n, network=network, descending=descending, stable=stable)
    # Inverting all bits turns the order around, for signed and unsigned integers alike.
    ranks = ~keys if descending else keys
    if stable:
        return np.argsort(ranks, axis=-1, kind="stable")
    ranks = ranks.astype(np.uint64 if keys.dtype == np.uint64 else np.int64)
    items = np.stack([ranks, np.broadcast_to(np.arange(n, dtype=ranks.dtype), ranks.shape)])
    return _merge_sort(items, _MERGES[network])[1].astype(np.int64)


# Below, items are arrays [2, ..., length]: ranks, and the indices that move with them.


def _compare_exchange(first, second):
    """Order each pair; equal ranks are not exchanged."""
    exchange = second[0] < first[0]
    return np.where(exchange, second, first), np.where(exchange, first, second)


def _merge_sort(items, merge):
    """Bottom up: all runs of one length are merged at once, each on an axis of its own."""
    *outer, n = items.shape
    run = 1
    while run < n:
        run *= 2
        runs = items.reshape(*outer, n // run, run)
        items = merge(runs[..., : run // 2], runs[..., run // 2 :]).reshape(*outer, n)
    return items


def _bitonic_merge(low, high):
    """Compare two sorted runs, the second read backwards; both results are bitonic."""
    leading, trailing = _compare_exchange(low, high[..., ::-1])
    return np.concatenate([_half_clean(leading), _half_clean(trailing[..., ::-1])], -1)


def _half_clean(items):
    """Sort a bitonic sequence by comparing its halves, then theirs, and so on."""
    half = items.shape[-1] // 2
    if not half:
        return items
    return np.concatenate([_half_clean(part) for part in _compare_exchange(items[..., :half], items[..., half:])], -1)


def _odd_even_merge(low, high):
    """Merge the elements at even and at odd positions separately, then order neighbours."""
    if low.shape[-1] == 1:
        return np.concatenate(_compare_exchange(low, high), -1)
    even = _odd_even_merge(low[..., ::2], high[..., ::2])
    odd = _odd_even_merge(low[..., 1::2], high[..., 1::2])
    merged = np.stack([even, odd], -1).reshape(*even.shape[:-1], -1)
    merged[..., 1:-1:2], merged[..., 2:-1:2] = _compare_exchange(odd[..., :-1], even[..., 1:])
    return merged


_MERGES = {"bitonic": _bitonic_merge, "odd_even": _odd_even_merge}
