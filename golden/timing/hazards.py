"""Which command waits for an earlier one, or follows it row by row: docs/commands.md, on the command table."""

from dataclasses import dataclass
from typing import Any

from golden.core.checks import extents
from golden.spec.commands import form_of
from golden.spec.operands import MaskRows, MassRows, Matrix, TokenList, Words

__all__ = ["Footprint", "footprint_of", "relation"]

WAITS, FOLLOWS = "waits", "follows"


@dataclass(frozen=True)
class Footprint:
    """What a command touches, of a command that the core accepts."""

    command: Any
    form: Any
    places: tuple  # (base field, Extent)
    marks: tuple  # (memory, number, first row, end row, is_written): masks, retained mass, token list
    gives: Any  # the operand whose rows it hands over, or None
    takes: Any

    @property
    def is_in_place(self):
        """Whether its result lies exactly where its first operand lies."""
        command = self.command
        return (
            self.form.is_in_place
            and command.source == command.destination
            and command.source_stride == command.destination_stride
        )


def _marks(form, command, state):
    """Rows of masks and of the retained mass, and the token list."""
    found = []
    is_gated = command.has("gated")
    if is_gated:
        found.append(("tokens", 0, 0, 1, False))
    for operands, is_written in ((form.reads, False), (form.writes, True)):
        for operand in operands:
            flag = getattr(operand, "flag", None)
            if not isinstance(operand, MaskRows | MassRows | TokenList) or (flag and not command.has(flag)):
                continue
            first, end = command.first_row, command.first_row + command.n_rows
            if is_gated:
                first, end = 0, state.largest_token + 1
            number = 0
            if isinstance(operand, TokenList):
                first, end = 0, 1
            elif isinstance(operand, MaskRows):
                number = getattr(command, operand.number)
                first, end = (0, 1 << 16) if number == 0 else (first, end)
            found.append((operand.memory, number, first, end, is_written))
    return tuple(found)


def footprint_of(command, sizes, state):
    """The :class:`Footprint` of a command; ``state`` has the token list."""
    form = form_of(command)
    operands = [item for item in (*form.reads, *form.writes) if isinstance(item, Matrix | Words)]
    places = tuple((item.base, part) for item, part in zip(operands, extents(command, sizes, state), strict=True))
    return Footprint(
        command, form, places, _marks(form, command, state), form.chained(form.writes), form.chained(form.reads)
    )


def relation(later, earlier):
    """``"waits"``, ``"follows"`` or None: what the later command does about the earlier one, which is not done."""
    takes = _takes(later, earlier)
    excused = set()
    if takes:
        excused.add(("source", "destination"))
        if later.is_in_place:
            excused.add(("destination", "destination"))
            if earlier.is_in_place:
                excused.add(("destination", "source"))
    for base, place in later.places:
        for other_base, other in earlier.places:
            meets = place.meets(other) and (place.is_written or other.is_written)
            if meets and (base, other_base) not in excused:
                return WAITS
    for memory, number, first, end, is_written in later.marks:
        for other_memory, other_number, other_first, other_end, other_written in earlier.marks:
            same = memory == other_memory and number == other_number and (is_written or other_written)
            if same and first < other_end and other_first < end:
                return WAITS
    if (later.form.is_exclusive or earlier.form.is_exclusive) and _memories(later) & _memories(earlier):
        return WAITS
    return FOLLOWS if takes else None


_EXCLUSIVE = {"scores", "probabilities", "mass"}


def _memories(footprint):
    names = {place.memory for _, place in footprint.places} | {mark[0] for mark in footprint.marks}
    return names & _EXCLUSIVE


def _takes(later, earlier):
    """The later command reads, row by row, what the earlier one writes, in the same place."""
    given, taken = earlier.gives, later.takes
    if given is None or taken is None or given.memory != taken.memory:
        return False
    one, other = later.command, earlier.command
    if one.n_rows != other.n_rows or one.has("gated") != other.has("gated"):
        return False
    if one.has("gated") and one.first_row != other.first_row:
        return False
    if getattr(one, taken.base) != getattr(other, given.base):
        return False
    if given.memory == "imem":
        places, results = dict(later.places), dict(earlier.places)
        strides = one.source_stride == other.destination_stride
        begins_late = any(item.column for item in earlier.form.operands(Matrix)) and other.column
        return strides and not begins_late and places[taken.base].end <= results[given.base].end
    masks = _mask_of(later) == _mask_of(earlier)
    return one.first_row == other.first_row and one.n_out == other.n_out and masks


def _mask_of(footprint):
    return next((mark[1] for mark in footprint.marks if mark[0] == "mask" and not mark[4]), 0)
