"""Writes random programs for the core: appends commands and executes them on the golden model as it goes."""

from dataclasses import dataclass, field

import numpy as np

from golden.core.checks import check, extents, operand_length
from golden.core.core import Core, StoreBeats
from golden.spec.commands import ErrorCode, Unit, form_of
from golden.spec.operands import DEPTH, MaskRows, Words
from golden.spec.sizes import words_for

__all__ = ["Piece", "ProgramWriter"]


def _works_under_mask(command):
    """Whether it processes rows under a mask."""
    form = form_of(command)
    return not form.is_transfer and any(isinstance(operand, MaskRows) for operand in form.reads)


@dataclass
class Piece:
    """A part of a program: its commands, the beats that it takes from the load stream, and what must come of it."""

    commands: list = field(default_factory=list)
    load_beats: np.ndarray = None  # [n, row_word]
    store: StoreBeats = None
    refusals: list = field(default_factory=list)
    bins: dict = field(default_factory=dict)
    """Which corner cases there are, and how often."""

    def command_integers(self):
        return [command.encode() for command in self.commands]

    def load_integers(self):
        return [_integer(beat) for beat in self.load_beats]

    def store_integers(self):
        """``(value, defined)`` of each beat of the store stream, ``last`` above the data."""
        top = 16 * self.store.values.shape[1]
        return [
            (_integer(value) | int(last) << top, _integer(np.where(defined, 0xFFFF, 0)) | 1 << top)
            for value, defined, last in zip(self.store.values, self.store.defined, self.store.last, strict=True)
        ]


def _integer(beat):
    return int.from_bytes(np.asarray(beat, "<u2").tobytes(), "little")


