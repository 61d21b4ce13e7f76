"""The command set of the core: its one definition, from which decoder, assembler, documents and checks are made."""

import enum
from dataclasses import dataclass, fields

__all__ = [
    "COMMAND_WIDTH",
    "FIELDS",
    "FLAGS",
    "FLAG_DOC",
    "LEGAL_FLAGS",
    "USES",
    "WORDS",
    "Command",
    "Elementwise",
    "ErrorCode",
    "Field",
    "Memory",
    "Opcode",
    "Projection",
]


@dataclass(frozen=True)
class Field:
    """Where a field lies in a command: 32-bit word, lowest bit, width; and what it says."""

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
    Field("function", 0, 8, 8, "which memory, which element-wise operation, or which kind of projection"),
    Field("flags", 0, 16, 8, "options, one bit each"),
    Field("mask", 0, 24, 4, "mask to work under; 0 is the one row that serves all rows"),
    Field("mask_out", 0, 28, 4, "mask to write"),
    Field("n_rows", 1, 0, 16, "rows; for memories without rows, words or entries"),
    Field("n_in", 1, 16, 16, "elements of a row that is read"),
    Field("n_out", 2, 0, 16, "elements of a row that is written, or number of keys"),
    Field("multiplier", 2, 16, 16, "k of the hash; bit 0 is taken as 1"),
    Field("source", 3, 0, 16, "first word of what is read"),
    Field("source_stride", 3, 16, 16, "words from row to row of it"),
    Field("source_2", 4, 0, 16, "first word of the second operand"),
    Field("source_2_stride", 4, 16, 16, "words from row to row of it"),
    Field("destination", 5, 0, 16, "first word of what is written"),
    Field("destination_stride", 5, 16, 16, "words from row to row of it"),
    Field("bank_address", 6, 0, 16, "first word of weights, keys or values in their banks"),
    Field("theta", 6, 16, 16, "threshold: FP16"),
    Field(
        "scale",
        7,
        0,
        19,
        "SOFTMAX: scale * log2(e) as (1 + bits 14:0 / 2**15) * 2**(bits 18:15 - 12);"
        " LAYER_NORM: epsilon as (1 + bits 11:0 / 2**12) * 2**(bits 17:12 - 48)",
    ),
)
WORDS = 8
COMMAND_WIDTH = 32 * WORDS


class Documented(enum.IntEnum):
    """Numbers that say what they mean: each has a ``doc``."""

    def __new__(cls, value, doc):
        member = int.__new__(cls, value)
        member._value_ = value
        member.doc = doc
        return member


class Opcode(Documented):
    CLEAR = 1, "forget the error; with function 1 set the counters to zero as well"
    LOAD = 2, "n_rows rows, words or entries from the load stream into a memory"
    STORE = 3, "n_rows rows, words or entries of a memory to the store stream"
    MATMUL = 4, "rows times the weights in the banks"
    PROJECT = 5, "the same for all tokens in hash order, through the aligner into the banks of keys or values"
    SDDMM = 6, "scores of the rows with the keys that the mask keeps"
    SOFTMAX = 7, "probabilities of scores under a mask"
    SPMM = 8, "probabilities times the values in the banks"
    ELEMENTWISE = 9, "one operation on every element of one or two matrices"
    LAYER_NORM = 10, "rows normalised, times gamma (first row of the second operand), plus beta (second row)"
    CTR = 11, "list the tokens of a latent from the load stream that changed by more than theta"


class Memory(Documented):
    """Function of LOAD and STORE."""

    ROWS = 0, "IMEM: rows of n_in elements, in whole words; a beat a word"
    WEIGHTS = 1, "weight banks, load only: for each of n_rows words one beat a bank, in its lowest n_lanes elements"
    VALUES = 2, "value banks, load only: for each of n_rows words one beat a bank, in its lowest simd_lanes elements"
    SCORES = 3, "scores: for each of n_rows words one beat, element v of it in bank v"
    PROBABILITIES = 4, "probabilities: for each of n_rows words one beat, element v of it in bank v"
    MASK = 5, "rows of a mask in hash order, bit v * key_slots + a for slot a of bank v; beats hold them from bit 0 on"
    TOKENS = 6, "token list: an entry a beat; STORE sends their number before them and ignores n_rows"
    MASS = 7, "kept mass of each row: a row a beat"
    COUNTERS = 8, "counters, store only: one a beat; n_rows is ignored, and these beats are not counted"


class Projection(Documented):
    """Function of PROJECT."""

    KEYS = 0, "into the weight banks"
    VALUES = 1, "into the value banks"


class Elementwise(Documented):
    """Function of ELEMENTWISE, the number of :class:`golden.spec.vector_operations.VectorOp`. FP16, rounded once."""

    ADD = 0, "a + b"
    SUB = 1, "a - b"
    ABS_DIFF = 2, "|a - b|"
    MUL = 3, "a * b"
    MAX = 5, "the larger one; a NaN loses"
    MIN = 6, "the smaller one; a NaN loses"
    EXP = 12, "e**a, to 1 ulp"
    RECIPROCAL = 13, "1 / a, to 1 ulp"
    RSQRT = 14, "1 / sqrt(a), to 1 ulp"
    GELU = 15, "GELU(a), to 2 ulp or 2**-15"

    @property
    def n_operands(self):
        return 2 if self < Elementwise.EXP else 1


