"""Formats of the beats of the load and store streams, for every memory: LOAD, STORE and CTR.

A beat is ``row_word`` elements of 16 bits, element 0 in the lowest bits. What a LOAD brings are pieces of one size, as
many whole ones a beat as there is space for, the first in the lowest bits; a piece of several beats has these beats for
itself. A STORE sends a piece a beat. Unused bits are ignored in a load and 0 in a store.
"""

import numpy as np

from golden.core.memories import Words
from golden.spec.commands import Memory
from golden.spec.sizes import words_for
from golden.units.token_selector import any_of_patch, beat_positions, changed

__all__ = ["TokenCompare", "load", "n_load_beats", "pack", "pack_bits", "store", "unpack", "unpack_bits"]


def pack(pieces, row_word):
    """Pieces [n, elements], of at most row_word elements, as beats [beats, row_word]."""
    n, size = pieces.shape
    a_beat = row_word // size
    beats = np.zeros((words_for(n, a_beat), a_beat, size), np.uint16)
    beats.reshape(-1, size)[:n] = pieces
    beats = beats.reshape(len(beats), a_beat * size)
    return np.pad(beats, ((0, 0), (0, row_word - a_beat * size)))


def unpack(beats, n, size):
    """The inverse of :func:`pack`: n pieces of ``size`` elements."""
    a_beat = beats.shape[1] // size
    return beats[:, : a_beat * size].reshape(-1, size)[:n]


def pack_bits(bits, row_word):
    """Rows of bits [rows, n] as beats [beats, row_word], the lowest bits first."""
    n_rows, n = bits.shape
    width = 16 * row_word
    if n <= width:
        a_beat = width // n
        whole = np.zeros((words_for(n_rows, a_beat), a_beat * n), bool)
        whole.reshape(-1, n)[:n_rows] = bits
        bits = np.pad(whole, ((0, 0), (0, width - a_beat * n)))
    else:
        bits = np.pad(bits, ((0, 0), (0, -n % width)))
    return np.packbits(bits, axis=1, bitorder="little").view("<u2").reshape(-1, row_word)


