"""Clocks that the core's registers take, from the parameters of the core alone.

Each number repeats what the hardware's pipelines have; ``verif/core/test_latencies.py`` compares them.
"""

from dataclasses import dataclass

from golden.spec.commands import COMMANDS
from golden.spec.operands import Words
from golden.spec.sizes import words_for

__all__ = ["Latencies", "check_clocks", "layer_norm_clocks", "score_clocks", "softmax_clocks"]

_READING = 7  # the vector unit: from start to the first word of a row
_VECTOR_UNIT = 5
_LEVELS_A_STAGE, _LEVELS_ALONE = 6, 2
_MOST_LANES_ALONE = 18  # of a dot product whose adders are one stage


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """Latencies of a core; the defaults are those of edge. :meth:`of` gives those of any core."""

    command: int = 16  # from a command to the next one, where nothing waits
    array: int = 3  # from start to the first row's mask at the array
    array_query: int = 2  # from there to the earliest clock of its query
    product: int = 2  # the same for MATMUL and PROJECT, whose mask is not read
    product_query: int = 3
    score: int = 7  # from the last beat of a dot product to its score
    array_end: int = 1  # from a row's report to where its results can be read
    softmax: int = 36  # from start to where a row of one step can be read
    softmax_mask: int = 1  # added to it by make_mask
    spmm: int = 7  # from start to where a row can be read, beside the array's schedule
    elementwise: int = 14  # from start to where a row of one piece can be read
    layer_norm: int = 49  # the same, beside the time that gamma and beta take
    store: int = 3  # from where a row can be read to its last beat's end
    project: int = 6  # from the last columns of PROJECT to where they can be read
    done: int = 1  # from where the last row can be read to the end of the command

    @classmethod
    def of(cls, sizes):
        """Latencies of a core of these sizes."""
        return cls(
            command=4 + check_clocks(sizes),
            score=1 + score_clocks(sizes.n_lanes),
            softmax=1 + softmax_clocks(sizes.n_banks),
            elementwise=_READING + _VECTOR_UNIT + 2,
            layer_norm=_READING + layer_norm_clocks(sizes.n_vector_lanes) + 3,
        )


def _levels(n):
    """Levels of full adders that leave two numbers of n: Dadda's heights 2, 3, 4, 6, 9 ... below n."""
    levels, height = 0, 2
    while height < n:
        levels, height = levels + 1, height * 3 // 2
    return levels


def _tree_clocks(n):
    """Registers of a sum of n numbers."""
    if n == 1:
        return 0
    levels = _levels(n)
    return 1 if levels <= _LEVELS_ALONE else 1 + words_for(levels, _LEVELS_A_STAGE)


def score_clocks(n_lanes):
    """From the last beat of a dot product to its score at the unit."""
    return 6 if n_lanes <= _MOST_LANES_ALONE else 7


def softmax_clocks(n_banks):
    """From start to the first result: a row of one step through maximum, powers, sum, products and retained mass."""
    maximum = max(1, words_for((n_banks - 1).bit_length(), 2))
    tree = _tree_clocks(n_banks)
    return 6 + maximum + (tree + 7) + (tree + 2) + 14


def layer_norm_clocks(n_lanes):
    """From a row of one piece to its result."""
    return 35 + _tree_clocks(n_lanes) + _tree_clocks(n_lanes + 1)


def check_clocks(sizes):
    """Of a command's check, which multiplies lengths bit by bit: rows less one, and the last factor of a length."""
    highest = [(1 << sizes.token_width) - 1]
    for form in COMMANDS:
        for operand in form.operands(Words):
            if len(operand.factors) == 2:
                factor = operand.factors[1]
                bound = getattr(sizes, form.bounds[factor.field][1])
                highest.append(words_for(bound, getattr(sizes, factor.divisor)) + (factor.flag is not None))
    return 4 + max(highest).bit_length()
