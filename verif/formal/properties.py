"""What a property is: a statement about a block at some sizes, how it is checked, and by which engine."""

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Property"]


@dataclass(frozen=True)
class Property:
    """``check(checker, block)`` makes claims about the block of each of ``sizes``, ``{parameter: value}``.

    Engines: ``pdr`` proves for runs of any length; ``bmc`` looks at runs of ``depth`` clocks, which is called bounded;
    ``sat`` proves claims about combinational blocks for all inputs; ``exhaustive`` and ``class`` evaluate the circuit
    for all inputs, and for the inputs that the statement names. Covers must be reached in ``reach`` (else ``depth``)
    clocks.
    """

    unit: str
    statement: str
    block: type
    sizes: list[dict]
    check: Callable
    engine: str = "pdr"
    depth: int = 30
    reach: int | None = None
    timeout: int = 600
    quick: bool = False
    free: tuple = ()
    """Classes of the parts that may give anything at any time: what is proved then does not depend on them."""
    expected: Callable | None = None
    """``expected(block, *words)``: the results that must come, as integers, from a model in NumPy."""

    @property
    def name(self):
        return f"{self.unit}: {self.statement}"
