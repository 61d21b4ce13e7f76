"""The command set for people and for C programs: docs/commands.md and a header, made from golden.spec.commands."""

from tabulate import tabulate

from golden.spec import layer_norm_unit
from golden.spec.commands import (
    COMMAND_WIDTH,
    FIELDS,
    FLAG_DOC,
    FLAGS,
    WORDS,
    Elementwise,
    ErrorCode,
    Memory,
    Opcode,
    Product,
    Projection,
    Unit,
    fields_of,
    flags_of,
)
from golden.spec.counters import COUNTER_WIDTH, COUNTERS, DEPENDS_ON_TIME
from hw.cli.operand_documents import bounds_rows, chain_rows, operand_rows

__all__ = ["HEADER", "MARKDOWN", "c_header", "documents", "markdown"]

MARKDOWN, HEADER = "commands.md", "sparse_dit_commands.h"
_FUNCTIONS = {
    Memory: "Functions of LOAD and STORE",
    Product: "Functions of MATMUL and WEIGHTED_SUM",
    Projection: "Functions of PROJECT",
    Elementwise: "Functions of ELEMENTWISE",
}

_INTRODUCTION = f"""\
# Commands of the core

Made by `python -m hw readme` from `golden/spec/commands.py`; `python -m hw commands` writes this page and `{HEADER}`.

A command has {COMMAND_WIDTH} bits, {WORDS} words of 32 bits, word 0 in the lowest bits. Commands have the effect that
they have one after the other, in the order in which they are sent; the core runs them at the same time where that makes
no difference. Fields that an opcode does not use are ignored.

N = n_banks, L = n_lanes, S = simd_lanes, W elements of a word of IMEM and of a beat of the load and store streams: the
least multiple of L and S, and of the L ceil(N / L) lanes of a slot, that is at least N and 2 L. All numbers are FP16. A
matrix in IMEM has row r from word `first + r * stride` on, in whole words. Rows are 0 to n_rows - 1; with `gated` those
of the token list, entries `first_row` to `first_row + n_rows - 1`, as far as there are any, in its order. Rows of masks
and of the retained mass are `first_row` to `first_row + n_rows - 1`, or the listed ones: so work can be cut into blocks
of rows.

- **Weights** [n_in, n_out], q = ceil(n_out / N): column c belongs to bank c mod N, and its elements i L to i L + L - 1
  are the word `bank_address + i q + c div N` of it. The bias is element 0 of one more word. What a word holds beyond
  n_in must be finite.
- **Keys** and **values** of n tokens, s = the least power of two that gives N s >= n and s >= 1: token j belongs to
  bank v and slot a, the two parts of `j k mod N s` (v on top, k the multiplier). Its elements i L to i L + L - 1
  (values: S in place of L) are the word `first + i s + a` of bank v.
- **Columns** of n values, g = ceil(n_out / N), p = ceil(N / L): element c of the values at slot a belongs to bank c mod
  N, word `first + (a p + i) g + c div N`, i = 0 to p - 1; lane l of it is the value of the token at slot a of bank
  i L + l. Lanes without a bank are 0, or at least finite.
- **Masks** have bit `v key_slots + a` for slot a of bank v. Mask 0 has one row, which serves all rows.
- **Scores** and **probabilities** are those of the elements selected by a mask: bank v holds those of its keys from one
  word on, row after row in the order in which rows were processed, in a row by rising slot.
"""

_OPERANDS = """\
What a command reads and writes. A memory with banks has the words in each bank. Of IMEM the extent of an operand is
from its first word to its last one, what lies between its rows included; gated commands have the extents of all
rows up to the largest entry of the token list, scores and probabilities those of n_rows rows and a mask of ones.
slots(n) is the s of keys and values above.

A LOAD takes beats of W elements, STORE sends such. What a LOAD brings are pieces, as many whole ones a beat as there is
space for, the first in the lowest bits: words of n_lanes or simd_lanes elements (WEIGHTS, VALUES: of bank 0 to N - 1,
then of the next address), N elements (SCORES, PROBABILITIES; of a latent for CTR), rows of a mask (more than one beat
each if they do not fit into one), single elements (TOKENS, MASS). Rows of IMEM begin with a beat. STORE sends a beat a
word, row, piece of a row or entry.
"""

