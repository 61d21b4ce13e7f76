"""Programs whose matrices go out to the host's memory and come back: what a LOAD brings may be what a STORE sent."""

import numpy as np

from golden.core.core import Core
from golden.core.streams import pack
from golden.program import placement
from golden.program.assembler import Program
from golden.program.data import Banked
from golden.spec.commands import Memory, Opcode
from golden.spec.sizes import words_for

__all__ = ["HostMatrix", "HostProgram"]


class HostMatrix:
    """Words [n_rows, n] in the host's memory: ``values`` are known from the start, or when a run has stored them."""

    def __init__(self, n_rows, n, values=None):
        self.n_rows, self.n = n_rows, n
        self.words = np.zeros((n_rows, n), np.uint16)
        if values is not None:
            self.words[:] = placement.fp16_words(values)

    def part(self, rows, columns):
        """Elements from ``(first, number)`` rows and columns on, a view."""
        return self.words[rows[0] : rows[0] + rows[1], columns[0] : columns[0] + columns[1]]


class HostProgram(Program):
    """A program with loads from :class:`HostMatrix` and stores to it.

    Such a load comes behind the stores of its data in the order of commands; whoever feeds the core has to keep that
    order. The beats are known when :meth:`run` has executed the program in the golden model.
    """

    def __init__(self, sizes, checked=True):
        super().__init__(sizes, checked)
        self._fetches = {}  # number of a command: makes its beats
        self._sinks = {}  # number of a STORE: takes what it stored
        self._is_run = False

    @property
    def load_beats(self):
        if self._fetches and not self._is_run:
            raise ValueError("the beats that come back from the host are not known before the program was run")
        return super().load_beats

    def _issue_fetch(self, n_beats, fetch, **fields):
        number = len(self.commands)
        self.issue(Opcode.LOAD, np.zeros((n_beats, self.sizes.row_word), np.uint16), **fields)
        self._fetches[number] = fetch

    def fetch_rows(self, source, rows, columns, into):
        """LOAD a part of a host's matrix, ``(first, number)`` of rows and columns, into rows of IMEM."""
        part = source.part(rows, columns)
        n_beats = rows[1] * words_for(columns[1], self.sizes.row_word)
        self._issue_fetch(
            n_beats,
            lambda: placement.row_beats(part, self.sizes),
            function=Memory.ROWS,
            n_rows=rows[1],
            n_in=columns[1],
            destination=into,
        )
        return into

    def _fetch_banked(self, words_of, memory, function, lanes, length, source, columns, multiplier, at):
        sizes, part = self.sizes, source.part((0, source.n_rows), columns)

        def beats():
            words = words_of(part)
            return pack(words.reshape(-1, lanes), sizes.row_word)

        n_beats = words_for(length * sizes.n_banks, sizes.row_word // lanes)
        self._issue_fetch(n_beats, beats, function=function, n_rows=length, bank_address=at)
        return Banked(at, source.n_rows, columns[1], multiplier, memory)

    def fetch_keys(self, source, columns, multiplier, at):
        """LOAD some columns of all rows as keys, in hash order."""
        sizes, lanes = self.sizes, self.sizes.n_lanes
        length = words_for(columns[1], lanes) * sizes.slots_of(source.n_rows)

        def words(rows):
            return placement.banked_words(rows, sizes, lanes, multiplier)

        return self._fetch_banked(words, "wmem", Memory.WEIGHTS, lanes, length, source, columns, multiplier, at)

    def fetch_values(self, source, columns, multiplier, at):
        """LOAD some columns of all rows as values of the engines, in hash order."""
        sizes, lanes = self.sizes, self.sizes.simd_lanes
        length = words_for(columns[1], lanes) * sizes.slots_of(source.n_rows)

        def words(rows):
            return placement.banked_words(rows, sizes, lanes, multiplier)

        return self._fetch_banked(words, "vmem", Memory.VALUES, lanes, length, source, columns, multiplier, at)

    def fetch_columns(self, source, columns, multiplier, at):
        """LOAD some columns of all rows as columns of values, in hash order."""
        sizes, lanes = self.sizes, self.sizes.n_lanes
        length = words_for(columns[1], sizes.n_banks) * sizes.slots_of(source.n_rows) * sizes.column_beats

        def words(rows):
            return placement.column_words(rows, sizes, multiplier)

        return self._fetch_banked(words, "wmem", Memory.WEIGHTS, lanes, length, source, columns, multiplier, at)

    def put_rows(self, matrix, into, rows, columns):
        """STORE a matrix into a part of a host's matrix."""
        stored = self.store_rows(matrix)
        part = into.part(rows, columns)

        def take(beats):
            part[:] = stored.read(beats)

        self._sinks[stored.command] = take

    def run(self, core=None, progress=lambda share: None):
        """Execute the program in the golden model, command after command; ``ValueError`` if one is refused."""
        core = core or Core(self.sizes)
        entries = iter(range(len(self._beats)))
        for number, command in enumerate(self.commands):
            beats = ()
            if command.opcode in (Opcode.LOAD, Opcode.CTR):
                index = next(entries)
                if number in self._fetches:
                    self._beats[index] = self._fetches[number]()
                beats = self._beats[index]
            found = core.execute([command], beats)
            if not all(found.executed):
                raise ValueError(f"command {number} was refused: {core.refusal}")
            assert found.store is not None
            if number in self._sinks:
                assert found.store.defined[:, :1].all()
                self._sinks[number](found.store.values)
            progress((number + 1) / len(self.commands))
        self._is_run = True
        return core
