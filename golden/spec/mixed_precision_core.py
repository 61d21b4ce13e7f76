"""Sizes and command set of the mixed-precision core: the one definition that model, hardware and documents share.

``COMMANDS``, at the end, is the table: a row defines which fields a command uses, what they may be, and which memories
it reads and writes.
"""

import enum
from dataclasses import dataclass, fields

from golden.spec.formats import FP16, FP32
from golden.spec.mixed_precision import n_keys
from golden.spec.mixed_precision_array import MixedPrecisionArrayParameters
from golden.spec.parameters import Parameters, integer, power_of_two

__all__ = [
    "COMMANDS",
    "COMMAND_WIDTH",
    "FIELDS",
    "FLAGS",
    "Activation",
    "Code",
    "Command",
    "Error",
    "Field",
    "Form",
    "Memory",
    "MixedPrecisionCoreParameters",
    "Range",
    "Unit",
    "form_of",
]


@dataclass(frozen=True, kw_only=True)
class MixedPrecisionCoreParameters(Parameters):
    n_rows: int = integer(16, low=1, high=128, doc="tokens of a tile: rows of processing elements")
    n_columns: int = integer(16, low=1, high=128, doc="columns of processing elements: outputs of a tile")
    n_channels: int = integer(128, low=1, high=1024, doc="channels that are quantised together at most")
    n_levels: int = integer(3, low=1, high=8, doc="number of different exponents in a tile")
    n_output_lanes: int = power_of_two(4, low=1, high=128, doc="outputs a beat, a divisor of n_columns")
    n_regions: int = integer(3, low=1, high=16, doc="regions of n_channels rows of weights and one set of scales")
    n_buffers: int = integer(2, low=1, high=16, doc="buffers of quantised tiles")
    n_tiles: int = integer(8, low=1, high=4096, doc="tiles of outputs, n_rows by n_columns")
    activation_depth: int = integer(128, low=1, high=1 << 15, doc="channels in the memory of activations")
    reference_depth: int = integer(128, low=1, high=1 << 15, doc="channels in the memory of references")

    def check(self):
        if self.n_columns % self.n_output_lanes:
            self.refuse("n_output_lanes", f"a divisor of n_columns={self.n_columns}")
        if self.activation_depth % self.n_output_lanes:
            self.refuse("activation_depth", f"a multiple of n_output_lanes={self.n_output_lanes}")
        self.array()

    def array(self):
        """The parameters of the array."""
        return MixedPrecisionArrayParameters(
            n_rows=self.n_rows,
            n_columns=self.n_columns,
            n_channels=self.n_channels,
            n_levels=self.n_levels,
            weight_depth=self.n_regions * self.n_channels,
            n_output_lanes=self.n_output_lanes,
        )

    @property
    def channel_width(self):
        """Bits of the number of a channel in a tile."""
        return max(1, (self.n_channels - 1).bit_length())

    @property
    def buffer_rows(self):
        """Groups that a buffer holds: as many as the slices of a tile can make."""
        return self.n_channels + n_keys(self.n_levels)

    @property
    def tile_beats(self):
        """Beats of a tile of outputs."""
        return self.n_rows * self.n_columns // self.n_output_lanes

    @property
    def beat_width(self):
        """Bits of a beat of the load and store streams."""
        return max(FP16.width * self.n_rows, FP16.width * self.n_columns, FP32.width * self.n_output_lanes)


@dataclass(frozen=True)
class Field:
    """Position of a field in a command (32-bit word, lowest bit, width) and its meaning."""

    name: str
    word: int
    low: int
    width: int
    doc: str

    @property
    def offset(self):
        """Lowest bit, counted from bit 0 of word 0."""
        return 32 * self.word + self.low


FIELDS = (
    Field("opcode", 0, 0, 8, "what to do"),
    Field("function", 0, 8, 8, "which memory, or which activation"),
    Field("flags", 0, 16, 8, "options, one bit each"),
    Field("buffer", 0, 24, 4, "buffer of a quantised tile"),
    Field("region", 0, 28, 4, "region of weights and scales"),
    Field("source", 1, 0, 16, "first channel, or tile of outputs, that is read"),
    Field("destination", 1, 16, 16, "first channel, or tile of outputs, that is written"),
    Field("count", 2, 0, 16, "channels"),
    Field("threshold", 2, 16, 16, "largest magnitude with 2 bits: FP16, positive and normal"),
    Field("reference", 3, 0, 16, "first channel in the memory of references"),
    Field("finest_exponent", 3, 16, 7, "the finest scale is 2**-finest_exponent: two's complement"),
)
COMMAND_WIDTH = 128


class Code(enum.IntEnum):
    """Operation codes."""

    CLEAR = 1
    LOAD = 2
    STORE = 3
    QUANTISE = 4
    MULTIPLY = 5
    ACTIVATE = 6


class Memory(enum.IntEnum):
    """Function of LOAD and STORE."""

    WEIGHTS = 0
    SCALES = 1
    ACTIVATIONS = 2
    REFERENCES = 3
    OUTPUTS = 4


class Activation(enum.IntEnum):
    """Function of ACTIVATE."""

    IDENTITY = 0
    GELU = 1


class Unit(enum.IntEnum):
    """Units at work: bits of ``busy``. Two multiplications can be under way, one of which only has its sums to give."""

    TRANSFER = 0
    QUANTISER = 1
    ARRAY = 2
    ACTIVATION = 3


