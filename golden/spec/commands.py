"""The command set of the core: its one definition, from which decoder, checks, assembler and documents are made.

``COMMANDS``, at the end, is the table: a row defines everything of a command except its arithmetic.
"""

import enum
from dataclasses import dataclass, fields

from golden.spec.layer_norm_unit import EPSILON
from golden.spec.operands import Form, MaskRows, MassRows, Matrix, RoundUp, Slots, TokenList, Words, encoded
from golden.spec.softmax_unit import SCALE
from golden.spec.vector_operations import VectorOp

__all__ = [
    "COMMANDS",
    "COMMAND_WIDTH",
    "FIELDS",
    "FLAGS",
    "FLAG_DOC",
    "WORDS",
    "Command",
    "Elementwise",
    "ErrorCode",
    "Field",
    "Memory",
    "Opcode",
    "Product",
    "Projection",
    "Unit",
    "fields_of",
    "flags_of",
    "form_of",
    "has_form",
    "forms_of",
]


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
    Field("function", 0, 8, 8, "which memory, which element-wise operation, or which kind of projection"),
    Field("flags", 0, 16, 8, "options, one bit each"),
    Field("mask", 0, 24, 4, "mask of the command; mask 0 has a single row, used for all rows"),
    Field("mask_out", 0, 28, 4, "mask to write"),
    Field("n_rows", 1, 0, 16, "rows; for memories without rows, words or entries"),
    Field("n_in", 1, 16, 16, "elements of a row that is read"),
    Field("n_out", 2, 0, 16, "elements of a row that is written, or number of keys"),
    Field("multiplier", 2, 16, 16, "k of the hash; bit 0 is taken as 1"),
    Field("source", 3, 0, 16, "first word of the first operand"),
    Field("source_stride", 3, 16, 16, "words from row to row of the first operand"),
    Field("source_2", 4, 0, 16, "first word of the second operand"),
    Field("source_2_stride", 4, 16, 16, "words from row to row of the second operand"),
    Field("destination", 5, 0, 16, "first word of the result"),
    Field("destination_stride", 5, 16, 16, "words from row to row of the result"),
    Field("bank_address", 6, 0, 16, "first word of weights, keys or values in their banks"),
    Field("theta", 6, 16, 16, "threshold: FP16"),
    Field(
        "scale", 7, 0, SCALE.width, f"SOFTMAX: scale * log2(e) as {SCALE.text}; LAYER_NORM: epsilon as {EPSILON.text}"
    ),
    Field("first_row", 8, 0, 16, "first row of masks and of the retained mass; with gated, first entry of the list"),
    Field("column", 8, 16, 16, "element of the rows at which a result of a product begins"),
)
WORDS = 9
COMMAND_WIDTH = 32 * WORDS


class Documented(enum.IntEnum):
    """Enumeration whose members have a ``doc``."""

    doc: str

    def __new__(cls, value, doc):
        member = int.__new__(cls, value)
        member._value_ = value
        member.doc = doc
        return member


class Opcode(Documented):
    CLEAR = 1, "clear the error; with function 1 also the counters"
    LOAD = 2, "n_rows rows, words or entries from the load stream into a memory"
    STORE = 3, "n_rows rows, words or entries of a memory to the store stream"
    MATMUL = 4, "rows times the weights in the banks"
    PROJECT = (5, "rows times weights for all tokens, in hash order, into the banks of keys or values")
    SDDMM = 6, "scores of the rows with the keys selected by the mask"
    SOFTMAX = 7, "probabilities of scores under a mask"
    SPMM = 8, "probabilities times the values in the banks"
    ELEMENTWISE = 9, "one operation on every element of one or two matrices"
    LAYER_NORM = 10, "rows normalised, times gamma (first row of the second operand), plus beta (second row)"
    CTR = 11, "list the tokens of a latent from the load stream that changed by more than theta"
    WEIGHTED_SUM = 12, "probabilities times the columns of values in the weight banks, all of them: the dense SPMM"


class Unit(Documented):
    """The unit that executes a command; CLEAR is executed by the controller."""

    ARRAY = 0, "the dot-product units"
    SOFTMAX = 1, "the softmax unit"
    VECTOR = 2, "the vector unit and the layer-norm unit"
    ENGINES = 3, "the engines with the banks of values"
    LOAD = 4, "the load stream: into a memory, or through the token selector"
    STORE = 5, "the store stream"


