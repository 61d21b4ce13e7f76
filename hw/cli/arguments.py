"""What the command lines share: how a block is named and configured, and how errors are told."""

import re
import sys

from hw.lib.errors import UsageError
from hw.registry import BLOCKS, IN_ALL, PRESETS, make_block

ALL, EVERYTHING = "all", "everything"
"""Names for several blocks: those of the preset's own, and every block that there is."""


def reporting_errors(main):
    """Run a command line's ``main``; a :class:`UsageError` becomes one line and exit code 2."""
    try:
        return main()
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        sys.stderr.close()
        return 1


def check_least(options, **least):
    """Refuse integer options that are below the least that is legal; None, for not given, is."""
    for name, low in least.items():
        value = getattr(options, name)
        if value is not None and value < low:
            raise UsageError(f"--{name.replace('_', '-')} must be an integer from {low}, not {value}")


_ONE = f"one of {', '.join(BLOCKS)}"
_SEVERAL = f"{ALL} ({', '.join(IN_ALL)}), {EVERYTHING} (all blocks, the core included), or "


def add_block_arguments(parser, several=False):
    """The arguments that say which block and in which configuration."""
    parser.add_argument(
        "unit",
        metavar="UNIT",
        nargs="?" if several else None,
        default=ALL if several else None,
        help=_SEVERAL + _ONE if several else _ONE,
    )
    parser.add_argument("--config", metavar="NAME", help=f"preset: one of {', '.join(PRESETS)}")
    parser.add_argument(
        "-p",
        "--param",
        metavar="NAME=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="parameters that override the preset's or the block's defaults (see: python -m hw list)",
    )


def block_from(options):
    """The block that the arguments describe."""
    assignments = {}
    for text in _assignments(options.param):
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"parameter {text!r} must have the form name=value")
        if name in assignments:
            raise UsageError(f"parameter {name!r} is given twice: {assignments[name]!r} and {value!r}")
        assignments[name] = value
    try:
        return make_block(options.unit, options.config, assignments)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from None


def _assignments(texts):
    """One text an assignment: commas may stand between assignments, as in ``n_lanes=12,format=bf16``."""
    return [part for text in texts for part in re.split(r",(?=\w+=)", text.strip().rstrip(","))]


def blocks_from(options):
    """``{name: block}`` for one block or, for the words that mean several, for each of them in the preset."""
    if options.unit not in (ALL, EVERYTHING):
        return {options.unit: block_from(options)}
    if options.param:
        raise UsageError(f"parameter {options.param[0]!r} needs the name of the block that it belongs to")
    if options.config is None:
        options.config = "small"
    try:
        return {name: make_block(name, options.config) for name in (IN_ALL if options.unit == ALL else BLOCKS)}
    except ValueError as error:
        raise UsageError(str(error)) from None