_BOUNDS = f"""\
T = max_tokens, D = max_head_dim, M = max_dim, norm = the least of M and the {layer_norm_unit.MAX_ELEMENTS} elements
that LAYER_NORM takes, in whole words; both bounds are legal. `first_row` + `n_rows` is at most T where rows of
masks or of the retained mass are used, and with `gated`.
"""

_CONDITIONS = """\
The core looks for the reasons in this order. A reason is looked for only if none before it was found.

- **UNKNOWN_FUNCTION**: a function that the opcode does not have, or a flag that it does not have, also of the bits
  that no flag has; `make_mask` and `use_mass` together. The function of an opcode without functions is ignored.
- **SIZE**: what the table of sizes says.
- **RANGE**: an operand ends beyond its memory.
- **OVERLAP**: what is read and what is written share a word of one memory, or `mask` = `mask_out` with `make_mask`. A
  result of ELEMENTWISE or LAYER_NORM may lie exactly where an operand lies (same first word, same stride).
- **MASK_MISSING**: of a mask that is read, rows up to `first_row` + `n_rows` - 1 are not all there (of mask 0: its
  row); of a mask that is written, rows up to `first_row` - 1; with `gated`, of either, rows up to the largest entry of
  the list.
- **TOKENS_MISSING**: with `gated`, and for STORE TOKENS: there is no list.
- **MASS_MISSING**: rows of the retained mass, in the same way.

A refused command changes nothing. The core then takes and drops commands until a CLEAR, and tells the error code and
the command's number, counted from reset.
"""

_CHAINS = """\
A command begins when no command before it that is not done uses the same unit, or touches a word (of a memory, of rows
of a mask or of the retained mass, of the token list) that one of the two writes; LOAD and STORE of scores,
probabilities and the retained mass begin when no other command uses that memory. CLEAR and STORE COUNTERS wait until
all commands before them are done, and those behind wait for them. At most 8 commands are under way.

A command that takes, row by row, what an earlier one writes begins with it: both have equal `n_rows` and `gated` (then
an ascending token list and equal `first_row`), and there is no other reason to wait. Rows are handed over in these
memories; scores and probabilities with equal `first_row`:
"""


def markdown():
    """docs/commands.md."""
    sections = [
        _INTRODUCTION,
        _section(
            "Fields",
            ["field", "word", "bits", "meaning"],
            [[f"`{item.name}`", item.word, f"{item.low + item.width - 1}:{item.low}", item.doc] for item in FIELDS],
        ),
    ]
    rows = []
    for opcode in Opcode:
        flags = ", ".join(f"`{name}`" for name in flags_of(opcode))
        used = ", ".join(f"`{name}`" for name in fields_of(opcode) if name != "flags")
        rows.append([opcode.value, f"`{opcode.name}`", opcode.doc, used, flags])
    sections.append(_section("Opcodes", ["", "opcode", "what it does", "fields", "flags"], rows))
    for functions, title in _FUNCTIONS.items():
        rows = [[item.value, f"`{item.name}`", item.doc] for item in functions]
        sections.append(_section(title, ["", "function", "meaning"], rows))
    rows = [[value, f"`{name}`", FLAG_DOC[name]] for name, value in FLAGS.items()]
    sections.append(_section("Flags", ["bit", "flag", "meaning"], rows))
    sections.append(_section("Operands", ["command", "unit", "reads", "writes"], operand_rows(), _OPERANDS))
    headers = ["command", "`n_rows`", "`n_in`", "`n_out`", "strides and masks"]
    sections.append(_section("Sizes", headers, bounds_rows(), _BOUNDS))
    headers = ["memory", "handed over by", "taken by", "equal"]
    sections.append(_section("Order", headers, chain_rows(), _CHAINS))
    rows = [[code.value, f"`{code.name}`", code.doc] for code in ErrorCode]
    sections.append(_section("Errors", ["", "error", "the first of these reasons"], rows))
    sections.append(_CONDITIONS)
    rows = [
        [number, f"`{name}`", text, "yes" if name in DEPENDS_ON_TIME else "no"]
        for number, (name, text) in enumerate(COUNTERS.items())
    ]
    title = f"Counters ({COUNTER_WIDTH} bits, they wrap around)"
    sections.append(_section(title, ["beat", "counter", "counts", "depends on stalls"], rows))
    return "\n".join(sections)