class Memory(Documented):
    """Function of LOAD and STORE."""

    ROWS = 0, "IMEM: rows of n_in elements, in whole words; a beat a word"
    WEIGHTS = 1, "weight banks, load only: of each of n_rows words n_lanes elements for every bank, bank 0 first"
    VALUES = 2, "value banks, load only: of each of n_rows words simd_lanes elements for every bank, bank 0 first"
    SCORES = 3, "scores: of each of n_rows words an element for every bank, bank 0 first"
    PROBABILITIES = 4, "probabilities: of each of n_rows words an element for every bank, bank 0 first"
    MASK = 5, "rows of a mask in hash order, bit v * key_slots + a for slot a of bank v; beats hold them from bit 0 on"
    TOKENS = 6, "token list: an element an entry; STORE sends their number before them and ignores n_rows"
    MASS = 7, "retained mass: an element a row"
    COUNTERS = 8, "counters, store only: one a beat; n_rows is ignored, and these beats are not counted"


class Product(Documented):
    """Function of MATMUL and WEIGHTED_SUM: a product in one piece, or one that is summed up piece by piece in FP32."""

    WHOLE = 0, "rounded once, into IMEM"
    FIRST = 1, "into the partial sums"
    NEXT = 2, "added to the partial sums"
    LAST = 3, "added to the partial sums, whose sum is rounded once more, into IMEM; the partial sums stay"


class Projection(Documented):
    """Function of PROJECT."""

    KEYS = 0, "into the weight banks, as keys"
    VALUES = 1, "into the value banks"
    COLUMNS = 2, "into the weight banks, as columns for WEIGHTED_SUM"


class Elementwise(Documented):
    """Function of ELEMENTWISE, some operations of the vector unit. FP16, rounded once."""

    ADD = VectorOp.ADD, "a + b"
    SUB = VectorOp.SUB, "a - b"
    ABS_DIFF = VectorOp.ABS_DIFF, "|a - b|"
    MUL = VectorOp.MUL, "a * b"
    MAX = VectorOp.MAX, "the larger one; a number wins over NaN"
    MIN = VectorOp.MIN, "the smaller one; a number wins over NaN"
    EXP = VectorOp.EXP, "e**a, to 1 ulp"
    RECIPROCAL = VectorOp.RECIPROCAL, "1 / a, to 1 ulp"
    RSQRT = VectorOp.RSQRT, "1 / sqrt(a), to 1 ulp"
    GELU = VectorOp.GELU, "GELU(a), to 2 ulp or 2**-15"
    SILU = VectorOp.SILU, "a / (1 + e**-a), to 2 ulp or 2**-15"

    @property
    def n_operands(self):
        return 2 if self < Elementwise.EXP else 1


FLAGS = {"gated": 1, "bias": 2, "make_mask": 4, "use_mass": 8, "restart": 16}
FLAG_DOC = {
    "gated": "only the rows of the token list, in its order",
    "bias": "the weights have one more beat, whose lane 0 is added",
    "make_mask": "write mask_out, the elements >= theta, and the retained mass of each row",
    "use_mass": "multiply each row with its retained mass",
    "restart": "every token counts as changed",
}


class ErrorCode(Documented):
    """Why a command was refused: the first reason in this order, found by :mod:`golden.core.checks`."""

    NONE = 0, "no command was refused"
    UNKNOWN_OPCODE = 1, "no such opcode"
    UNKNOWN_FUNCTION = 2, "function or flags that the opcode does not have, or make_mask with use_mass"
    SIZE = 3, "a size that is zero or beyond the configuration, a stride shorter than a row, no such mask"
    RANGE = 4, "words beyond the end of a memory"
    OVERLAP = 5, "source and destination share words, from first to last, or are the same mask"
    MASK_MISSING = 6, "rows of the mask were never written"
    TOKENS_MISSING = 7, "there is no token list, or it has more than n_rows entries, or one beyond n_rows"
    MASS_MISSING = 8, "rows of the retained mass were never written"


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
    first_row: int = 0
    column: int = 0

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

_TOKENS, _DIM, _HEAD, _ANY = (1, "max_tokens"), (1, "max_dim"), (1, "max_head_dim"), (1, None)
_NORM = (1, "max_norm_dim")
_WEIGHTS = Words("wmem", "bank_address", (RoundUp("n_in", "n_lanes", flag="bias"), RoundUp("n_out", "n_banks")))
"""Bounds, lengths and operands shared by several commands."""


_ALONE = (Memory.SCORES, Memory.PROBABILITIES, Memory.MASS)
"""Memories that a transfer does not share with other commands: it has no port of its own there."""


def _transfer(opcode, unit, memory, bounds, **operands):
    return Form(
        opcode=opcode,
        functions=(memory,),
        unit=unit,
        is_transfer=True,
        is_exclusive=memory in _ALONE,
        bounds=bounds,
        **operands,
    )