class Error(enum.IntEnum):
    """Why a command was refused: the first reason in this order.

    SIZE: a count of 0 or too many channels, or a destination of ACTIVATE that is no multiple of n_output_lanes.
    RANGE: places beyond the end of a memory, no such buffer, region or tile. PRECISION: the threshold is no positive
    normal number, or finest_exponent is beyond -15 to 24. BUFFER_MISSING: nothing was quantised into the buffer.
    """

    NONE = 0
    UNKNOWN_OPCODE = 1
    UNKNOWN_FUNCTION = 2
    SIZE = 3
    RANGE = 4
    PRECISION = 5
    BUFFER_MISSING = 6


FLAGS = {"full_precision": 1, "restart": 2}
"""8 bits for all channels; references count as zero before."""


@dataclass(frozen=True)
class Range:
    """Places ``base`` to ``base + length - 1`` of a memory; ``length`` is a field or 1, ``depth`` a parameter."""

    memory: str
    base: str
    depth: str
    length: str | int = 1
    aligned: bool = False
    """Whether the first place must be a multiple of n_output_lanes."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """A row of the table: the command, what it reads and writes, the largest count (a parameter) if it has one."""

    code: Code
    doc: str
    function: int | None = None
    flags: tuple = ()
    unit: Unit | None = None
    reads: tuple = ()
    writes: tuple = ()
    largest_count: str | None = None
    is_loop: bool = False
    """Whether threshold and finest_exponent are used."""

    def of_memory(self, memory):
        """The ranges of a memory that it uses, read or written."""
        return [item for item in (*self.reads, *self.writes) if item.memory == memory]


_FROM = Range("activations", "source", "activation_depth", "count")
_REFERENCES = Range("references", "reference", "reference_depth", "count")
_BUFFER, _REGION = Range("buffers", "buffer", "n_buffers"), Range("regions", "region", "n_regions")


def _transfer(code, memory, ranges, doc, largest_count=None):
    place = {"reads" if code == Code.STORE else "writes": ranges}
    return Form(code=code, function=memory, doc=doc, unit=Unit.TRANSFER, largest_count=largest_count, **place)


def _outputs(base):
    return (Range("outputs", base, "n_tiles"),)


COMMANDS = (
    Form(code=Code.CLEAR, doc="clear the error and the count of invalid vectors"),
    _transfer(Code.LOAD, Memory.WEIGHTS, (_REGION,), "weights of count channels, a row a beat", "n_channels"),
    _transfer(Code.LOAD, Memory.SCALES, (_REGION,), "the scale of each column, one beat"),
    _transfer(
        Code.LOAD,
        Memory.ACTIVATIONS,
        (Range("activations", "destination", "activation_depth", "count"),),
        "FP16 values of count channels, the tokens of a channel a beat",
        "activation_depth",
    ),
    _transfer(
        Code.LOAD,
        Memory.REFERENCES,
        (Range("references", "destination", "reference_depth", "count"),),
        "references of count channels: 16-bit integers, the tokens of a channel a beat",
        "reference_depth",
    ),
    _transfer(
        Code.LOAD, Memory.OUTPUTS, _outputs("destination"), "a tile: FP32, row by row, n_output_lanes columns a beat"
    ),
    _transfer(Code.STORE, Memory.ACTIVATIONS, (_FROM,), "as they are loaded", "activation_depth"),
    _transfer(
        Code.STORE,
        Memory.REFERENCES,
        (Range("references", "source", "reference_depth", "count"),),
        "as they are loaded",
        "reference_depth",
    ),
    _transfer(Code.STORE, Memory.OUTPUTS, _outputs("source"), "as they are loaded"),
    Form(
        code=Code.QUANTISE,
        doc="quantise the differences of count channels to their references into a buffer, and add them to those",
        flags=("full_precision", "restart"),
        unit=Unit.QUANTISER,
        reads=(_FROM, _REFERENCES),
        writes=(_REFERENCES, _BUFFER),
        largest_count="n_channels",
        is_loop=True,
    ),
    Form(
        code=Code.MULTIPLY,
        doc="add the product of a buffer and a region's weights to a tile of outputs",
        unit=Unit.ARRAY,
        reads=(_BUFFER, _REGION),
        writes=(Range("outputs", "destination", "n_tiles"),),
    ),
    *(
        Form(
            code=Code.ACTIVATE,
            function=function,
            doc=doc,
            unit=Unit.ACTIVATION,
            reads=_outputs("source"),
            writes=(Range("activations", "destination", "activation_depth", "n_columns", aligned=True),),
        )
        for function, doc in (
            (Activation.IDENTITY, "a tile of outputs to FP16 activations of n_columns channels"),
            (Activation.GELU, "the same, through GELU"),
        )
    ),
)


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command; fields that it does not use are ignored."""

    opcode: int = 0
    function: int = 0
    flags: int = 0
    buffer: int = 0
    region: int = 0
    source: int = 0
    destination: int = 0
    count: int = 0
    threshold: int = 0
    reference: int = 0
    finest_exponent: int = 0

    def __post_init__(self):
        for item in FIELDS:
            value = getattr(self, item.name)
            low, high = 0, (1 << item.width) - 1
            if item.name == "finest_exponent":
                low, high = -(1 << item.width - 1), (1 << item.width - 1) - 1
            if not low <= value <= high:
                raise ValueError(f"{item.name} must be from {low} to {high}, not {value!r}")

    def encode(self):
        """The command as one integer of COMMAND_WIDTH bits."""
        return sum((int(getattr(self, item.name)) & (1 << item.width) - 1) << item.offset for item in FIELDS)

    def has(self, flag):
        """Whether a flag, by name, is set."""
        return bool(self.flags & FLAGS[flag])


assert [item.name for item in FIELDS] == [item.name for item in fields(Command)]


def form_of(opcode, function):
    """The row of the table, or None."""
    for form in COMMANDS:
        if form.code == opcode and form.function in (None, function):
            return form
    return None
