"""A program's data in memory, and its descriptors: what the accelerator needs to do what a core's program does."""

from dataclasses import dataclass, replace

import numpy as np

from golden.core.memories import Words
from golden.core.streams import TokenCompare, n_load_beats, unpack
from golden.spec.accelerator.descriptor import DESCRIPTOR_FLAGS, Descriptor
from golden.spec.accelerator.transfers import piece_elements
from golden.spec.commands import Memory, Opcode
from golden.spec.sizes import words_for
from golden.system.transfers import elements_of, rows_of

__all__ = ["Image", "elements_of_beats", "image_of"]

_ALIGNMENT = 64


def elements_of_beats(command, beats, rows, sizes):
    """The rows of elements in memory for the beats [n, W] of a LOAD or CTR; ``rows`` are those of its descriptor."""
    if command.opcode == Opcode.CTR:
        size = sizes.n_banks
    elif command.function == Memory.ROWS:
        return elements_of(command, Words.of(beats), sizes).data
    else:
        size = piece_elements(command.function, sizes)
    if size > sizes.row_word:
        whole = words_for(size, sizes.row_word) * sizes.row_word
        return beats.reshape(-1, whole)[:, :size].reshape(1, -1)
    return unpack(beats, rows.n_elements // size, size).reshape(1, -1)


@dataclass(frozen=True)
class Image:
    """``data``, bytes from ``base`` on; ``stores``: command and ``(first, end)`` of what each STORE writes."""

    base: int
    data: np.ndarray
    descriptors: list
    stores: dict

    @property
    def end(self):
        """The first byte behind it."""
        return self.base + len(self.data)


def image_of(commands, load_beats, sizes, base):
    """The :class:`Image` of a program, commands and the beats that they load, at addresses from ``base`` on.

    Transfers have places of their own, rows without gaps. So no fence is needed, but before what reads a result: the
    last descriptor has the flag ``interrupt``.
    """
    descriptors, stores, pieces = [], {}, []
    address, taken = -(-base // _ALIGNMENT) * _ALIGNMENT, 0
    for number, command in enumerate(commands):
        descriptor = Descriptor(command=command, number=number)
        rows = rows_of(descriptor, sizes)
        if rows is not None:
            descriptor = replace(descriptor, length=rows.bytes, pitch=rows.bytes, address=address)
            rows = rows._replace(address=address, pitch=rows.bytes)
            end = address + rows.n_rows * rows.bytes
            if command.opcode == Opcode.STORE:
                stores[number] = (address, end)
            else:
                is_compare = command.opcode == Opcode.CTR
                count = TokenCompare(sizes).n_beats if is_compare else n_load_beats(command, sizes)
                elements = elements_of_beats(command, load_beats[taken : taken + count], rows, sizes)
                pieces.append((address, elements.astype("<u2").tobytes()))
                taken += count
            address = -(-end // _ALIGNMENT) * _ALIGNMENT
        descriptors.append(descriptor)
    if descriptors:
        descriptors[-1] = replace(descriptors[-1], flags=DESCRIPTOR_FLAGS["interrupt"])
    data = np.zeros(address - base, np.uint8)
    for first, piece in pieces:
        data[first - base : first - base + len(piece)] = np.frombuffer(piece, np.uint8)
    return Image(base, data, descriptors, stores)
