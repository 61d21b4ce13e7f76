"""What a command moves: the bytes of its rows in memory, between them and the beats of the core's streams."""

from typing import NamedTuple

import numpy as np

from golden.core.memories import Words
from golden.core.streams import TokenCompare, pack
from golden.spec.accelerator.transfers import ELEMENT_BYTES, mask_elements, piece_elements
from golden.spec.commands import Memory, Opcode, form_of, has_form
from golden.spec.counters import COUNTERS
from golden.spec.sizes import words_for

__all__ = ["Rows", "beats_of", "elements_of", "is_length", "rows_of"]


class Rows(NamedTuple):
    """Rows of elements in memory, ``pitch`` bytes apart."""

    address: int
    n_rows: int
    n_elements: int
    pitch: int

    @property
    def bytes(self):
        """Of a row."""
        return ELEMENT_BYTES * self.n_elements

    def starts(self):
        """The address of each row."""
        return [self.address + row * self.pitch for row in range(self.n_rows)]


def rows_of(descriptor, sizes) -> Rows | None:
    """What a descriptor moves; None if its command moves nothing, or is none. STORE TOKENS: room for any list."""
    command = descriptor.command
    if not has_form(command):
        return None
    if command.opcode == Opcode.CTR:
        n_elements = TokenCompare(sizes).positions.size * (1 if sizes.reference == "last" else 2)
        return Rows(descriptor.address, 1, n_elements, 0)
    if not form_of(command).is_transfer:
        return None
    memory = Memory(command.function)
    if memory == Memory.ROWS:
        return Rows(descriptor.address, command.n_rows, command.n_in, descriptor.pitch)
    n_pieces = command.n_rows
    if memory in (Memory.WEIGHTS, Memory.VALUES):
        n_pieces *= sizes.n_banks
    elif memory == Memory.COUNTERS:
        n_pieces = len(COUNTERS)
    elif memory == Memory.TOKENS and command.opcode == Opcode.STORE:
        n_pieces = 1 + sizes.max_tokens
    return Rows(descriptor.address, 1, n_pieces * piece_elements(memory, sizes), 0)


def is_length(descriptor, rows):
    """Whether ``length`` is what the command takes."""
    command = descriptor.command
    if (command.opcode, command.function) == (Opcode.STORE, Memory.TOKENS):
        return descriptor.length >= rows.bytes
    return descriptor.length == rows.bytes


def beats_of(command, elements, sizes):
    """The beats [n, W] of the load stream for elements [rows, n] from memory."""
    width = sizes.row_word
    if command.opcode == Opcode.CTR:
        return pack(elements.reshape(-1, sizes.n_banks), width)
    memory = Memory(command.function)
    if memory == Memory.ROWS:
        return _in_words(elements, width)
    if memory == Memory.MASK and mask_elements(sizes) > width:
        return _in_words(elements.reshape(-1, mask_elements(sizes)), width)
    return pack(elements.reshape(-1, piece_elements(memory, sizes)), width)


def _in_words(elements, width):
    return np.pad(elements, ((0, 0), (0, -elements.shape[1] % width))).reshape(-1, width)


def elements_of(command, words, sizes) -> Words:
    """The elements [rows, n] in memory for the beats [n, W] of the store stream."""
    memory = Memory(command.function)
    if memory == Memory.ROWS:
        row = words_for(command.n_in, sizes.row_word) * sizes.row_word
        return words.reshape(command.n_rows, row)[:, : command.n_in]
    size = piece_elements(memory, sizes)
    pieces = words.reshape(-1, words_for(size, sizes.row_word) * sizes.row_word)[:, :size]
    return pieces.reshape(1, -1)
