"""Checks of a program while it is built: a command that the core would refuse is refused at once, with its reason."""

import traceback
from pathlib import Path

from golden.core.checks import WrittenState, check, extents
from golden.core.streams import unpack
from golden.spec.commands import ErrorCode, Memory, Opcode, form_of
from golden.spec.operands import DEPTH

__all__ = ["CommandChecks"]

_HERE = Path(__file__).parent


class CommandChecks:
    """Follows what has been written. The list that CTR makes is not known: it counts as one of all tokens."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.state = WrittenState([0] * sizes.n_masks)
        self._n_commands = 0

    def add(self, command, beats):
        """The next command; ``ValueError`` if the core would refuse it."""
        if reason := self.reason(command):
            where = f"command {self._n_commands}, {_name(command)}, would be refused at {_caller()}"
            raise ValueError(f"{where}: {reason} ({command})")
        self._n_commands += 1
        if command.opcode == Opcode.CTR:
            self.state.tokens = list(range(self.sizes.latent.n_tokens))
        elif command.opcode == Opcode.LOAD and command.function == Memory.TOKENS:
            self.state.tokens = [int(row) for row in unpack(beats, command.n_rows, 1).ravel()] if len(beats) else []
        if command.opcode != Opcode.CLEAR:
            self.state.update(command)

    def reason(self, command):
        """Why the core would refuse this command now; nothing if it would not."""
        code = check(command, self.sizes, self.state)
        if code == ErrorCode.NONE:
            return ""
        if code == ErrorCode.RANGE:
            return "; ".join(
                f"{part.memory} has {getattr(self.sizes, DEPTH[part.memory])} words, and words {part.first} to "
                f"{part.end - 1} are needed"
                for part in extents(command, self.sizes, self.state)
                if part.end > getattr(self.sizes, DEPTH[part.memory])
            )
        return f"{code.name}: {code.doc}"


def _name(command):
    try:
        return form_of(command).name
    except LookupError:
        return f"opcode {command.opcode}, function {command.function}"


def _caller():
    """The line outside of this package that builds the command."""
    for frame in reversed(traceback.extract_stack()):
        if not Path(frame.filename).is_relative_to(_HERE):
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return "an unknown line"