def _section(title, headers, rows, text=""):
    rows = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    table = tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True)
    return "\n".join([f"## {title}\n", *([text] if text else []), f"{table}\n"])


def c_header():
    """A header for C99 and C++: enumerations, places of the fields, and functions that encode and decode."""
    lines = [
        "/* Commands of the core. Made from golden/spec/commands.py by: python -m hw commands */",
        "#ifndef SPARSE_DIT_COMMANDS_H",
        "#define SPARSE_DIT_COMMANDS_H",
        "",
        "#include <stdint.h>",
        "",
        f"#define DIT_COMMAND_WORDS {WORDS}",
        "",
    ]
    opcodes = [(item.name, item.value, f"{item.doc}; fields: {', '.join(fields_of(item))}") for item in Opcode]
    lines += _enumeration("opcode", opcodes)
    kinds = {
        "memory": Memory,
        "product": Product,
        "projection": Projection,
        "elementwise": Elementwise,
        "unit": Unit,
        "error": ErrorCode,
    }
    for name, kind in kinds.items():
        lines += _enumeration(name, [(item.name, item.value, item.doc) for item in kind])
    lines += _enumeration("flag", [(name.upper(), value, FLAG_DOC[name]) for name, value in FLAGS.items()])
    counters = [(name.upper(), number, text) for number, (name, text) in enumerate(COUNTERS.items())]
    lines += _enumeration("counter", counters)
    lines += [f"#define DIT_COUNTERS {len(COUNTERS)}", ""]
    lines += ["/* Where fields lie: the 32-bit word, the lowest bit in it, the number of bits. */"]
    for item in FIELDS:
        prefix = f"#define DIT_{item.name.upper()}"
        lines += [f"{prefix}_WORD {item.word}", f"{prefix}_SHIFT {item.low}", f"{prefix}_WIDTH {item.width}"]
    lines += ["", "struct dit_command {"]
    lines += [f"    {_c_type(item)} {item.name}; /* {item.doc} */" for item in FIELDS]
    lines += ["};", "", "static inline void dit_encode(const struct dit_command *command, uint32_t *word)", "{"]
    for number in range(WORDS):
        parts = [
            f"((uint32_t)command->{item.name} & {(1 << item.width) - 1:#x}u) << {item.low}"
            for item in FIELDS
            if item.word == number
        ]
        joined = "\n            | ".join(parts)
        lines += [f"    word[{number}] = {joined};"]
    lines += ["}", "", "static inline void dit_decode(const uint32_t *word, struct dit_command *command)", "{"]
    for item in FIELDS:
        value = f"word[{item.word}] >> {item.low} & {(1 << item.width) - 1:#x}u"
        lines += [f"    command->{item.name} = ({_c_type(item)})({value});"]
    lines += ["}", "", "#endif", ""]
    return "\n".join(lines)


def _c_type(item):
    return f"uint{8 if item.width <= 8 else 16 if item.width <= 16 else 32}_t"


def _enumeration(name, items):
    lines = [f"enum dit_{name} {{"]
    lines += [f"    DIT_{name.upper()}_{item} = {value}, /* {text} */" for item, value, text in items]
    return [*lines, "};", ""]


def documents():
    """``{file name: text}``."""
    return {MARKDOWN: markdown(), HEADER: c_header()}