def unpack_bits(beats, n_rows, n):
    """The inverse of :func:`pack_bits`: rows of n bits."""
    beats = np.ascontiguousarray(beats, "<u2")
    width = 16 * beats.shape[1]
    bits = np.unpackbits(beats.view(np.uint8), axis=1, bitorder="little").astype(bool)
    if n <= width:
        return bits[:, : width // n * n].reshape(-1, n)[:n_rows]
    return bits.reshape(n_rows, -1)[:, :n]


def n_load_beats(command, sizes):
    """Beats of the load stream that a LOAD takes."""
    size = {
        Memory.WEIGHTS: sizes.n_lanes,
        Memory.VALUES: sizes.simd_lanes,
        Memory.SCORES: sizes.n_banks,
        Memory.PROBABILITIES: sizes.n_banks,
    }.get(command.function, 1)
    if command.function == Memory.ROWS:
        return command.n_rows * words_for(command.n_in, sizes.row_word)
    if command.function == Memory.MASK:
        row = sizes.n_banks * sizes.key_slots
        return words_for(command.n_rows, max(1, 16 * sizes.row_word // row)) * sizes.mask_pieces
    n_pieces = command.n_rows * (sizes.n_banks if command.function in (Memory.WEIGHTS, Memory.VALUES) else 1)
    return words_for(n_pieces, sizes.row_word // size)


def load(memories, command, beats, state):
    """Put beats [n, row_word] into a memory, or the token list into ``state``."""
    sizes, n_rows, function = memories.sizes, command.n_rows, command.function
    rows = np.arange(n_rows)
    marked = command.first_row + rows
    if function == Memory.ROWS:
        words = Words.of(beats.reshape(n_rows, -1))
        memories.write_rows(command.destination, command.destination_stride, rows, words)
    elif function in (Memory.WEIGHTS, Memory.VALUES):
        memory, lanes = {
            Memory.WEIGHTS: (memories.wmem, sizes.n_lanes),
            Memory.VALUES: (memories.vmem, sizes.simd_lanes),
        }[function]
        words = unpack(beats, n_rows * sizes.n_banks, lanes).reshape(n_rows, sizes.n_banks, lanes)
        memory[:, command.bank_address + rows] = Words.of(words.transpose(1, 0, 2))
    elif function in (Memory.SCORES, Memory.PROBABILITIES):
        memory = memories.scores if function == Memory.SCORES else memories.probabilities
        memory[:, command.destination + rows] = Words.of(unpack(beats, n_rows, sizes.n_banks).T)
    elif function == Memory.MASK:
        bits = unpack_bits(beats, n_rows, sizes.n_banks * sizes.key_slots)
        memories.mask[memories.mask_row_numbers(command.mask_out, marked)] = Words.of(bits, bool)
    elif function == Memory.TOKENS:
        tokens = unpack(beats, n_rows, 1).ravel()
        state.tokens = [int(row) & ((1 << sizes.token_width) - 1) for row in tokens]
    elif function == Memory.MASS:
        memories.mass[marked] = Words.of(unpack(beats, n_rows, 1).ravel())


def store(memories, command, state):
    """The beats that a STORE sends, as :class:`Words` [n, row_word]; those of counters are the core's."""
    sizes, n_rows, function = memories.sizes, command.n_rows, command.function
    rows = np.arange(n_rows)
    marked = command.first_row + rows
    if function == Memory.ROWS:
        n = words_for(command.n_in, sizes.row_word) * sizes.row_word
        return memories.rows(command.source, command.source_stride, rows, n).reshape(-1, sizes.row_word)
    if function == Memory.MASK:
        words = memories.mask[memories.mask_row_numbers(command.mask, marked)]
        parts = [
            np.concatenate([pack_bits(row[None], sizes.row_word) for row in part])
            for part in (words.data, ~words.defined)
        ]
        return Words(parts[0], parts[1] == 0)
    if function in (Memory.SCORES, Memory.PROBABILITIES):
        memory = memories.scores if function == Memory.SCORES else memories.probabilities
        words = memory[:, command.source + rows]
        return Words(words.data.T, words.defined.T).padded(sizes.row_word)
    if function == Memory.MASS:
        return memories.mass[marked].reshape(-1, 1).padded(sizes.row_word)
    return Words.of(np.array([len(state.tokens), *state.tokens])[:, None]).padded(sizes.row_word)


class TokenCompare:
    """CTR: finds the tokens of a latent that changed. With reference ``last`` it stores a latent."""

    def __init__(self, sizes):
        self.sizes = sizes
        shape = (sizes.latent_width, sizes.latent_height, sizes.channels, sizes.patch, sizes.n_banks)
        self.positions = beat_positions(*shape, "inner")
        self.last = None

    @property
    def n_beats(self):
        """Beats of the load stream that CTR takes."""
        n_latents = 1 if self.sizes.reference == "last" else 2
        return words_for(n_latents * len(self.positions), self.sizes.row_word // self.sizes.n_banks)

    def beats(self, *latents):
        """The beats [n, row_word] of a latent [channels, height, width], or of the current and the previous one."""
        pieces = np.zeros((len(self.positions), len(latents), self.sizes.n_banks), np.uint16)
        used = self.positions >= 0
        for index, latent in enumerate(latents):
            pieces[:, index][used] = np.asarray(latent).reshape(-1)[self.positions[used]]
        return pack(pieces.reshape(-1, self.sizes.n_banks), self.sizes.row_word)

    def _latent(self, pieces):
        sizes = self.sizes
        latent = np.zeros(sizes.channels * sizes.latent_height * sizes.latent_width, np.uint16)
        used = self.positions >= 0
        latent[self.positions[used]] = pieces[used]
        return latent.reshape(sizes.channels, sizes.latent_height, sizes.latent_width)

    def tokens(self, beats, theta, restart):
        """The selected tokens, ascending. Pieces are those of the latent, or of two in turn."""
        sizes = self.sizes
        n_latents = 1 if sizes.reference == "last" else 2
        pieces = unpack(beats, n_latents * len(self.positions), sizes.n_banks).reshape(-1, n_latents, sizes.n_banks)
        current = self._latent(pieces[:, 0])
        reference = self.last if sizes.reference == "last" else self._latent(pieces[:, 1])
        if restart or reference is None:
            reference, is_whole = current, True
        else:
            is_whole = False
        bits = np.ones(current.shape, bool) if is_whole else changed(current, reference, np.uint16(theta))
        selected = any_of_patch(bits, sizes.patch)
        if sizes.reference == "last":
            patch, columns = sizes.patch, -(-sizes.latent_width // sizes.patch)
            pixels = selected.reshape(-1, columns).repeat(patch, axis=0).repeat(patch, axis=1)
            pixels = pixels[: sizes.latent_height, : sizes.latent_width]
            self.last = np.where(pixels, current, reference)
        return np.flatnonzero(selected).tolist()
