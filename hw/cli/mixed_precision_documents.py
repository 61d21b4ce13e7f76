"""The page of the mixed-precision core's commands, from their table."""

from tabulate import tabulate

from golden.spec.mixed_precision_core import (
    COMMAND_WIDTH,
    COMMANDS,
    FIELDS,
    FLAGS,
    Activation,
    Code,
    Error,
    Memory,
    Unit,
)

__all__ = ["MARKDOWN", "markdown"]

MARKDOWN = "mixed_precision_commands.md"

_INTRODUCTION = f"""# Commands of the mixed-precision core

Made by `python -m hw readme` from `golden/spec/mixed_precision_core.py`.

A command has {COMMAND_WIDTH} bits, words of 32 bits, word 0 in the lowest bits. Commands have the effect that they have
one after the other; fields that a command does not use are ignored. A beat of the load and store streams has its
elements in the lowest bits, element 0 first. A command is refused for the first reason below that holds; then all up to
CLEAR is dropped.
"""


def markdown():
    """The page."""
    fields = [(f"`{f.name}`", f.word, f"{f.low + f.width - 1}:{f.low}", f.doc) for f in FIELDS]
    commands = [_row(form) for form in COMMANDS]
    errors = [(error.value, error.name) for error in Error]
    flags = [(f"`{name}`", bit) for name, bit in FLAGS.items()]
    parts = [
        _INTRODUCTION,
        "## Fields\n",
        _table(fields, ("field", "word", "bits", "meaning")),
        "\n## Commands\n",
        _table(commands, ("code", "command", "function", "flags", "unit", "reads", "writes", "what it does")),
        "\nChannels of `activations` and `references` are places in their memories; `count` is at most the parameter",
        "in brackets.\n",
        _table(flags, ("flag", "bit")),
        "\n## Errors\n",
        _table(errors, ("code", "error")),
        "",
        (Error.__doc__ or "").split("\n\n")[1].replace("\n    ", "\n").strip(),
        "",
    ]
    return "\n".join(parts)


def _row(form):
    kind = {Code.ACTIVATE: Activation}.get(form.code, Memory)
    function = "" if form.function is None else f"{form.function} {kind(form.function).name}"
    unit = "" if form.unit is None else Unit(form.unit).name.lower()
    flags = ", ".join(f"`{name}`" for name in form.flags)
    doc = form.doc + (f" [{form.largest_count}]" if form.largest_count else "")
    return form.code.value, form.code.name, function, flags, unit, _ranges(form.reads), _ranges(form.writes), doc


def _ranges(ranges):
    return ", ".join(f"{item.memory} from `{item.base}`" for item in ranges)


def _table(rows, headers):
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)
