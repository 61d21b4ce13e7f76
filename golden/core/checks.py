"""Command checks of the core: the command table of :mod:`golden.spec.commands`, interpreted.

Checks run in the order of :class:`golden.spec.commands.ErrorCode`; the first one that fails is reported. Later checks
can rely on earlier ones, so sums and products are bounded. docs/commands.md has the conditions.
"""

from dataclasses import dataclass

from golden.spec.commands import FLAGS, ErrorCode, Opcode, form_of, has_form
from golden.spec.operands import DEPTH, MaskRows, MassRows, Matrix, RoundUp, Slots, TokenList, Words
from golden.spec.sizes import words_for

__all__ = ["Extent", "WrittenState", "check", "extents", "operand_length"]


@dataclass
class WrittenState:
    """What has been written: valid rows of each mask, valid retained masses, the token list (None if there is none)."""

    mask_count: list
    mass_count: int = 0
    tokens: list | None = None

    def update(self, command):
        """Record the mask rows and retained masses that a command writes; LOAD and CTR record the token list."""
        form = form_of(command)
        for operand in form.writes:
            if not isinstance(operand, MaskRows | MassRows) or not _is_used(operand, command):
                continue
            if isinstance(operand, MaskRows):
                number = getattr(command, operand.number)
                self.mask_count[number] = self._rows(form, command, self.mask_count[number])
            else:
                self.mass_count = self._rows(form, command, self.mass_count)

    @staticmethod
    def _rows(form, command, before):
        """A transfer replaces all rows; a row-processing command keeps the rows beyond its own."""
        return command.n_rows if form.is_transfer else max(before, command.n_rows)


@dataclass(frozen=True)
class Extent:
    """Words ``first`` to ``end`` - 1 of a memory (of each of its banks) that a command reads or writes."""

    memory: str
    first: int
    end: int
    is_written: bool = False

    def meets(self, other):
        return self.memory == other.memory and self.first < other.end and other.first < self.end


def check(command, sizes, state):
    """The first reason to refuse a command, ``ErrorCode.NONE`` if there is none."""
    if command.opcode not in list(Opcode):
        return ErrorCode.UNKNOWN_OPCODE
    if not has_form(command) or not _flags_fit(form := form_of(command), command):
        return ErrorCode.UNKNOWN_FUNCTION
    for code, is_wrong in (
        (ErrorCode.SIZE, lambda: not _sizes_fit(form, command, sizes)),
        (
            ErrorCode.RANGE,
            lambda: any(item.end > getattr(sizes, DEPTH[item.memory]) for item in extents(command, sizes)),
        ),
        (ErrorCode.OVERLAP, lambda: _overlaps(form, command, sizes)),
        (ErrorCode.MASK_MISSING, lambda: _mask_missing(form, command, state)),
        (ErrorCode.TOKENS_MISSING, lambda: _tokens_missing(form, command, state)),
        (ErrorCode.MASS_MISSING, lambda: _mass_missing(form, command, state)),
    ):
        if is_wrong():
            return code
    return ErrorCode.NONE


def _flags_fit(form, command):
    legal = sum(FLAGS[name] for name in form.flags)
    return not command.flags & ~legal and sum(command.has(name) for name in form.exclusive_flags) <= 1


def _is_used(operand, command):
    """Whether an operand is read or written by this command: some depend on a flag."""
    return operand.flag is None or command.has(operand.flag)


def _sizes_fit(form, command, sizes):
    for name, (lowest, highest) in form.bounds.items():
        value = getattr(command, name)
        if value < lowest or highest is not None and value > getattr(sizes, highest):
            return False
    for operand in form.operands(Matrix):
        stride = getattr(command, operand.stride)
        is_short = stride < words_for(getattr(command, operand.elements), sizes.row_word)
        if is_short and not (operand.stride_may_be_0 and stride == 0):
            return False
    for operand in form.operands(MaskRows):
        number = getattr(command, operand.number)
        if _is_used(operand, command) and (
            number >= sizes.n_masks or number == 0 and not _fits_mask_0(form, operand, command)
        ):
            return False
    return True


def _fits_mask_0(form, operand, command):
    """Mask 0 has one row for all rows: transfers move just that row, other commands only read it."""
    return command.n_rows == 1 if form.is_transfer else operand in form.reads


def operand_length(operand, command, sizes):
    """The length of :class:`golden.spec.operands.Words`."""
    length = 1
    for factor in operand.length:
        if isinstance(factor, RoundUp):
            words = words_for(getattr(command, factor.field), getattr(sizes, factor.divisor))
            length *= words + (factor.flag is not None and command.has(factor.flag))
        elif isinstance(factor, Slots):
            length *= sizes.slots_of(getattr(command, factor.field))
        else:
            length *= getattr(command, factor)
    return length


def extents(command, sizes):
    """The extents of a command whose sizes are legal, reads first.

    A matrix extends from its first to its last word, gaps between rows included. Gated commands have the extents of all
    n_rows rows, scores and probabilities those of a mask of ones.
    """
    form = form_of(command)
    return [
        _extent(operand, command, sizes, is_written)
        for operands, is_written in ((form.reads, False), (form.writes, True))
        for operand in operands
        if isinstance(operand, Matrix | Words)
    ]


def _extent(operand, command, sizes, is_written):
    first = getattr(command, operand.base)
    if isinstance(operand, Words):
        length = operand_length(operand, command, sizes)
    else:
        n_rows = operand.n_rows if isinstance(operand.n_rows, int) else getattr(command, operand.n_rows)
        words = words_for(getattr(command, operand.elements), sizes.row_word)
        length = (n_rows - 1) * getattr(command, operand.stride) + words
    return Extent(operand.memory, first, first + length, is_written)


def _overlaps(form, command, sizes):
    parts = extents(command, sizes)
    written = [part for part in parts if part.is_written]
    if any(part.meets(other) for part in parts if not part.is_written for other in written):
        return True
    numbers = [getattr(command, operand.number) for operand in form.operands(MaskRows) if _is_used(operand, command)]
    return len(set(numbers)) < len(numbers)


def _is_needed(form, operand, command):
    """Whether rows must be valid: those that are read, and those that a gated command does not overwrite."""
    return _is_used(operand, command) and (operand in form.reads or command.has("gated"))


def _mask_missing(form, command, state):
    for operand in form.operands(MaskRows):
        number = getattr(command, operand.number)
        needed = command.n_rows if number else 1
        if _is_needed(form, operand, command) and state.mask_count[number] < needed:
            return True
    return False


def _tokens_missing(form, command, state):
    tokens = state.tokens
    if command.has("gated"):
        return tokens is None or len(tokens) > command.n_rows or max(tokens, default=0) >= command.n_rows
    return tokens is None and any(isinstance(operand, TokenList) for operand in form.reads)


def _mass_missing(form, command, state):
    needed = any(_is_needed(form, operand, command) for operand in form.operands(MassRows))
    return needed and state.mass_count < command.n_rows
