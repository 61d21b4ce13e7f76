"""Cutting of rows and columns into pieces."""

__all__ = ["cut"]


def cut(n, most):
    """``(first, number)`` of pieces of about equal size, at most ``most``."""
    size = -(-n // -(-n // max(1, most)))
    return [(first, min(size, n - first)) for first in range(0, n, size)]
