"""Formats of the beats of the load and store streams, for every memory: LOAD, STORE and CTR.

A beat is ``row_word`` elements of 16 bits, element 0 in the lowest bits. Unused bits are ignored in a
load and 0 in a store.
"""

import numpy as np

from golden.core.memories import Words
from golden.spec.commands import Memory
from golden.spec.sizes import words_for
from golden.units.token_selector import any_of_patch, beat_positions, changed

__all__ = ["TokenCompare", "load", "n_load_beats", "pack_bits", "store", "unpack_bits"]


def pack_bits(bits, row_word):
    """Rows of bits [rows, n] as beats [rows, pieces, row_word], the lowest bits first."""
    pieces = words_for(bits.shape[1], 16 * row_word)
    padded = np.pad(bits, ((0, 0), (0, pieces * 16 * row_word - bits.shape[1])))
    return np.packbits(padded, axis=1, bitorder="little").view("<u2").reshape(len(bits), pieces, row_word)


def unpack_bits(beats, n):
    """The inverse of :func:`pack_bits`."""
    packed = np.ascontiguousarray(beats.reshape(len(beats), -1), "<u2").view(np.uint8)
    return np.unpackbits(packed, axis=1, count=n, bitorder="little").astype(bool)


def n_load_beats(command, sizes):
    """Beats of the load stream that a LOAD takes."""
    return command.n_rows * {
        Memory.ROWS: words_for(command.n_in, sizes.row_word),
        Memory.WEIGHTS: sizes.n_banks,
        Memory.VALUES: sizes.n_banks,
        Memory.MASK: sizes.mask_pieces,
    }.get(command.function, 1)


def load(memories, command, beats, state):
    """Put beats [n, row_word] into a memory, or the token list into ``state``."""
    sizes, n_rows, function = memories.sizes, command.n_rows, command.function
    rows = np.arange(n_rows)
    if function == Memory.ROWS:
        words = Words.of(beats.reshape(n_rows, -1))
        memories.write_rows(command.destination, command.destination_stride, rows, words)
    elif function in (Memory.WEIGHTS, Memory.VALUES):
        memory, lanes = {
            Memory.WEIGHTS: (memories.wmem, sizes.n_lanes),
            Memory.VALUES: (memories.vmem, sizes.simd_lanes),
        }[function]
        words = beats.reshape(n_rows, sizes.n_banks, -1)[:, :, :lanes].transpose(1, 0, 2)
        memory[:, command.bank_address + rows] = Words.of(words)
    elif function in (Memory.SCORES, Memory.PROBABILITIES):
        memory = memories.scores if function == Memory.SCORES else memories.probabilities
        memory[:, command.destination + rows] = Words.of(beats[:, : sizes.n_banks].T)
    elif function == Memory.MASK:
        bits = unpack_bits(beats.reshape(n_rows, -1), sizes.n_banks * sizes.key_slots)
        memories.mask[memories.mask_row_numbers(command.mask_out, rows)] = Words.of(bits, bool)
    elif function == Memory.TOKENS:
        state.tokens = [int(row) & ((1 << sizes.token_width) - 1) for row in beats[:, 0]]
    elif function == Memory.MASS:
        memories.mass[rows] = Words.of(beats[:, 0])


def store(memories, command, state):
    """The beats that a STORE sends, as :class:`Words` [n, row_word]; those of counters are the core's."""
    sizes, n_rows, function = memories.sizes, command.n_rows, command.function
    rows = np.arange(n_rows)
    if function == Memory.ROWS:
        n = words_for(command.n_in, sizes.row_word) * sizes.row_word
        return memories.rows(command.source, command.source_stride, rows, n).reshape(-1, sizes.row_word)
    if function == Memory.MASK:
        words = memories.mask[memories.mask_row_numbers(command.mask, rows)]
        values, undefined = (pack_bits(part, sizes.row_word) for part in (words.data, ~words.defined))
        return Words(values, undefined == 0).reshape(-1, sizes.row_word)
    if function in (Memory.SCORES, Memory.PROBABILITIES):
        memory = memories.scores if function == Memory.SCORES else memories.probabilities
        words = memory[:, command.source + rows]
        return Words(words.data.T, words.defined.T).padded(sizes.row_word)
    if function == Memory.MASS:
        return memories.mass[rows].reshape(-1, 1).padded(sizes.row_word)
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
        return len(self.positions) * (1 if self.sizes.reference == "last" else 2)

    def beats(self, latent):
        """The beats [n, row_word] of a latent [channels, height, width]."""
        beats = np.zeros((len(self.positions), self.sizes.row_word), np.uint16)
        lanes = beats[:, : self.sizes.n_banks]
        lanes[self.positions >= 0] = np.asarray(latent).reshape(-1)[self.positions[self.positions >= 0]]
        return beats

    def _latent(self, beats):
        sizes = self.sizes
        latent = np.zeros(sizes.channels * sizes.latent_height * sizes.latent_width, np.uint16)
        used = self.positions >= 0
        latent[self.positions[used]] = beats[:, : sizes.n_banks][used]
        return latent.reshape(sizes.channels, sizes.latent_height, sizes.latent_width)

    def tokens(self, beats, theta, restart):
        """The selected tokens, ascending. Beats are the latent's or, for ``previous``, current and previous in turn."""
        sizes = self.sizes
        if sizes.reference == "previous":
            current, reference = self._latent(beats[::2]), self._latent(beats[1::2])
        else:
            current, reference = self._latent(beats), self.last
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
