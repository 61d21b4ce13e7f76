"""The registers of the accelerator: their one definition, from which decoder, header and documents are made.

``REGISTERS``, at the end, is the table. All registers have 32 bits, are read and written as a whole, and lie in
``SPACE_BYTES`` bytes. Reading never changes anything.
"""

import enum
from dataclasses import dataclass

from golden.spec.accelerator.descriptor import DESCRIPTOR_WORDS
from golden.spec.accelerator.errors import AcceleratorError
from golden.spec.commands import ErrorCode, Unit

__all__ = ["MAGIC", "REGISTERS", "SPACE_BYTES", "VERSION", "Access", "Register", "RegisterField", "register"]

SPACE_BYTES = 1 << 10
MAGIC = int.from_bytes(b"SDiT", "little")
VERSION = 1 << 16
"""Major version in the upper half: programs of another one do not work; minor version in the lower half."""


class Access(enum.StrEnum):
    """What software may do with a field."""

    RO = "ro"
    """read; the hardware sets it"""
    RW = "rw"
    """read and write"""
    W1C = "w1c"
    """read; a 1 that is written clears the bit"""
    WO = "wo"
    """write; it reads as 0"""


@dataclass(frozen=True)
class RegisterField:
    """Bits of a register. ``reset`` is a number, or the name of the size whose value a constant field has."""

    name: str
    low: int
    width: int
    access: Access
    doc: str
    reset: int | str = 0

    @property
    def mask(self):
        """Its bits in the register."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True)
class Register:
    """A register at a byte offset; ``count`` of them follow each other in steps of 4 bytes."""

    name: str
    offset: int
    fields: tuple
    doc: str
    count: int = 1

    def __getitem__(self, name):
        return next(item for item in self.fields if item.name == name)


def _whole(name, offset, access, doc, reset: int | str = 0, count=1):
    """A register with one field of 32 bits, called ``value``."""
    return Register(name, offset, (RegisterField("value", 0, 32, access, doc, reset),), doc, count)


def _constants(name, offset, *fields):
    """A register of constant halves: ``(field, size, text)``, the lower half first."""
    items = (
        RegisterField(item, 16 * index, 16, Access.RO, doc, size) for index, (item, size, doc) in enumerate(fields)
    )
    return Register(name, offset, tuple(items), "sizes of this accelerator")


_BIT = 1
_RO, _RW, _W1C, _WO = Access.RO, Access.RW, Access.W1C, Access.WO
_EVENTS = (
    ("command", "a descriptor with the flag interrupt, and all before it, are complete"),
    ("error", "the machine has stopped with an error: ERROR is valid"),
    ("idle", "all descriptors of the ring up to TAIL are complete: DONE became equal to TAIL"),
)

REGISTERS = (
    _whole("MAGIC", 0x000, _RO, "'SDiT', S in the lowest byte", MAGIC),
    _whole("VERSION", 0x004, _RO, "version of this interface, major in bits 31:16", VERSION),
    _constants("BANKS", 0x008, ("n_banks", "n_banks", "banks, N"), ("n_lanes", "n_lanes", "lanes of a unit, L")),
    _constants(
        "LANES",
        0x00C,
        ("simd_lanes", "simd_lanes", "lanes of an engine, S"),
        ("row_word", "row_word", "elements of a word of IMEM, W"),
    ),
    _constants(
        "TOKENS",
        0x010,
        ("max_tokens", "max_tokens", "rows of a command at most"),
        ("max_head_dim", "max_head_dim", "elements of a query, key or value at most"),
    ),
    _constants(
        "MASKS",
        0x014,
        ("n_masks", "n_masks", "masks"),
        ("rows_a_mask", "rows_a_mask", "rows of each mask from mask 1 on"),
    ),
    _constants(
        "ROWS",
        0x018,
        ("max_dim", "max_dim", "elements of a row at most"),
        ("key_slots", "key_slots", "slots of a bank: bits of its part of a row of a mask"),
    ),
    _whole("IMEM_DEPTH", 0x01C, _RO, "words of IMEM", "imem_depth"),
    _whole("WMEM_DEPTH", 0x020, _RO, "words of a weight bank", "wmem_depth"),
    _whole("VMEM_DEPTH", 0x024, _RO, "words of a bank of values", "vmem_depth"),
    _whole("OMEM_DEPTH", 0x028, _RO, "scores, and probabilities, of a bank", "omem_depth"),
    _whole("PMEM_DEPTH", 0x02C, _RO, "partial sums of a unit", "pmem_depth"),
    _whole("LATENT_LENGTH", 0x030, _RO, "bytes that CTR takes", "latent_length"),
    Register(
        "BUS",
        0x034,
        (
            RegisterField("data_width", 0, 16, _RO, "bits of a beat of the bus", "data_width"),
            RegisterField("address_width", 16, 8, _RO, "bits of an address", "address_width"),
            RegisterField("max_ring_log2", 24, 8, _RO, "log2 of the longest ring", "max_ring_log2"),
        ),
        "the bus of this accelerator",
    ),
    Register(
        "CONTROL",
        0x040,
        (
            RegisterField("enable", 0, _BIT, _RW, "fetch descriptors from the ring"),
            RegisterField("clear", 1, _BIT, _WO, "1: CLEAR, see docs/system.md; STATUS.clearing is 1 until it is done"),
            RegisterField("clear_counters", 2, _BIT, _WO, "1: set the COUNT registers to 0"),
        ),
        "what the machine is to do",
    ),
    Register(
        "STATUS",
        0x044,
        (
            RegisterField("idle", 0, _BIT, _RO, "nothing is under way, neither in the core nor on the bus"),
            RegisterField("stopped", 1, _BIT, _RO, "stopped with an error, until CLEAR; ERROR is valid"),
            RegisterField("clearing", 2, _BIT, _RO, "a CLEAR is under way"),
            RegisterField("direct_ready", 3, _BIT, _RO, "the window takes a descriptor", 1),
            RegisterField(
                "busy",
                8,
                len(Unit),
                _RO,
                "units at work: " + ", ".join(f"bit {u.value} {u.name.lower()}" for u in Unit),
            ),
        ),
        "what the machine does",
    ),
    Register(
        "ERROR",
        0x048,
        (
            RegisterField("code", 0, 8, _RO, ", ".join(f"{e.value} {e.name}" for e in AcceleratorError)),
            RegisterField("reason", 8, 8, _RO, "of REFUSED: " + ", ".join(f"{e.value} {e.name}" for e in ErrorCode)),
        ),
        "why it stopped, until CLEAR",
    ),
    _whole("ERROR_NUMBER", 0x04C, _RO, "field number of the descriptor with the error; 0 if none was read"),
    _whole("ERROR_ADDRESS_LOW", 0x050, _RO, "address that belongs to the error, bits 31:0"),
    _whole("ERROR_ADDRESS_HIGH", 0x054, _RO, "address that belongs to the error, bits 63:32"),
    Register(
        "INTERRUPT_ENABLE",
        0x058,
        tuple(RegisterField(name, i, _BIT, _RW, doc) for i, (name, doc) in enumerate(_EVENTS)),
        "events that raise the interrupt",
    ),
    Register(
        "INTERRUPT_STATUS",
        0x05C,
        tuple(RegisterField(name, i, _BIT, _W1C, doc) for i, (name, doc) in enumerate(_EVENTS)),
        "events; the interrupt is 1 while one that is enabled is 1",
    ),
    _whole("RING_BASE_LOW", 0x060, _RW, "address of the ring, bits 31:0; a multiple of 64"),
    _whole("RING_BASE_HIGH", 0x064, _RW, "address of the ring, bits 63:32"),
    Register(
        "RING_SIZE",
        0x068,
        (RegisterField("log2", 0, 5, _RW, "log2 of the descriptors of the ring"),),
        "size of the ring; writing it sets HEAD, TAIL and DONE to 0",
    ),
    _whole("HEAD", 0x06C, _RO, "descriptors taken from the ring since RING_SIZE was written or CLEAR, modulo 2**32"),
    _whole(
        "TAIL",
        0x070,
        _RW,
        "descriptors that software put into the ring, counted in the same way; writing it starts them",
    ),
    _whole("DOORBELL", 0x074, _WO, "is added to TAIL"),
    _whole("DONE", 0x078, _RO, "descriptors of the ring that are complete, all before them too; their slots are free"),
    _whole("DONE_NUMBER", 0x07C, _RO, "field number of the descriptor that was completed last, of ring or window"),
    _whole(
        "DIRECT",
        0x080,
        _WO,
        "window: the words of one descriptor; while STATUS.direct_ready is 1",
        count=DESCRIPTOR_WORDS,
    ),
    _whole("DIRECT_SUBMIT", 0x0C0, _WO, "any value: execute the descriptor in the window"),
    _whole("COUNT_CLOCKS", 0x100, _RO, "clocks in which the machine was not idle"),
    _whole("COUNT_DESCRIPTORS", 0x104, _RO, "descriptors that were completed"),
    _whole("COUNT_READ_BEATS", 0x108, _RO, "beats of data read"),
    _whole("COUNT_WRITE_BEATS", 0x10C, _RO, "beats of data written"),
    _whole("COUNT_FETCH_BEATS", 0x110, _RO, "beats of descriptors read"),
    _whole(
        "COUNT_COMMAND_WAITS", 0x114, _RO, "clocks in which the ring had descriptors and none was there to be issued"
    ),
    _whole("COUNT_CORE_WAITS", 0x118, _RO, "clocks in which a descriptor waited for the core or a fence"),
    _whole("COUNT_LOAD_WAITS", 0x11C, _RO, "clocks in which the core waited for data to load"),
    _whole("COUNT_READ_STALLS", 0x120, _RO, "clocks in which data to load waited for the core"),
    _whole("COUNT_STORE_WAITS", 0x124, _RO, "clocks in which stored data waited for the bus"),
)
"""The table. Counters have 32 bits and wrap around. Registers of the ring but TAIL and DOORBELL are to be written
while CONTROL.enable is 0 and STATUS.idle is 1; else they keep their values."""


def register(name):
    """The register of a name."""
    return next(item for item in REGISTERS if item.name == name)