class ProgramWriter:
    """A program, piece by piece, and a core that has executed it so far; ``forget`` after a reset.

    ``most_beats`` bounds the beats of a store and of a load that needs not be, ``most_clocks`` what any other command
    takes, so that pieces stay short for large cores.
    """

    def __init__(self, sizes, rng, most_beats=600, most_clocks=20_000):
        self.sizes, self.rng, self.most_beats, self.most_clocks = sizes, rng, most_beats, most_clocks
        self.forget()

    def forget(self):
        """The core was reset: nothing is known of its memories."""
        self.core = Core(self.sizes)
        self._places = {}  # of each memory, where something was read or written
        self.begin()

    def begin(self):
        """Begin a new piece."""
        self._piece, self._beats, self._stored = Piece(), [], []
        self._touched = {}  # of each memory, which words were written
        self._special_share = float(self.rng.choice([0, 0, 0.002, 0.05]))
        # Most pieces use a part of a large core's sizes.
        sizes, is_whole = self.sizes, self.rng.random() < 0.1
        self._most_tokens = sizes.max_tokens if is_whole else min(sizes.max_tokens, 6 * sizes.n_banks)
        self._most_dim = sizes.max_dim if is_whole else min(sizes.max_dim, 6 * sizes.n_lanes)

    def finish(self):
        """The piece that was begun."""
        piece = self._piece
        piece.load_beats = np.concatenate([np.zeros((0, self.sizes.row_word), np.uint16), *self._beats])
        parts = [stored for stored in self._stored if len(stored.values)]
        width = self.sizes.row_word
        piece.store = StoreBeats(
            np.concatenate([np.zeros((0, width), np.uint16), *(part.values for part in parts)]),
            np.concatenate([np.zeros((0, width), bool), *(part.defined for part in parts)]),
            np.concatenate([np.zeros(0, bool), *(part.last for part in parts)]),
            np.concatenate([np.zeros(0, np.int64), *(part.command for part in parts)]),
        )
        return piece

    def _count(self, name, count=1):
        self._piece.bins[name] = self._piece.bins.get(name, 0) + int(count)

    def _emit(self, command, beats=None):
        """Append a command and execute it; whether it was. Left out is what would take too long, and what the hardware
        cannot know, as bits of masks that are undefined would decide on it."""
        is_right = self._code(command) == ErrorCode.NONE and not self.core.refusal
        if is_right and (self._is_uncertain(command) or self._is_long(command)):
            return False
        beats = np.zeros((0, self.sizes.row_word), np.uint16) if beats is None else beats
        run = self.core.execute([command], beats)
        self._piece.commands.append(command)
        self._piece.refusals += run.refusals
        self._beats.append(beats[: run.load_beats])
        self._stored.append(run.store)
        if run.executed[0]:
            self._note(command)
        for refusal in run.refusals:
            self._count(f"error {refusal.code.name.lower()}")
        return run.executed[0]

    def _code(self, command):
        return check(command, self.sizes, self.core.state)

    def _marked_rows(self, command):
        """The rows of masks that a command uses."""
        if command.has("gated"):
            return np.array(self.core.state.tokens[command.first_row :][: command.n_rows], np.int64)
        return command.first_row + np.arange(command.n_rows)

    def _bits(self, command):
        slots = self.sizes.slots_of(command.n_out)
        return self.core.memories.mask_bits(command.mask, self._marked_rows(command), slots)

    def _is_uncertain(self, command):
        return _works_under_mask(command) and not self._bits(command).defined.all()

    def _is_long(self, command):
        """A row takes about a clock for each word that is read from the banks; a slot without keys takes one too."""
        form = form_of(command)
        if form.is_transfer:
            return False
        words = [item for item in form.operands(Words) if "n_rows" not in item.length]
        clocks = max((operand_length(item, command, self.sizes) for item in words if item in form.reads), default=0)
        if _works_under_mask(command):
            clocks = max(clocks, self.sizes.slots_of(command.n_out))
        return command.n_rows * clocks > self.most_clocks

    def _note(self, command):
        """Remember what was written, and count corner cases."""
        sizes = self.sizes
        for extent in extents(command, sizes, self.core.state):
            self._places.setdefault(extent.memory, []).append(extent.first)
            if extent.is_written:
                self._touched.setdefault(extent.memory, set()).update(range(extent.first, extent.end))
        form = form_of(command)
        self._count(form.opcode.name.lower())
        if command.has("gated"):
            n_tokens = len(self._marked_rows(command))
            self._count("no tokens" if n_tokens == 0 else "all tokens" if n_tokens == command.n_rows else "some tokens")
        if _works_under_mask(command):
            kept = self._bits(command).data.sum(axis=(1, 2))
            self._count("empty rows", (kept == 0).any())
            self._count("keys that do not fill the banks", command.n_out % sizes.n_banks != 0)
        if form.unit == Unit.ARRAY:
            self._count("rows that do not fill the lanes", command.n_in % sizes.n_lanes != 0)

    def _size(self, high):
        """From 1 to high, rather small, often the largest."""
        kind = self.rng.random()
        if kind < 0.12:
            return high
        return int(self.rng.integers(1, min(high, 3 * self.sizes.n_banks) if kind < 0.8 else high, endpoint=True))

    def _n_rows(self, n=None):
        """Rows of a command; three matrices of n elements must fit IMEM."""
        words = words_for(n or self._most_dim, self.sizes.row_word)
        return self._size(max(1, min(self._most_tokens, self.sizes.imem_depth // (3 * words))))

    def _place(self, memory, length):
        """An address, of those used before or near them more often than not."""
        depth = getattr(self.sizes, DEPTH[memory])
        if length > depth:
            return 0
        used = self._places.get(memory)
        if used and self.rng.random() < 0.6:
            near = int(self.rng.choice(used[-12:])) + int(self.rng.choice([0, 0, 0, -1, 1, 3]))
            return min(max(near, 0), depth - length)
        return int(self.rng.integers(0, depth - length, endpoint=True))

    def _matrix(self, n_rows, n):
        """``(first, stride)`` of rows in IMEM."""
        words = words_for(n, self.sizes.row_word)
        stride = words + int(self.rng.choice([0, 0, 0, 1, 2]))
        if (n_rows - 1) * stride + words > self.sizes.imem_depth // 3:
            stride = words
        return self._place("imem", (n_rows - 1) * stride + words), stride

    def _stretches(self, memory, longest):
        """The words of a memory that were written with something that is defined, as ``(first, length)``.

        Small gaps count as written, so that there are not too many.
        """
        held = getattr(self.core.memories, memory).defined
        is_defined = held.any(axis=1) if memory == "imem" else held.any(axis=0)
        words = np.array([word for word in sorted(self._touched.get(memory, ())) if is_defined[word]], np.int64)
        for stretch in np.split(words, np.flatnonzero(np.diff(words) > 4) + 1):
            if not len(stretch):
                continue
            end = int(stretch[-1]) + 1
            for first in range(int(stretch[0]), end, longest):
                yield first, min(longest, end - first)
