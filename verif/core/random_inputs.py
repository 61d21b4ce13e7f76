"""What the commands of random programs read: loaded where it is not there."""

import numpy as np

from golden.core.streams import n_load_beats, pack, pack_bits
from golden.program import placement
from golden.spec.commands import Command, Memory, Opcode
from golden.spec.sizes import words_for
from verif.core.program_writer import ProgramWriter
from verif.core.random_data import random_bits, random_mask, random_tokens, random_words

__all__ = ["RandomInputs"]


class RandomInputs(ProgramWriter):
    """Methods that see to it that something is defined (mostly), by a LOAD of random data if need be."""

    def _words(self, *shape):
        return random_words(self.rng, shape, self._special_share)

    def _is_missing(self, words):
        """Whether something is to be loaded: mostly if it is undefined, now and then in any case."""
        return self.rng.random() < (0.97 if not words.defined.all() else 0.1)

    def _need_rows(self, first, stride, n_rows, n):
        if self._is_missing(self.core.memories.rows(first, stride, np.arange(n_rows), n)):
            command = Command(
                opcode=Opcode.LOAD,
                function=Memory.ROWS,
                n_rows=n_rows,
                n_in=n,
                destination=first,
                destination_stride=stride,
            )
            self._emit(command, self._words(n_load_beats(command, self.sizes), self.sizes.row_word))

    def _need_bank_words(self, memory, first, words):
        """``words`` [n, banks, lanes] are what to load."""
        held = self.core.memories.wmem if memory == Memory.WEIGHTS else self.core.memories.vmem
        if self._is_missing(held[:, first : first + len(words)]):
            command = Command(opcode=Opcode.LOAD, function=memory, n_rows=len(words), bank_address=first)
            self._emit(command, placement.bank_beats(words, self.sizes))

    def _weights(self, n_in, n_out, has_bias):
        """Where weights are, or 0 if there is no room for them."""
        sizes = self.sizes
        bias = self._words(n_out) if has_bias else None
        words = placement.weight_words(self._words(n_in, n_out), sizes, bias)
        if len(words) > sizes.wmem_depth:
            return 0
        first = self._place("wmem", len(words))
        self._need_bank_words(Memory.WEIGHTS, first, words)
        return first

    def _keys(self, n, d, memory):
        """Where n keys or values of d elements are."""
        sizes = self.sizes
        lanes = sizes.n_lanes if memory == Memory.WEIGHTS else sizes.simd_lanes
        words = placement.banked_words(self._words(n, d), sizes, lanes, self._multiplier())
        name, depth = ("wmem", sizes.wmem_depth) if memory == Memory.WEIGHTS else ("vmem", sizes.vmem_depth)
        if len(words) > depth:
            return 0
        first = self._place(name, len(words))
        self._need_bank_words(memory, first, words)
        return first

    def _value_columns(self, n, d):
        """Where n values of d elements are, as columns."""
        sizes = self.sizes
        length = words_for(d, sizes.n_banks) * sizes.slots_of(n) * sizes.column_beats
        if length > sizes.wmem_depth:
            return 0
        first = self._place("wmem", length)
        self._need_bank_words(Memory.WEIGHTS, first, self._words(length, sizes.n_banks, sizes.n_lanes) & 0xBFFF)
        return first

    def _multiplier(self):
        return int(self.rng.choice([1, 13, self.rng.integers(0, 1 << 16)]))

    def _need_mask(self, number, n_rows, n_keys, first_row=0):
        sizes, state = self.sizes, self.core.state
        first, end = (0, 1) if number == 0 else (first_row, first_row + n_rows)
        bits = self.core.memories.mask_bits(number, np.arange(first, end), sizes.slots_of(n_keys))
        if state.mask_count[number] >= end and bits.defined.all() and self.rng.random() < 0.6:
            return
        if state.mask_count[number] < first or self.rng.random() < 0.5:
            first = 0
        rows = end - first
        if self.rng.random() < 0.1:
            beats = pack_bits(random_bits(self.rng, rows, sizes.n_banks * sizes.key_slots), sizes.row_word)
        else:
            beats = placement.mask_beats(random_mask(self.rng, rows, n_keys), sizes, self._multiplier())
        command = Command(opcode=Opcode.LOAD, function=Memory.MASK, n_rows=rows, mask_out=number, first_row=first)
        self._emit(command, beats)

    def _need_words(self, function, held, n_words, first):
        """Scores or probabilities."""
        if n_words and self._is_missing(held[:, first : first + n_words]):
            command = Command(opcode=Opcode.LOAD, function=function, n_rows=n_words, destination=first)
            beats = self._words(n_load_beats(command, self.sizes), self.sizes.row_word)
            if function == Memory.PROBABILITIES:
                beats &= 0x3FFF
            self._emit(command, beats)

    def _need_tokens(self, n_rows):
        tokens = self.core.state.tokens
        fits = tokens is not None and len(tokens) <= n_rows and max(tokens, default=0) < n_rows
        if not fits or self.rng.random() < 0.5:
            tokens = random_tokens(self.rng, n_rows)
            beats = pack(np.array(tokens, np.uint16).reshape(-1, 1), self.sizes.row_word)
            self._emit(Command(opcode=Opcode.LOAD, function=Memory.TOKENS, n_rows=len(tokens)), beats)

    def _need_mass(self, n_rows, first_row=0):
        if self.core.state.mass_count < first_row + n_rows or self.rng.random() < 0.2:
            first = first_row if self.core.state.mass_count >= first_row and self.rng.random() < 0.5 else 0
            rows = first_row + n_rows - first
            command = Command(opcode=Opcode.LOAD, function=Memory.MASS, n_rows=rows, first_row=first)
            self._emit(command, self._words(n_load_beats(command, self.sizes), self.sizes.row_word))
