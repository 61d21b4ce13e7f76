"""The accelerator's registers and descriptors as Markdown, C header and SystemRDL, from golden.spec.accelerator."""

from tabulate import tabulate

from golden.spec.accelerator.descriptor import DESCRIPTOR_FIELDS, DESCRIPTOR_FLAG_DOC, DESCRIPTOR_FLAGS
from golden.spec.accelerator.errors import ADDRESS_OF, AcceleratorError
from golden.spec.accelerator.registers import REGISTERS, SPACE_BYTES, Access
from golden.spec.accelerator.transfers import COMPARE_TRANSFER, TRANSFERS

__all__ = ["HEADER", "MARKDOWN", "SYSTEMRDL", "c_header", "documents", "markdown", "systemrdl"]

MARKDOWN, HEADER, SYSTEMRDL = "registers.md", "sparse_dit_registers.h", "sparse_dit.rdl"

_INTRODUCTION = f"""\
# Registers and descriptors of the accelerator

Made by `python -m hw readme` from `golden/spec/accelerator`; `python -m hw registers` writes this page, `{HEADER}` and
`{SYSTEMRDL}` (SystemRDL 2.0). How they are used is in [system.md](system.md).

All registers have 32 bits and are read and written as a whole; what is not listed in a register reads as 0. ro: read
only; rw: read and write; w1c: a 1 that is written clears the bit; wo: write only, it reads as 0.
"""

_DESCRIPTORS = """\
A descriptor has 64 bytes, little-endian, at a multiple of 64.
"""

_TRANSFERS = """\
What `length` must be: the bytes of a row in memory, or of the whole. N = n_banks, L = n_lanes, S = simd_lanes.
"""


def markdown():
    """docs/registers.md."""
    registers = []
    for item in REGISTERS:
        offset = f"{item.offset:#05x}" + (f" to {item.offset + 4 * (item.count - 1):#05x}" if item.count > 1 else "")
        for index, field in enumerate(item.fields):
            bits = f"{field.low + field.width - 1}:{field.low}" if field.width > 1 else field.low
            name = "" if field.name == "value" else f"`{field.name}`"
            doc = item.doc if field.name == "value" and field.doc == item.doc else field.doc
            first = (offset, f"`{item.name}`") if index == 0 else ("", "")
            registers.append([*first, name, bits, field.access.value, _reset_text(field), doc])
    fields = [
        [f"`{item.name}`", item.word, f"{item.low + item.width - 1}:{item.low}", item.doc] for item in DESCRIPTOR_FIELDS
    ]
    flags = [[value, f"`{name}`", DESCRIPTOR_FLAG_DOC[name]] for name, value in DESCRIPTOR_FLAGS.items()]
    transfers = [
        [f"`{memory.name}`", item.length, "rows, `pitch` bytes apart" if item.has_rows else "one run"]
        for memory, item in TRANSFERS.items()
    ]
    transfers.append(["`CTR`", COMPARE_TRANSFER.length, "one run"])
    errors = [[item.value, f"`{item.name}`", item.doc, ADDRESS_OF.get(item.name, "")] for item in AcceleratorError]
    sections = [
        _INTRODUCTION,
        _section("Registers", ["offset", "register", "field", "bits", "access", "reset", "meaning"], registers),
        _section("Descriptors", ["field", "word", "bits", "meaning"], fields, _DESCRIPTORS),
        _section("Flags of a descriptor", ["bit", "flag", "meaning"], flags),
        _section("Transfers", ["memory", "length", "in memory"], transfers, _TRANSFERS),
        _section("Error codes", ["", "code", "reason", "ERROR_ADDRESS"], errors),
    ]
    return "\n".join(sections)


def _section(title, headers, rows, text=""):
    table = tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True)
    return f"## {title}\n\n" + (f"{text}\n" if text else "") + f"{table}\n"


def _reset_text(field):
    return f"{field.reset}, a parameter" if isinstance(field.reset, str) else f"{field.reset:#x}"