FLAGS = {"gated": 1, "bias": 2, "make_mask": 4, "use_mass": 8, "restart": 16}
FLAG_DOC = {
    "gated": "only the rows of the token list, in its order",
    "bias": "the weights have one more beat, whose lane 0 is added",
    "make_mask": "write mask_out, the elements that are theta or more, and the mass that each row keeps",
    "use_mass": "multiply each row with its kept mass",
    "restart": "every token counts as changed",
}


class ErrorCode(Documented):
    """Why a command was refused: the first reason in this order. :mod:`golden.core.checks` has the conditions."""

    NONE = 0, "no command was refused"
    UNKNOWN_OPCODE = 1, "no such opcode"
    UNKNOWN_FUNCTION = 2, "function or flags that the opcode does not have, or make_mask with use_mass"
    SIZE = 3, "a size that is zero or beyond the configuration, a stride shorter than a row, no such mask"
    RANGE = 4, "words beyond the end of a memory"
    OVERLAP = 5, "source and destination share words, from first to last, or are the same mask"
    MASK_MISSING = 6, "rows of the mask were never written"
    TOKENS_MISSING = 7, "there is no token list, or it has more than n_rows entries, or one beyond n_rows"
    MASS_MISSING = 8, "kept masses were never written"


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command; fields that its opcode does not use are ignored."""

    opcode: int = 0
    function: int = 0
    flags: int = 0
    mask: int = 0
    mask_out: int = 0
    n_rows: int = 0
    n_in: int = 0
    n_out: int = 0
    multiplier: int = 0
    source: int = 0
    source_stride: int = 0
    source_2: int = 0
    source_2_stride: int = 0
    destination: int = 0
    destination_stride: int = 0
    bank_address: int = 0
    theta: int = 0
    scale: int = 0

    def __post_init__(self):
        for item in FIELDS:
            value = getattr(self, item.name)
            if not 0 <= value < 1 << item.width:
                raise ValueError(f"{item.name} must be from 0 to {(1 << item.width) - 1}, not {value!r}")

    def encode(self):
        """The command as one integer of COMMAND_WIDTH bits."""
        return sum(int(getattr(self, item.name)) << item.offset for item in FIELDS)

    @classmethod
    def decode(cls, word):
        """The command that an integer encodes."""
        return cls(**{item.name: word >> item.offset & ((1 << item.width) - 1) for item in FIELDS})

    def has(self, flag):
        """Whether a flag, by name, is set."""
        return bool(self.flags & FLAGS[flag])


assert [item.name for item in FIELDS] == [item.name for item in fields(Command)]

_MATRIX_IN = ("source", "source_stride")
_MATRIX_OUT = ("destination", "destination_stride")
USES = {
    Opcode.CLEAR: ("function",),
    Opcode.LOAD: ("function", "mask_out", "n_rows", "n_in", *_MATRIX_OUT, "bank_address"),
    Opcode.STORE: ("function", "mask", "n_rows", "n_in", *_MATRIX_IN),
    Opcode.MATMUL: ("flags", "n_rows", "n_in", "n_out", *_MATRIX_IN, *_MATRIX_OUT, "bank_address"),
    Opcode.PROJECT: (
        "function",
        "flags",
        "n_rows",
        "n_in",
        "n_out",
        "multiplier",
        *_MATRIX_IN,
        "destination",
        "bank_address",
    ),
    Opcode.SDDMM: ("flags", "mask", "n_rows", "n_in", "n_out", *_MATRIX_IN, "destination", "bank_address"),
    Opcode.SOFTMAX: ("flags", "mask", "mask_out", "n_rows", "n_out", "source", "destination", "theta", "scale"),
    Opcode.SPMM: ("flags", "mask", "n_rows", "n_in", "n_out", "source", *_MATRIX_OUT, "bank_address"),
    Opcode.ELEMENTWISE: (
        "function",
        "flags",
        "n_rows",
        "n_in",
        *_MATRIX_IN,
        "source_2",
        "source_2_stride",
        *_MATRIX_OUT,
    ),
    Opcode.LAYER_NORM: ("flags", "n_rows", "n_in", *_MATRIX_IN, "source_2", "source_2_stride", *_MATRIX_OUT, "scale"),
    Opcode.CTR: ("flags", "theta"),
}
"""Which fields each opcode reads."""

LEGAL_FLAGS = {
    Opcode.MATMUL: ("gated", "bias"),
    Opcode.PROJECT: ("bias",),
    Opcode.SDDMM: ("gated",),
    Opcode.SOFTMAX: ("gated", "make_mask", "use_mass"),
    Opcode.SPMM: ("gated",),
    Opcode.ELEMENTWISE: ("gated",),
    Opcode.LAYER_NORM: ("gated",),
    Opcode.CTR: ("restart",),
}
"""Which flags each opcode has; the others have none."""
