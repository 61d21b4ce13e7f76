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
        """A transfer from row 0 on replaces all rows; any other command keeps the rows beyond its own."""
        end = command.first_row + command.n_rows
        if form.is_transfer and command.first_row == 0:
            return end
        return before if command.has("gated") else max(before, end)

    @property
    def largest_token(self):
        """The largest entry of the token list, 0 if it is empty or missing."""
        return max(self.tokens or [], default=0)


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
            lambda: any(item.end > getattr(sizes, DEPTH[item.memory]) for item in extents(command, sizes, state)),
        ),
        (ErrorCode.OVERLAP, lambda: _overlaps(form, command, sizes, state)),
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
    if _uses_first_row(form, command) and command.first_row + command.n_rows > sizes.max_tokens:
        return False
    for operand in form.operands(Matrix):
        stride = getattr(command, operand.stride)
        is_short = stride < words_for(_row_end(operand, command), sizes.row_word)
        if is_short and not (operand.stride_may_be_0 and stride == 0):
            return False
        if operand.column and getattr(command, operand.column) % getattr(sizes, operand.column_step):
            return False
    for operand in form.operands(MaskRows):
        number = getattr(command, operand.number)
        if not _is_used(operand, command):
            continue
        if number >= sizes.n_masks or number == 0 and not _fits_mask_0(form, operand, command):
            return False
        if number and not command.has("gated") and command.first_row + command.n_rows > sizes.rows_a_mask:
            return False
    return True


def _row_end(operand, command):
    """Elements from the beginning of a matrix's row to its last one."""
    return getattr(command, operand.elements) + (getattr(command, operand.column) if operand.column else 0)


def _uses_first_row(form, command):
    return command.has("gated") or bool(form.operands(MaskRows) or form.operands(MassRows))


def _fits_mask_0(form, operand, command):
    """Mask 0 has one row for all rows: transfers move just that row, other commands only read it."""
    return command.first_row + command.n_rows == 1 if form.is_transfer else operand in form.reads


def operand_length(operand, command, sizes):
    """The length of :class:`golden.spec.operands.Words`."""
    length = 1
    for factor in operand.length:
        if isinstance(factor, RoundUp):
            words = words_for(getattr(command, factor.field), getattr(sizes, factor.divisor))
            length *= words + (factor.flag is not None and command.has(factor.flag))
        elif isinstance(factor, Slots):
            length *= sizes.slots_of(getattr(command, factor.field)) * factor.words_of(sizes)
        else:
            length *= getattr(command, factor)
    return length


def extents(command, sizes, state=None):
    """The extents of a command whose sizes are legal, reads first; those of a gated one depend on the token list.

    A matrix extends from its first to its last word, gaps between rows included. Gated commands have the extents of all
    rows up to the last one that is listed; scores and probabilities those of n_rows rows and a mask of ones.
    """
    form = form_of(command)
    largest = state.largest_token if state is not None else 0
    return [
        _extent(operand, command, sizes, largest, is_written)
        for operands, is_written in ((form.reads, False), (form.writes, True))
        for operand in operands
        if isinstance(operand, Matrix | Words)
    ]


def _extent(operand, command, sizes, largest_token, is_written):
    first = getattr(command, operand.base)
    if isinstance(operand, Words):
        length = operand_length(operand, command, sizes)
    else:
        if isinstance(operand.n_rows, int):
            last_row = operand.n_rows - 1
        else:
            last_row = largest_token if command.has("gated") else getattr(command, operand.n_rows) - 1
        words = words_for(_row_end(operand, command), sizes.row_word)
        length = last_row * getattr(command, operand.stride) + words
    return Extent(operand.memory, first, first + length, is_written)


def _is_same_place(one, other, command):
    """Whether two matrices are one: their rows lie in the same words."""
    return all(
        isinstance(operand, Matrix) and operand.n_rows == "n_rows" and operand.elements == "n_in"
        for operand in (one, other)
    ) and all(
        getattr(command, name) == getattr(command, same)
        for name, same in ((one.base, other.base), (one.stride, other.stride))
    )


def _overlaps(form, command, sizes, state):
    for read in form.reads:
        for written in form.writes:
            if not all(isinstance(operand, Matrix | Words) for operand in (read, written)):
                continue
            if form.is_in_place and _is_same_place(read, written, command):
                continue
            places = [
                _extent(operand, command, sizes, state.largest_token, is_written)
                for operand, is_written in ((read, False), (written, True))
            ]
            if places[0].meets(places[1]):
                return True
    numbers = [getattr(command, operand.number) for operand in form.operands(MaskRows) if _is_used(operand, command)]
    return len(set(numbers)) < len(numbers)


def _rows_needed(form, operand, command, state):
    """Rows of a mask or of the retained mass that must be valid before: those that are read, or stay before others."""
    if not _is_used(operand, command):
        return 0
    if command.has("gated"):
        return state.largest_token + 1
    return command.first_row + (command.n_rows if operand in form.reads else 0)


def _mask_missing(form, command, state):
    for operand in form.operands(MaskRows):
        number = getattr(command, operand.number)
        needed = _rows_needed(form, operand, command, state)
        # Where the number is beyond n_masks, the operand is not used.
        if needed and state.mask_count[number] < (needed if number else 1):
            return True
    return False


def _tokens_missing(form, command, state):
    is_read = any(isinstance(operand, TokenList) for operand in form.reads)
    return state.tokens is None and (command.has("gated") or is_read)


def _mass_missing(form, command, state):
    return any(state.mass_count < _rows_needed(form, operand, command, state) for operand in form.operands(MassRows))
