"""What the time of each command of a program depends on beside its fields: rows that are processed, bits of its mask.

Masks and token lists that are loaded are known from the beats; those that SOFTMAX and CTR make, from a run of the
golden model.
"""

from typing import NamedTuple

import numpy as np

from golden.core.core import Core
from golden.spec.commands import Memory, Opcode, Unit, form_of
from golden.spec.operands import MaskRows

__all__ = ["Traced", "is_data_dependent", "trace"]


class Traced(NamedTuple):
    """A command with the number of rows that it processes, and the set bits of each of its mask's rows and banks."""

    command: object
    n_active: int
    counts: np.ndarray | None  # [rows, banks]; with mask 0 one row, of stride 0
    largest_token: int
    is_ascending: bool


def is_data_dependent(commands):
    """Whether a mask or token list is made by a command."""
    return any(command.opcode == Opcode.CTR or command.has("make_mask") for command in commands)


def trace(sizes, commands, beats):
    """A list of :class:`Traced`. ``beats`` are those of each LOAD and CTR, in order."""
    core, entries, found = Core(sizes), iter(beats), []
    needs_data = is_data_dependent(commands)
    counted = {}
    for command in commands:
        found.append(_traced(core, command, counted))
        moves = command.opcode in (Opcode.LOAD, Opcode.CTR)
        here = next(entries) if moves else ()
        is_known = command.opcode == Opcode.LOAD and command.function in (Memory.MASK, Memory.TOKENS)
        if needs_data or is_known:
            run = core.execute([command], here)
            if not all(run.executed):
                raise ValueError(f"command {len(found) - 1} is refused: {core.refusal}")
        if is_known or command.has("make_mask"):
            counted.clear()
    return found


def _traced(core, command, counted):
    tokens = core.state.tokens or []
    rows = np.arange(command.first_row, command.first_row + command.n_rows)
    if command.has("gated"):
        rows = np.array(tokens[command.first_row :][: command.n_rows], np.int64)
    ascending = all(one < other for one, other in zip(tokens, tokens[1:], strict=False))
    counts = None
    if command.opcode != Opcode.CLEAR:
        form = form_of(command)
        if form.unit not in (Unit.LOAD, Unit.STORE) and any(isinstance(item, MaskRows) for item in form.reads):
            counts = _counts(core, command, rows, counted)
    return Traced(command, len(rows), counts, max(tokens, default=0), ascending)


def _counts(core, command, rows, counted):
    slots = core.sizes.slots_of(command.n_out)
    if command.mask == 0:
        if slots not in counted:
            bits = core.memories.mask_bits(0, rows[:1] * 0, slots).data
            counted[slots] = bits.sum(axis=2)[0]
        return np.broadcast_to(counted[slots], (len(rows), core.sizes.n_banks))
    return core.memories.mask_bits(command.mask, rows, slots).data.sum(axis=2)