def c_header():
    """Offsets, masks and encodings for C programs; commands have a header of their own."""
    lines = [
        "/* Registers and descriptors. Made from golden/spec/accelerator by: python -m hw registers */",
        "#ifndef SPARSE_DIT_REGISTERS_H",
        "#define SPARSE_DIT_REGISTERS_H",
        "",
        f"#define DIT_REGISTER_BYTES {SPACE_BYTES:#x}u",
        "",
        "/* Offset of each register; shift and mask of fields that are not the whole of it. */",
    ]
    for item in REGISTERS:
        lines.append(f"#define DIT_REG_{item.name} {item.offset:#05x}u /* {_first_doc(item)} */")
        if item.count > 1:
            lines.append(f"#define DIT_REG_{item.name}_COUNT {item.count}u")
        for field in item.fields:
            name = f"DIT_REG_{item.name}_{field.name.upper()}"
            if field.name != "value":
                lines += [f"#define {name}_SHIFT {field.low}u", f"#define {name}_MASK {field.mask:#x}u"]
            elif isinstance(field.reset, int) and field.access is Access.RO and field.reset:
                lines.append(f"#define {name} {field.reset:#x}u")
    lines += ["", "/* Words of a descriptor; its first ones are a command. */"]
    lines += [
        f"#define DIT_DESCRIPTOR_{item.name.upper()}_WORD {item.word}u /* {item.doc} */" for item in DESCRIPTOR_FIELDS
    ]
    lines += [f"#define DIT_DESCRIPTOR_WORDS {sum(item.width for item in DESCRIPTOR_FIELDS) // 32}u", ""]
    lines += [
        f"#define DIT_DESCRIPTOR_{name.upper()} {value:#x}u /* {DESCRIPTOR_FLAG_DOC[name]} */"
        for name, value in DESCRIPTOR_FLAGS.items()
    ]
    lines += ["", "enum dit_stop {"]
    lines += [f"    DIT_STOP_{item.name} = {item.value}, /* {item.doc} */" for item in AcceleratorError]
    texts = ", \\\n    ".join(_quoted(item.doc) for item in AcceleratorError)
    lines += ["};", "", "/* What they say, by code. */", f"#define DIT_STOP_TEXTS {{ \\\n    {texts} \\\n}}"]
    return "\n".join([*lines, "", "#endif", ""])


def _first_doc(item):
    return item.fields[0].doc if item.fields[0].name == "value" else item.doc


_RDL_ACCESS = {
    Access.RO: "sw = r; hw = w;",
    Access.RW: "sw = rw; hw = r;",
    Access.W1C: "sw = rw; onwrite = woclr; hw = rw; hwset;",
    Access.WO: "sw = w; hw = r;",
}


def systemrdl():
    """The registers in SystemRDL 2.0; sizes of an accelerator, which are its parameters, have no reset value there."""
    lines = [
        "// Registers of the accelerator. Made from golden/spec/accelerator by: python -m hw registers",
        "addrmap sparse_dit {",
        '  name = "sparse DiT accelerator";',
        "  default regwidth = 32;",
        "  default accesswidth = 32;",
    ]
    for item in REGISTERS:
        lines += ["  reg {", f"    desc = {_quoted(item.doc)};"]
        for field in item.fields:
            access = _RDL_ACCESS[field.access]
            reset = ""
            if field.access is Access.RO and isinstance(field.reset, int) and field.name == "value" and field.reset:
                access, reset = "sw = r; hw = na;", f" = {field.reset:#x}"
            elif field.access is not Access.WO and isinstance(field.reset, int):
                reset = f" = {field.reset:#x}"
            bits = f"[{field.low + field.width - 1}:{field.low}]"
            lines.append(f"    field {{ desc = {_quoted(field.doc)}; {access} }} {field.name}{bits}{reset};")
        array = f"[{item.count}]" if item.count > 1 else ""
        lines.append(f"  }} {item.name}{array} @ {item.offset:#05x};")
    return "\n".join([*lines, "};", ""])


def _quoted(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def documents():
    """``{file name: text}``."""
    return {MARKDOWN: markdown(), HEADER: c_header(), SYSTEMRDL: systemrdl()}
