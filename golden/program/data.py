"""Programs that move data: handles of data in the core's memories, loads and stores."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from golden.core.streams import pack
from golden.program import placement
from golden.program.allocation import Arena
from golden.program.checking import CommandChecks
from golden.spec.commands import FLAGS, Command, Memory, Opcode, fields_of, flags_of
from golden.spec.operands import DEPTH
from golden.spec.sizes import check_sizes, words_for
from golden.units.hash_bank_mapper import default_multiplier

__all__ = ["Banked", "DataProgram", "Encoded", "Matrix", "Stored", "Weights"]


@dataclass(frozen=True)
class Matrix:
    """Rows in IMEM."""

    first: int
    stride: int
    n_rows: int
    n: int
    word: int = 0  # elements of a word of IMEM
    column: int = 0  # element of the first word at which rows begin; not 0 only for results of products

    memory = "imem"

    def rows(self, first, n_rows):
        """Rows ``first`` to ``first + n_rows - 1`` as a matrix of their own."""
        if not 0 <= first <= first + n_rows <= self.n_rows:
            raise ValueError(f"rows {first} to {first + n_rows - 1} are not in a matrix of {self.n_rows} rows")
        return replace(self, first=self.first + first * self.stride, n_rows=n_rows)

    def columns(self, first, n):
        """Columns ``first`` to ``first + n - 1`` as a matrix of their own.

        If they do not begin with a word, they can only be the result of a product.
        """
        if not 0 <= first <= first + n <= self.n:
            raise ValueError(f"columns {first} to {first + n - 1} are not in a matrix of {self.n} columns")
        words, column = divmod(self.column + first, self.word)
        return replace(self, first=self.first + words, n=n, column=column)


@dataclass(frozen=True)
class Weights:
    """Weights of a dense product, and its bias, in the weight banks."""

    first: int
    n_in: int
    n_out: int
    has_bias: bool

    memory = "wmem"


@dataclass(frozen=True)
class Banked:
    """Keys or columns of values in the weight banks, or values in the value banks."""

    first: int
    n_rows: int
    n: int
    multiplier: int
    memory: str


@dataclass(frozen=True)
class Encoded:
    """Scores or probabilities of the elements selected by a mask, its rows from ``first_row`` on."""

    first: int
    n_rows: int
    n_keys: int
    mask: int
    gated: bool
    memory: str
    first_row: int = 0


@dataclass(frozen=True)
class Stored:
    """The result of a STORE: the number of its command, and the function that decodes its beats."""

    command: int
    read: Callable[[np.ndarray], np.ndarray]

    def of(self, run):
        """The stored words in a golden run that began with the program's first command."""
        return self.read(run.store.values[self._beats(run)])

    def defined(self, run):
        """Which of them are defined."""
        return self.read(np.where(run.store.defined[self._beats(run)], 0xFFFF, 0).astype(np.uint16)) != 0

    def _beats(self, run):
        chosen = run.store.command == self.command
        if not chosen.any():
            raise ValueError(
                f"command {self.command} stored nothing: it was refused, or dropped after an earlier refusal"
            )
        return chosen


def _shape(matrix) -> tuple[int, int]:
    """Rows and columns of a matrix."""
    n_rows, n_columns = np.shape(matrix)
    return n_rows, n_columns


