"""Division of an unsigned number by a constant."""

from amaranth.hdl import Value

__all__ = ["quotient", "remainder"]


def _reciprocal(width, divisor):
    """``(factor, shift)`` with ``x // divisor == x * factor >> shift`` for every x of ``width`` bits.

    The factor is 2**shift / divisor rounded up; that is exact if its excess, times the largest x, stays below a last
    place: ``(factor * divisor - 2**shift) * 2**width <= 2**shift``.
    """
    shift = 0
    while True:
        factor = -(-(1 << shift) // divisor)
        if (factor * divisor - (1 << shift)) << width <= 1 << shift:
            return factor, shift
        shift += 1


def quotient(value, divisor):
    """``value // divisor``, as a shift or as a product with the reciprocal."""
    value = Value.cast(value)
    power = (divisor & -divisor).bit_length() - 1
    value, odd = value[power:], divisor >> power
    if odd == 1 or not len(value):
        return value
    factor, shift = _reciprocal(len(value), odd)
    return (value * factor)[shift : shift + len(value)]


def remainder(value, divisor):
    """``value % divisor``."""
    value = Value.cast(value)
    return (value - quotient(value, divisor) * divisor)[: (divisor - 1).bit_length()]
