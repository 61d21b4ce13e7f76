"""Operand types of the command table: what a command reads and writes, how far, and what must be valid before.

:mod:`golden.spec.commands` has the table. Everything here is data: names of fields of a command, and names of sizes
of a core (:class:`golden.spec.sizes.CoreSizes`).
"""

from dataclasses import dataclass, field
from typing import Any

__all__ = ["DEPTH", "Form", "MaskRows", "MassRows", "Matrix", "RoundUp", "Slots", "TokenList", "Words", "encoded"]

DEPTH = {
    "imem": "imem_depth",
    "wmem": "wmem_depth",
    "vmem": "vmem_depth",
    "scores": "omem_depth",
    "probabilities": "omem_depth",
    "partial": "pmem_depth",
}
"""The memories that are addressed in words, and the parameter with the depth of each memory or of its banks."""


@dataclass(frozen=True)
class RoundUp:
    """A factor of a length: the words for the elements of a field, plus one if a flag is set."""

    field: str
    divisor: str  # parameter with the elements of a word
    flag: str | None = None


@dataclass(frozen=True)
class Slots:
    """A factor of a length: the slots a bank needs for the tokens of a field, a power of two, times words of each."""

    field: str
    words: str | None = None  # size with the words of a slot; one by default

    def words_of(self, sizes):
        """Words of a slot."""
        return 1 if self.words is None else getattr(sizes, self.words)


@dataclass(frozen=True)
class Matrix:
    """Rows in IMEM: row r begins at word ``base + r * stride`` and has ``elements`` elements, in whole words.

    With ``column`` they begin at the element that this field says, a multiple of the size ``column_step``.
    """

    base: str
    elements: str
    n_rows: str | int = "n_rows"
    chained: bool = False  # rows can be handed over one by one to or from another command of a chain
    stride_may_be_0: bool = False  # stride 0: one row for all rows; else it is at least the words of a row
    column: str | None = None
    column_step: str | None = None
    memory: str = field(default="imem", init=False)

    @property
    def stride(self):
        """The field with the words from row to row."""
        return f"{self.base}_stride"

    @property
    def fields(self):
        return (self.base, self.stride, self.elements, *((self.column,) if self.column else ()))


@dataclass(frozen=True)
class Words:
    """Words ``base`` and following of a memory, of each of its banks; their number is the product of ``length``.

    A length has one factor, a factor and :class:`Slots`, or two factors.
    """

    memory: str
    base: str
    length: tuple  # of names of fields, RoundUp and Slots
    chained: bool = False
    layout: tuple = ()  # fields that determine the layout: equal in both commands of a hand-over

    @property
    def fields(self):
        factors = (item if isinstance(item, str) else item.field for item in self.length)
        return (self.base, *factors, *self.layout)

    @property
    def factors(self):
        """The factors of the length that are not slots."""
        return tuple(item for item in self.length if not isinstance(item, Slots))

    @property
    def slots(self):
        """The slots among its factors, or None."""
        return next((item for item in self.length if isinstance(item, Slots)), None)


def encoded(memory, base):
    """Scores or probabilities of the elements selected by a mask, row after row; space for all elements is required."""
    return Words(memory, base, ("n_rows", Slots("n_out")), chained=True, layout=("mask", "n_out"))


@dataclass(frozen=True)
class MaskRows:
    """Rows ``first_row`` to ``first_row + n_rows - 1`` of the mask whose number is in a field, or the listed ones.

    With ``flag``, only if that flag is set. Read: the rows must be valid; mask 0 has a single row, used for all rows.
    Written: the rows are valid afterwards; those before ``first_row`` must be valid before. Only a transfer writes
    mask 0 (then n_rows is 1 and first_row 0). A gated command keeps the rows that are not listed; all rows up to the
    last one that is listed must be valid before.
    """

    number: str
    flag: str | None = None
    memory: str = field(default="mask", init=False)

    @property
    def fields(self):
        return (self.number, "first_row", "n_rows")


@dataclass(frozen=True)
class MassRows:
    """Retained mass of these rows, read or written under the same rules as rows of a mask."""

    flag: str | None = None
    memory: str = field(default="mass", init=False)
    fields = ("first_row", "n_rows")


@dataclass(frozen=True)
class TokenList:
    """The token list: it must be valid if it is read."""

    flag: str | None = None
    memory: str = field(default="tokens", init=False)
    fields = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Form:
    """One row of the command table: an opcode, for some of its functions if these differ in what they read or write."""

    opcode: Any
    functions: tuple = ()  # legal ones; none: the field is ignored
    unit: Any = None  # None: the controller itself
    is_transfer: bool = False  # data moves between a memory and the outside
    is_exclusive: bool = False  # no other command uses its memories meanwhile
    is_in_place: bool = False  # the result may lie exactly where an operand lies, which it replaces
    flags: tuple = ()
    exclusive_flags: tuple = ()  # of which at most one may be set
    bounds: dict = field(default_factory=dict)  # field: (lowest, the size that is the highest, or None)
    reads: tuple = ()
    writes: tuple = ()
    values: tuple = ()  # further fields: they may have any value

    def __post_init__(self):
        slots = {operand.slots.field for operand in self.operands(Words) if operand.slots is not None}
        if len(slots) > 1:
            raise ValueError(f"{self.name}: all operands must have slots of the same field, not of {slots}")
        for operand in self.operands(Words):
            if not 1 <= len(operand.factors) <= 2 - (operand.slots is not None):
                raise ValueError(f"{self.name}: {operand.base} must have a length of at most two factors")

    def has_function(self, function):
        """Whether it is the row for this function."""
        return not self.functions or function in self.functions

    @property
    def is_rowwise(self):
        """Whether it computes each row of IMEM from the same row, of equal length, of one or more matrices."""
        operands = [*self.reads, *self.writes]
        return self.chained(self.reads) is not None and all(
            isinstance(operand, Matrix) and (operand.elements, operand.n_rows) == ("n_in", "n_rows")
            for operand in operands
        )

    @property
    def name(self):
        """The opcode, and the functions where there is only one row of the table for them."""
        names = " / ".join(item.name for item in self.functions if hasattr(item, "name"))
        return f"{self.opcode.name} {names}".strip()

    def operands(self, kind):
        """Operands of a class, first those that are read."""
        return [operand for operand in (*self.reads, *self.writes) if isinstance(operand, kind)]

    def of_memory(self, memory):
        """``(read, written)`` operands of a memory."""
        return tuple([operand for operand in part if operand.memory == memory] for part in (self.reads, self.writes))

    def chained(self, operands):
        """The one of ``operands`` that is handed over row by row, or None."""
        return next((operand for operand in operands if getattr(operand, "chained", False)), None)

    @property
    def fields(self):
        """Names of the fields that it uses beside opcode, function and flags."""
        names = {*self.bounds, *self.values}
        if "gated" in self.flags:
            names.add("first_row")
        for operand in (*self.reads, *self.writes):
            names.update(operand.fields)
        return names - {"function"}