class DataProgram:
    """Commands and their load beats; this class has the transfers.

    With ``checked`` a command that the core would refuse is refused here, with a ``ValueError`` that says why; else
    anything can be built.
    """

    def __init__(self, sizes, checked=True):
        check_sizes(sizes)
        self.sizes = sizes
        self.commands = []
        self.stored = []
        self._beats = []
        self._arenas = {memory: Arena(memory, getattr(sizes, depth)) for memory, depth in DEPTH.items()}
        self._checks = CommandChecks(sizes) if checked else None

    @property
    def load_beats(self):
        """All beats of the load stream in order, [n, row_word]."""
        return np.concatenate([np.zeros((0, self.sizes.row_word), np.uint16), *self._beats])

    @property
    def beats_of_loads(self):
        """The beats of each LOAD and CTR in order; those that a host is to bring back are 0 before a run."""
        return tuple(self._beats)

    def beat_integers(self):
        """The same as integers of 16 * row_word bits."""
        return [int.from_bytes(beat.astype("<u2").tobytes(), "little") for beat in self.load_beats]

    def results(self, run):
        """What each STORE sent, in order: see :meth:`Stored.of`."""
        return [stored.of(run) for stored in self.stored]

    def split(self, values, last):
        """What each STORE sent, from the beats [n, row_word] of a run without refusals, and their ``last`` bits."""
        ends = np.flatnonzero(last) + 1
        parts = np.split(np.asarray(values), ends)[: len(ends)]
        return [stored.read(part) for stored, part in zip(self.stored, parts, strict=True)]

    def reason(self, command):
        """Why the core would refuse this command now; nothing if it would not."""
        return self._checks.reason(command) if self._checks is not None else ""

    def append(self, command, beats=None):
        """Any command, with the beats [n, row_word] that it takes from the load stream."""
        if self._checks is not None:
            self._checks.add(command, beats)
        self.commands.append(command)
        if beats is not None:
            self._beats.append(np.asarray(beats, np.uint16).reshape(-1, self.sizes.row_word))

    def issue(self, opcode, beats=None, flags=None, **fields):
        """A command by its fields; a handle stands for the first word, and for the stride if it has one.

        ``flags`` is ``{name: whether it is set}``. Only fields and flags that the command table gives the opcode are
        taken, whatever their values: a program may be wrong on purpose.
        """
        values = {}
        for name, value in fields.items():
            values[name] = getattr(value, "first", value)
            if hasattr(value, "stride"):
                values[f"{name}_stride"] = value.stride
            if getattr(value, "column", 0):
                if name != "destination" or "column" not in fields_of(opcode):
                    raise ValueError(
                        f"{name} of {opcode.name} must begin with a word of IMEM, {value.word} elements, "
                        f"not at element {value.column} of one"
                    )
                values["column"] = value.column
        for kind, names, legal in (("field", values, fields_of(opcode)), ("flag", flags or {}, flags_of(opcode))):
            for name in names:
                if name not in legal:
                    raise TypeError(f"{opcode.name} has no {kind} {name!r}: legal are {', '.join(legal) or 'none'}")
        bits = sum(FLAGS[name] for name, is_set in (flags or {}).items() if is_set)
        self.append(Command(opcode=opcode, flags=bits, **values), beats)

    def place(self, memory, length, at=None, purpose="this"):
        """Allocate ``length`` words of a memory, or take those from ``at`` on: the first one."""
        arena = self._arenas[memory]
        if at is None:
            return arena.take(length, purpose)
        arena.put(at, length)
        return at

    def room(self, memory):
        """Words of a memory that are free, in one piece or more."""
        return self._arenas[memory].n_free

    def release(self, memory, first):
        """Give back what :meth:`place` gave."""
        self._arenas[memory].free(first)

    def free(self, *handles):
        """Give the words of matrices, weights, keys, values, scores or probabilities back."""
        for handle in handles:
            self.release(handle.memory, handle.first)

    @contextmanager
    def scope(self):
        """What is allocated inside a ``with`` block is given back at its end."""
        before = {memory: arena.allocations() for memory, arena in self._arenas.items()}
        yield self
        for memory, arena in self._arenas.items():
            for first in arena.allocations() - before[memory]:
                arena.free(first)

    def multiplier(self, n, multiplier=None):
        """The hash multiplier for n keys: the one given, or a default."""
        return default_multiplier(max(n, self.sizes.n_banks)) if multiplier is None else multiplier

    def matrix(self, n_rows, n, at=None):
        """Allocate contiguous rows in IMEM."""
        word = self.sizes.row_word
        stride = words_for(n, word)
        first = self.place("imem", n_rows * stride, at, f"a matrix of {n_rows} rows of {n}")
        return Matrix(first, stride, n_rows, n, word)

    def load_rows(self, rows, into=None):
        rows = placement.fp16_words(rows)
        into = into or self.matrix(*rows.shape)
        beats = placement.row_beats(rows, self.sizes)
        n_rows, n_in = rows.shape
        self.issue(Opcode.LOAD, beats, function=Memory.ROWS, n_rows=n_rows, n_in=n_in, destination=into)
        return into

    def _load_banks(self, memory, function, words, at):
        first = self.place(memory, len(words), at, "what is loaded")
        beats = placement.bank_beats(words, self.sizes)
        self.issue(Opcode.LOAD, beats, function=function, n_rows=len(words), bank_address=first)
        return first

    def load_weights(self, weights, bias=None, at=None):
        """Weights [n_in, n_out] and bias [n_out] of a dense product."""
        words = placement.weight_words(weights, self.sizes, bias)
        return Weights(self._load_banks("wmem", Memory.WEIGHTS, words, at), *_shape(weights), bias is not None)

    def load_keys(self, keys, multiplier=None, at=None):
        """Keys [n, d] in hash order."""
        multiplier = self.multiplier(len(keys), multiplier)
        words = placement.banked_words(keys, self.sizes, self.sizes.n_lanes, multiplier)
        return Banked(self._load_banks("wmem", Memory.WEIGHTS, words, at), *_shape(keys), multiplier, "wmem")

    def load_values(self, values, multiplier=None, at=None):
        """Values [n, d] in hash order."""
        multiplier = self.multiplier(len(values), multiplier)
        words = placement.banked_words(values, self.sizes, self.sizes.simd_lanes, multiplier)
        return Banked(self._load_banks("vmem", Memory.VALUES, words, at), *_shape(values), multiplier, "vmem")

    def load_columns(self, values, multiplier=None, at=None):
        """Values [n, d] in hash order, as columns for the dense product with probabilities."""
        multiplier = self.multiplier(len(values), multiplier)
        words = placement.column_words(values, self.sizes, multiplier)
        return Banked(self._load_banks("wmem", Memory.WEIGHTS, words, at), *_shape(values), multiplier, "wmem")

    def load_mask(self, mask, number=0, multiplier=None, first_row=0):
        """A mask [rows, keys], or rows of it from ``first_row`` on; mask 0 has one row."""
        multiplier = self.multiplier(np.shape(mask)[1], multiplier)
        beats = placement.mask_beats(mask, self.sizes, multiplier)
        fields = {"n_rows": len(mask), "mask_out": number, "first_row": first_row}
        self.issue(Opcode.LOAD, beats, function=Memory.MASK, **fields)

    def _load_words(self, function, words, **fields):
        beats = pack(np.asarray(words).astype(np.uint16), self.sizes.row_word)
        self.issue(Opcode.LOAD, beats, function=function, n_rows=len(words), **fields)

    def load_tokens(self, rows):
        """The token list."""
        self._load_words(Memory.TOKENS, np.asarray(rows, np.int64).reshape(-1, 1))

    def load_mass(self, mass, first_row=0):
        """The retained mass of each row."""
        self._load_words(Memory.MASS, placement.fp16_words(mass).reshape(-1, 1), first_row=first_row)

    def load_sampled(self, matrix, mask, number, memory=Memory.SCORES, multiplier=None, at=None):
        """Scores or probabilities [rows, keys] selected by ``mask``, which is mask ``number`` of the core."""
        multiplier = self.multiplier(np.shape(mask)[1], multiplier)
        words = placement.encode_sampled(matrix, mask, self.sizes, multiplier)
        name = Memory(memory).name.lower()
        first = self.place(name, len(words), at, f"{name} of {len(mask)} rows")
        self._load_words(memory, words, destination=first)
        return Encoded(first, *_shape(mask), number, False, name)

    def _store(self, function, read, **fields):
        self.issue(Opcode.STORE, function=function, **fields)
        self.stored.append(Stored(len(self.commands) - 1, read))
        return self.stored[-1]

    def store_rows(self, matrix):
        n_words = words_for(matrix.n, self.sizes.row_word)
        return self._store(
            Memory.ROWS,
            lambda beats: beats.reshape(matrix.n_rows, n_words * self.sizes.row_word)[:, : matrix.n],
            n_rows=matrix.n_rows,
            n_in=matrix.n,
            source=matrix,
        )

    def store_sampled(self, encoded, n_words, memory=Memory.PROBABILITIES):
        """Words of SCORES or PROBABILITIES, [n_words, banks], for :func:`golden.program.placement.decode_sampled`."""
        return self._store(memory, lambda beats: beats[:, : self.sizes.n_banks], n_rows=n_words, source=encoded.first)

    def store_mask(self, number, n_rows, n_keys, multiplier=None):
        multiplier = self.multiplier(n_keys, multiplier)
        return self._store(
            Memory.MASK,
            lambda beats: placement.mask_of_beats(beats, self.sizes, n_keys, multiplier),
            n_rows=n_rows,
            mask=number,
        )

    def store_tokens(self):
        return self._store(Memory.TOKENS, lambda beats: beats[1:, 0])

    def store_mass(self, n_rows):
        return self._store(Memory.MASS, lambda beats: beats[:, 0], n_rows=n_rows)

    def store_counters(self):
        """The counters in the order of :data:`golden.spec.counters.COUNTERS`."""
        return self._store(Memory.COUNTERS, lambda beats: beats[:, 0] | beats[:, 1].astype(np.uint32) << 16)
