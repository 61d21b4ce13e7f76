"""What a command touches, and whether a later command must wait for it or may follow it row by row.

The rules are those of docs/commands.md, "Order", read from the command table.
"""

from dataclasses import dataclass, field
from typing import Any

from golden.core.checks import operand_length
from golden.spec.commands import form_of
from golden.spec.operands import MaskRows, MassRows, Matrix, TokenList, Words
from golden.spec.sizes import words_for

__all__ = ["Footprint", "follows", "footprint", "waits"]


@dataclass(frozen=True)
class Footprint:
    """Words and rows of one command."""

    command: Any
    form: Any
    places: tuple  # (base field, memory, first, end, is_written)
    rows: tuple  # first and end, of masks and of the retained mass
    read: frozenset = field(default_factory=frozenset)  # ("mask", number), ("mass", 0), ("tokens", 0)
    written: frozenset = field(default_factory=frozenset)
    exclusive: frozenset = field(default_factory=frozenset)  # memories that no other command uses meanwhile
    gives: str | None = None  # the memory whose rows are handed over
    takes: str | None = None
    is_in_place: bool = False
    begins_late: bool = False  # the result does not begin with its rows

    def place(self, base):
        return next(place for place in self.places if place[0] == base)

    @property
    def memories(self):
        names = {place[1] for place in self.places}
        return names | {kind for kind, _ in (*self.read, *self.written)}


def footprint(command, sizes, largest_token=0):
    """The :class:`Footprint` of a legal command."""
    form, places, read, written = form_of(command), [], set(), set()
    is_gated = command.has("gated")
    if is_gated:
        read.add(("tokens", 0))
    for operands, is_written, found in ((form.reads, False, read), (form.writes, True, written)):
        for operand in operands:
            if isinstance(operand, Matrix | Words):
                places.append(_place(operand, command, sizes, largest_token, is_written))
            elif getattr(operand, "flag", None) is None or command.has(operand.flag):
                found.add(_rows_of(operand, command))
    given, taken = form.chained(form.writes), form.chained(form.reads)
    return Footprint(
        command,
        form,
        tuple(places),
        (0, largest_token + 1) if is_gated else (command.first_row, command.first_row + command.n_rows),
        frozenset(read),
        frozenset(written),
        frozenset(operand.memory for operand in (*form.reads, *form.writes)) if form.is_exclusive else frozenset(),
        given and given.memory,
        taken and taken.memory,
        form.is_in_place
        and (command.source, command.source_stride) == (command.destination, command.destination_stride),
        bool(command.column) and any(operand.column for operand in form.operands(Matrix)),
    )


def _place(operand, command, sizes, largest_token, is_written):
    first = getattr(command, operand.base)
    if isinstance(operand, Words):
        return operand.base, operand.memory, first, first + operand_length(operand, command, sizes), is_written
    last_row = largest_token if command.has("gated") else command.n_rows - 1
    if isinstance(operand.n_rows, int):
        last_row = operand.n_rows - 1
    elements = getattr(command, operand.elements) + (getattr(command, operand.column) if operand.column else 0)
    end = first + last_row * getattr(command, operand.stride) + words_for(elements, sizes.row_word)
    return operand.base, operand.memory, first, end, is_written


def _rows_of(operand, command):
    if isinstance(operand, MaskRows):
        return "mask", getattr(command, operand.number)
    assert isinstance(operand, MassRows | TokenList)
    return operand.memory, 0


def _takes(later, earlier, is_ascending):
    """The later one reads the rows that the earlier one writes, in the same place."""
    if later.takes is None or later.takes != earlier.gives:
        return False
    new, old = later.command, earlier.command
    gated = new.has("gated")
    if new.n_rows != old.n_rows or gated != old.has("gated"):
        return False
    if gated and not (is_ascending and new.first_row == old.first_row):
        return False
    if new.source != old.destination:
        return False
    if later.takes == "imem":
        fits = new.source_stride == old.destination_stride and not earlier.begins_late
        return fits and later.place("source")[3] <= earlier.place("destination")[3]
    return new.first_row == old.first_row and new.n_out == old.n_out and new.mask == old.mask


def _conflict(later, earlier, takes):
    """They share a word that one of them writes, or rows, other than those that are handed over."""
    excused = set()
    if takes:
        excused.add(("source", "destination"))
        if later.is_in_place:
            excused.add(("destination", "destination"))
            if earlier.is_in_place:
                excused.add(("destination", "source"))
    for base, memory, first, end, is_written in later.places:
        for other, place, begin, stop, was_written in earlier.places:
            is_shared = memory == place and (is_written or was_written) and first < stop and begin < end
            if is_shared and (base, other) not in excused:
                return True
    for new, old in ((later.read, earlier.written), (later.written, earlier.read), (later.written, earlier.written)):
        for kind, number in new & old:
            rows_meet = later.rows[0] < earlier.rows[1] and earlier.rows[0] < later.rows[1]
            if rows_meet or kind == "tokens" or (kind == "mask" and number == 0):
                return True
    alone = later.exclusive | earlier.exclusive
    return bool(alone and alone & later.memories & earlier.memories)


def waits(later, earlier, is_ascending=True):
    """Whether the later command begins only when the earlier one, of another unit, is done."""
    return _conflict(later, earlier, _takes(later, earlier, is_ascending))


def follows(later, earlier, is_ascending=True):
    """Whether it takes the earlier one's rows one by one, and there is no reason to wait."""
    takes = _takes(later, earlier, is_ascending)
    return takes and not _conflict(later, earlier, takes)
