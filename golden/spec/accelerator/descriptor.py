"""Descriptors, 64 bytes each: a command of the core, and where its data are in memory."""

from dataclasses import dataclass
from dataclasses import field as dataclass_field

from golden.spec.accelerator.parameters import DESCRIPTOR_BYTES
from golden.spec.commands import COMMAND_WIDTH, Command, Field

__all__ = ["DESCRIPTOR_FIELDS", "DESCRIPTOR_FLAGS", "DESCRIPTOR_FLAG_DOC", "DESCRIPTOR_WORDS", "Descriptor"]

DESCRIPTOR_WORDS = DESCRIPTOR_BYTES // 4

DESCRIPTOR_FIELDS = (
    Field("command", 0, 0, COMMAND_WIDTH, "command of the core, words 0 to 8 (docs/commands.md)"),
    Field("flags", 9, 0, 32, "options, one bit each; bits without a meaning are 0"),
    Field("number", 10, 0, 32, "chosen by software: ERROR_NUMBER and DONE_NUMBER tell it"),
    Field("length", 11, 0, 32, "transfers: bytes of a row in memory, see the table of transfers"),
    Field("pitch", 12, 0, 32, "LOAD and STORE of ROWS: bytes from the begin of a row to that of the next, even"),
    Field("reserved", 13, 0, 32, "0"),
    Field("address", 14, 0, 64, "transfers: first byte in memory, even; bits beyond address_width are 0"),
)
"""Word and bits of each field; words are little-endian. ``length``, ``pitch`` and ``address`` of commands that move no
data are ignored, and so is ``pitch`` where there are no rows."""

DESCRIPTOR_FLAGS = {"fence": 1, "interrupt": 2}
DESCRIPTOR_FLAG_DOC = {
    "fence": "begin when all descriptors before it are complete, what they store being in memory",
    "interrupt": "set INTERRUPT_STATUS.command when it and all before it are complete",
}


@dataclass(frozen=True, kw_only=True)
class Descriptor:
    """One descriptor."""

    command: Command = dataclass_field(default_factory=Command)
    flags: int = 0
    number: int = 0
    length: int = 0
    pitch: int = 0
    reserved: int = 0
    address: int = 0

    def __post_init__(self):
        for item in DESCRIPTOR_FIELDS[1:]:
            value = getattr(self, item.name)
            if not 0 <= value < 1 << item.width:
                raise ValueError(f"{item.name} must be from 0 to {(1 << item.width) - 1}, not {value!r}")

    def encode(self):
        """Its 64 bytes."""
        value = self.command.encode()
        for item in DESCRIPTOR_FIELDS[1:]:
            value |= int(getattr(self, item.name)) << item.offset
        return value.to_bytes(DESCRIPTOR_BYTES, "little")

    @classmethod
    def decode(cls, data):
        """The descriptor of 64 bytes."""
        value = int.from_bytes(bytes(data), "little")
        fields = {item.name: value >> item.offset & ((1 << item.width) - 1) for item in DESCRIPTOR_FIELDS}
        return cls(command=Command.decode(fields.pop("command")), **fields)

    def has(self, flag):
        """Whether a flag, by name, is set."""
        return bool(self.flags & DESCRIPTOR_FLAGS[flag])
