"""Look-up tables of the function units: exponential, reciprocal, reciprocal square root, GELU, SiLU, for each format.

GELU, with ``m`` in [1, 2) the significand and ``2**e`` the power of two of an argument's magnitude a, is even apart
from half of the argument: ``x * Phi(x) = x / 2 + a * (Phi(a) - 1/2)``. Up to 2 the tables hold the even part, divided
by ``2**e``. From 2 on they hold ``a * Phi(-a)``, which tends to 0, divided by 2: the magnitude of the result for a
negative argument, and the deficit from x for a positive one. SiLU, ``x / (1 + exp(-x))``, has the same form, with the
logistic function in place of Phi, but ``a * sigmoid(-a)`` falls slower: lines go on to 16.
"""

from dataclasses import dataclass
from functools import cache

from golden.spec.tables import LinearTable, line, read_for

__all__ = [
    "GELU_FRACTION",
    "GELU_OCTAVES",
    "GELU_TAIL_INDEX_WIDTH",
    "SILU_OCTAVES",
    "ExponentialTables",
    "GeluTables",
    "SiluTables",
    "exponential_tables",
    "gelu_tables",
    "reciprocal_root_table",
    "reciprocal_table",
    "silu_tables",
]

GELU_OCTAVES = 12
"""Octaves below 2 that have lines; smaller arguments x give x / 2."""
GELU_FRACTION = 17
"""Fraction bits of the looked-up values, after interpolation."""
GELU_TAIL_INDEX_WIDTH = 6
"""Bits of the fraction that choose the constant for arguments from 4 on."""


SILU_OCTAVES = 3
"""Octaves from 2 on that have lines in SiLU's tables; larger arguments x give x or 0."""


@dataclass(frozen=True)
class ExponentialTables:
    """Constants of exp for one format: ``e**x = 2**(x * log2(e))``, the integer part gives the exponent."""

    power: LinearTable
    """2**f for f in [0, 1), fitted half a unit above f: the product is truncated, and so is its negative."""
    top_exponent: int
    """Arguments of 2**(top_exponent + 1) and more give infinity or zero."""
    log2e_digits: tuple[tuple[int, int], ...]
    """log2(e) * 2**product_fraction as signed powers of two."""
    product_fraction: int = 14
    """Fraction bits of significand * log2(e) after truncation."""
    guard: int = 3
    """Guard bits of the addends of that product, below these fraction bits."""
    product_bias: int = 2
    """Constant added at the last guard bit, to compensate for the truncation of the addends."""

    def addends(self, fraction_width):
        """``[(sign, shift), ...]``: the product is the sum of the significands shifted left (right if negative)."""
        return [(sign, weight + self.guard - fraction_width) for sign, weight in self.log2e_digits]


@dataclass(frozen=True)
class GeluTables:
    """Tables of GELU for one format."""

    even: tuple[LinearTable, ...]
    """``a * (Phi(a) - 1/2) / 2**e`` for e from 1 - GELU_OCTAVES to 0."""
    rest: LinearTable
    """``a * Phi(-a) / 2`` for a in [2, 4)."""
    tail: tuple[int, ...]
    """The same for a from 4 on, in steps of 1/16, with GELU_FRACTION fraction bits; zero after the last one."""


@dataclass(frozen=True)
class SiluTables:
    """Tables of SiLU for one format."""

    even: tuple[LinearTable, ...]
    """``a * (sigmoid(a) - 1/2) / 2**e`` for e from 1 - GELU_OCTAVES to 0."""
    rest: tuple[LinearTable, ...]
    """``a * sigmoid(-a) / 2`` for e from 1 to SILU_OCTAVES."""


@cache
def exponential_tables(fmt):
    """The tables of exp for a format."""
    content = read_for("exponential", fmt)
    return ExponentialTables(
        line(content["power"]), content["top_exponent"], tuple(map(tuple, content["log2e_digits"]))
    )


@cache
def reciprocal_table(fmt):
    """2 / (1 + f), f the fraction of the significand."""
    return line(read_for("reciprocal", fmt))


@cache
def reciprocal_root_table(fmt):
    """2 / sqrt(m), m the significand in [1, 2) or, where the exponent is odd, in [2, 4)."""
    return line(read_for("reciprocal_root", fmt))


@cache
def gelu_tables(fmt):
    """The tables of GELU for a format. Lines are rounded down, so they are fitted half a last place higher."""
    content = read_for("gelu", fmt)
    return GeluTables(tuple(map(line, content["even"])), line(content["rest"]), tuple(content["tail"]))


@cache
def silu_tables(fmt):
    """The tables of SiLU for a format, fitted as those of GELU."""
    content = read_for("silu", fmt)
    return SiluTables(tuple(map(line, content["even"])), tuple(map(line, content["rest"])))
