"""Bit-exact model of the core: executes a command stream sequentially.

The hardware overlaps commands only where the results are the same, so sequential order defines them. Errors are
those of :mod:`golden.core.checks`.
"""

from dataclasses import dataclass, field

import numpy as np

from golden.core import array as core_array
from golden.core import vector as core_vector
from golden.core.checks import WrittenState, check
from golden.core.memories import Memories, Words
from golden.core.streams import TokenCompare, load, n_load_beats, store
from golden.spec.commands import ErrorCode, Memory, Opcode, Unit, form_of
from golden.spec.counters import COUNTERS, DEPENDS_ON_TIME
from golden.spec.operands import MaskRows
from golden.spec.sizes import check_sizes

__all__ = ["Core", "Refusal", "Run", "StoreBeats"]

_MEANINGS = {Unit.ARRAY: core_array, Unit.SOFTMAX: core_vector, Unit.VECTOR: core_vector, Unit.ENGINES: core_vector}
"""The module with the function of each opcode, which has the opcode's name in lower case."""


@dataclass(frozen=True)
class Refusal:
    """Why the core stopped, and at which command; commands are numbered from 0 at reset."""

    code: ErrorCode
    command: int


@dataclass
class StoreBeats:
    """Beats of the store stream in order."""

    values: np.ndarray  # uint16 [n, row_word]
    defined: np.ndarray  # bool, the same shape: False for don't-cares
    last: np.ndarray  # bool [n]
    command: np.ndarray  # number of the STORE command

    @classmethod
    def join(cls, parts, row_word):
        """One after the other; parts are ``(number, Words)``."""
        words = [words for _, words in parts]
        lengths = [len(each.data) for each in words]
        last = np.zeros(sum(lengths), bool)
        last[np.cumsum(lengths, dtype=np.int64) - 1] = True
        return cls(
            np.concatenate([np.zeros((0, row_word), np.uint16), *(each.data for each in words)]),
            np.concatenate([np.zeros((0, row_word), bool), *(each.defined for each in words)]),
            last,
            np.repeat([number for number, _ in parts], lengths).astype(np.int64),
        )


@dataclass
class Run:
    """The results of a sequence of commands."""

    executed: list = field(default_factory=list)  # one flag a command
    refusals: list = field(default_factory=list)  # one for each command that stopped the core
    store: StoreBeats | None = None
    load_beats: int = 0  # beats that were taken from the load stream


class Core:
    """A core after reset. ``execute`` may be called again and goes on where it was.

    Its state: ``memories``; ``state`` (valid mask rows, retained masses, token list); ``refusal`` (None, or why
    commands are dropped until a CLEAR); ``counters`` (those that do not depend on timing); ``uncertain_from``, the
    number of the first command that was controlled by undefined mask bits, None if there is none: from that command on
    the hardware's behaviour is undefined.
    """

    def __init__(self, sizes):
        check_sizes(sizes)
        self.sizes = sizes
        self.memories = Memories(sizes)
        self.state = WrittenState([0] * sizes.n_masks)
        self.compare = TokenCompare(sizes)
        self.refusal = None
        self.n_commands = 0
        self.counters = self._zeros()
        self.uncertain_from = None

    @staticmethod
    def _zeros():
        return {name: 0 for name in COUNTERS if name not in DEPENDS_ON_TIME}

    def execute(self, commands, load_beats=()):
        """Run commands on the beats [n, row_word] of the load stream; unneeded beats are ignored.

        A refused command and those dropped until a legal CLEAR take no beats and change nothing.
        """
        beats = np.asarray(load_beats, np.uint16).reshape(-1, self.sizes.row_word)
        run, stored = Run(), []
        for command in commands:
            number = self.n_commands
            self.n_commands += 1
            is_executed = self._accepts(command, number, run)
            run.executed.append(is_executed)
            if not is_executed:
                continue
            self._count(commands=1)
            if command.opcode == Opcode.STORE:
                stored.append((number, self._store(command)))
            elif command.opcode in (Opcode.LOAD, Opcode.CTR):
                run.load_beats += self._load(command, number, beats[run.load_beats :])
            elif command.opcode != Opcode.CLEAR:
                self._compute(command, number)
            if command.opcode == Opcode.CLEAR and command.function == 1:
                self.counters = self._zeros()
        run.store = StoreBeats.join(stored, self.sizes.row_word)
        return run

    def _accepts(self, command, number, run):
        code = check(command, self.sizes, self.state)
        if self.refusal is not None:
            if command.opcode != Opcode.CLEAR or code != ErrorCode.NONE:
                return False
            self.refusal = None
        if code != ErrorCode.NONE:
            self.refusal = Refusal(code, number)
            run.refusals.append(self.refusal)
        return code == ErrorCode.NONE

    def _count(self, **steps):
        for name, step in steps.items():
            self.counters[name] = (self.counters[name] + step) % (1 << 32)

    def _load(self, command, number, beats):
        is_compare = command.opcode == Opcode.CTR
        needed = self.compare.n_beats if is_compare else n_load_beats(command, self.sizes)
        if len(beats) < needed:
            raise ValueError(f"load_beats must hold {needed} beats for command {number}, only {len(beats)} are left")
        if is_compare:
            self.state.tokens = self.compare.tokens(beats[:needed], command.theta, command.has("restart"))
        else:
            load(self.memories, command, beats[:needed], self.state)
            self.state.update(command)
        self._count(load_beats=needed)
        return needed

    def _store(self, command):
        if command.function == Memory.COUNTERS:
            return self._counter_beats()
        words = store(self.memories, command, self.state)
        self._count(store_beats=len(words.data))
        return words

    def _counter_beats(self):
        """One beat a counter, low half first; those that depend on timing are undefined."""
        words = Words.of(np.zeros((len(COUNTERS), self.sizes.row_word)))
        for index, name in enumerate(COUNTERS):
            value = self.counters.get(name, 0)
            words.data[index, :2] = value & 0xFFFF, value >> 16
            words.defined[index, :2] = name in self.counters
        return words

    def _compute(self, command, number):
        """Execute a command that processes rows: those of the token list, or all."""
        memories, state, form = self.memories, self.state, form_of(command)
        rows = np.arange(command.n_rows)
        marked = command.first_row + rows  # their rows of masks and of the retained mass
        if command.has("gated"):
            assert state.tokens is not None  # checked before
            rows = marked = np.array(state.tokens[command.first_row :][: command.n_rows], np.int64)
            self._count(skipped_rows=command.n_rows - len(rows))
        bits = []
        for operand in form.reads:
            if isinstance(operand, MaskRows):
                number_of_mask = getattr(command, operand.number)
                bits.append(memories.mask_bits(number_of_mask, marked, self.sizes.slots_of(command.n_out)))
        if not all(words.defined.all() for words in bits) and self.uncertain_from is None:
            self.uncertain_from = number
        meaning = getattr(_MEANINGS[form.unit], form.opcode.name.lower())
        if form.unit == Unit.SOFTMAX:
            rows = marked
        self._count(**meaning(memories, command, rows, *(words.data for words in bits)))
        state.update(command)