def _load(memory, *writes, **bounds):
    return _transfer(Opcode.LOAD, Unit.LOAD, memory, bounds, writes=writes)


def _store(memory, *reads, **bounds):
    return _transfer(Opcode.STORE, Unit.STORE, memory, bounds, reads=reads)


def _products(columns, *, reads, **common):
    """The rows of the table for a product with so many columns: for each :class:`Product` a row."""
    partial = Words("partial", "source_2", ("n_rows", RoundUp(columns, "n_banks")))
    result = Matrix("destination", columns, chained=True, column="column", column_step="product_step")
    return (
        Form(functions=(Product.WHOLE,), reads=reads, writes=(result,), **common),
        # What is read and replaced counts as written.
        Form(functions=(Product.FIRST, Product.NEXT), reads=reads, writes=(partial,), **common),
        Form(functions=(Product.LAST,), reads=(*reads, partial), writes=(result,), **common),
    )


COMMANDS = (
    Form(opcode=Opcode.CLEAR, functions=(0, 1)),
    _load(Memory.ROWS, Matrix("destination", "n_in", chained=True), n_rows=_TOKENS, n_in=_DIM),
    _load(Memory.WEIGHTS, Words("wmem", "bank_address", ("n_rows",)), n_rows=_ANY),
    _load(Memory.VALUES, Words("vmem", "bank_address", ("n_rows",)), n_rows=_ANY),
    _load(Memory.SCORES, Words("scores", "destination", ("n_rows",)), n_rows=_ANY),
    _load(Memory.PROBABILITIES, Words("probabilities", "destination", ("n_rows",)), n_rows=_ANY),
    _load(Memory.MASK, MaskRows("mask_out"), n_rows=_TOKENS),
    _load(Memory.TOKENS, TokenList(), n_rows=(0, "max_tokens")),
    _load(Memory.MASS, MassRows(), n_rows=_TOKENS),
    _store(Memory.ROWS, Matrix("source", "n_in", chained=True), n_rows=_TOKENS, n_in=_DIM),
    _store(Memory.SCORES, Words("scores", "source", ("n_rows",)), n_rows=_ANY),
    _store(Memory.PROBABILITIES, Words("probabilities", "source", ("n_rows",)), n_rows=_ANY),
    _store(Memory.MASK, MaskRows("mask"), n_rows=_TOKENS),
    _store(Memory.TOKENS, TokenList()),
    _store(Memory.MASS, MassRows(), n_rows=_TOKENS),
    _store(Memory.COUNTERS),
    *_products(
        "n_out",
        opcode=Opcode.MATMUL,
        unit=Unit.ARRAY,
        flags=("gated", "bias"),
        bounds={"n_rows": _TOKENS, "n_in": _DIM, "n_out": _DIM},
        reads=(Matrix("source", "n_in", chained=True), _WEIGHTS),
    ),
    *_products(
        "n_in",
        opcode=Opcode.WEIGHTED_SUM,
        unit=Unit.ARRAY,
        flags=("gated",),
        bounds={"n_rows": _TOKENS, "n_in": _HEAD, "n_out": _TOKENS},
        reads=(
            MaskRows("mask"),
            encoded("probabilities", "source"),
            Words("wmem", "bank_address", (RoundUp("n_in", "n_banks"), Slots("n_out", "column_beats"))),
        ),
    ),
    Form(
        opcode=Opcode.PROJECT,
        functions=(Projection.KEYS,),
        unit=Unit.ARRAY,
        flags=("bias",),
        bounds={"n_rows": _TOKENS, "n_in": _DIM, "n_out": _HEAD},
        reads=(Matrix("source", "n_in"), _WEIGHTS),
        writes=(Words("wmem", "destination", (RoundUp("n_out", "n_lanes"), Slots("n_rows"))),),
        values=("multiplier",),
    ),
    Form(
        opcode=Opcode.PROJECT,
        functions=(Projection.VALUES,),
        unit=Unit.ARRAY,
        flags=("bias",),
        bounds={"n_rows": _TOKENS, "n_in": _DIM, "n_out": _HEAD},
        reads=(Matrix("source", "n_in"), _WEIGHTS),
        writes=(Words("vmem", "destination", (RoundUp("n_out", "simd_lanes"), Slots("n_rows"))),),
        values=("multiplier",),
    ),
    Form(
        opcode=Opcode.PROJECT,
        functions=(Projection.COLUMNS,),
        unit=Unit.ARRAY,
        flags=("bias",),
        bounds={"n_rows": _TOKENS, "n_in": _DIM, "n_out": _HEAD},
        reads=(Matrix("source", "n_in"), _WEIGHTS),
        writes=(Words("wmem", "destination", (RoundUp("n_out", "n_banks"), Slots("n_rows", "column_beats"))),),
        values=("multiplier",),
    ),
    Form(
        opcode=Opcode.SDDMM,
        unit=Unit.ARRAY,
        flags=("gated",),
        bounds={"n_rows": _TOKENS, "n_in": _HEAD, "n_out": _TOKENS},
        reads=(
            MaskRows("mask"),
            Matrix("source", "n_in", chained=True),
            Words("wmem", "bank_address", (RoundUp("n_in", "n_lanes"), Slots("n_out"))),
        ),
        writes=(encoded("scores", "destination"),),
    ),
    Form(
        opcode=Opcode.SOFTMAX,
        unit=Unit.SOFTMAX,
        flags=("gated", "make_mask", "use_mass"),
        exclusive_flags=("make_mask", "use_mass"),
        bounds={"n_rows": _TOKENS, "n_out": _TOKENS},
        reads=(MaskRows("mask"), encoded("scores", "source"), MassRows(flag="use_mass")),
        writes=(
            encoded("probabilities", "destination"),
            MaskRows("mask_out", flag="make_mask"),
            MassRows(flag="make_mask"),
        ),
        values=("theta", "scale"),
    ),
    Form(
        opcode=Opcode.SPMM,
        unit=Unit.ENGINES,
        flags=("gated",),
        bounds={"n_rows": _TOKENS, "n_in": _HEAD, "n_out": _TOKENS},
        reads=(
            MaskRows("mask"),
            encoded("probabilities", "source"),
            Words("vmem", "bank_address", (RoundUp("n_in", "simd_lanes"), Slots("n_out"))),
        ),
        writes=(Matrix("destination", "n_in", chained=True, column="column", column_step="simd_lanes"),),
    ),
    Form(
        opcode=Opcode.ELEMENTWISE,
        functions=tuple(item for item in Elementwise if item.n_operands == 2),
        unit=Unit.VECTOR,
        flags=("gated",),
        is_in_place=True,
        bounds={"n_rows": _TOKENS, "n_in": _DIM},
        reads=(Matrix("source", "n_in", chained=True), Matrix("source_2", "n_in", stride_may_be_0=True)),
        writes=(Matrix("destination", "n_in", chained=True),),
    ),
    Form(
        opcode=Opcode.ELEMENTWISE,
        functions=tuple(item for item in Elementwise if item.n_operands == 1),
        unit=Unit.VECTOR,
        flags=("gated",),
        is_in_place=True,
        bounds={"n_rows": _TOKENS, "n_in": _DIM},
        reads=(Matrix("source", "n_in", chained=True),),
        writes=(Matrix("destination", "n_in", chained=True),),
    ),
    Form(
        opcode=Opcode.LAYER_NORM,
        unit=Unit.VECTOR,
        flags=("gated",),
        is_in_place=True,
        bounds={"n_rows": _TOKENS, "n_in": _NORM},
        reads=(Matrix("source", "n_in", chained=True), Matrix("source_2", "n_in", n_rows=2)),
        writes=(Matrix("destination", "n_in", chained=True),),
        values=("scale",),
    ),
    Form(opcode=Opcode.CTR, unit=Unit.LOAD, flags=("restart",), writes=(TokenList(),), values=("theta",)),
)
"""The command table: one :class:`golden.spec.operands.Form` a row. Gamma and beta are two rows of one matrix."""


def forms_of(opcode):
    """The rows of the table for an opcode."""
    return [form for form in COMMANDS if form.opcode == opcode]


def form_of(command) -> Form:
    """The row of the table for a command; ``LookupError`` if there is none for its opcode and function."""
    for form in forms_of(command.opcode):
        if form.has_function(command.function):
            return form
    raise LookupError(f"no command has the opcode {command.opcode} and the function {command.function}")


def has_form(command):
    """Whether there is a row of the table for a command's opcode and function."""
    return any(form.has_function(command.function) for form in forms_of(command.opcode))


def flags_of(opcode):
    """Names of the flags that an opcode has."""
    return forms_of(opcode)[0].flags


def fields_of(opcode):
    """Names of the fields that an opcode uses, in the order of ``FIELDS``; all others are ignored."""
    forms = forms_of(opcode)
    names = set().union(*(form.fields for form in forms))
    names |= {"function"} if forms[0].functions else set()
    names |= {"flags"} if forms[0].flags else set()
    return tuple(item.name for item in FIELDS if item.name in names)
