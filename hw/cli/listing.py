"""``python -m hw list``: every block with its parameters, and the presets."""

import json
from dataclasses import fields

from golden.spec.parameters import kind_of
from hw.cli.arguments import ALL, EVERYTHING
from hw.emit.contract import summary
from hw.registry import BLOCKS, IN_ALL, PRESETS, make_block, unit_class

__all__ = ["add_arguments", "run"]


def add_arguments(parser):
    """The options of the list."""
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(options):
    """Print every block with its parameters: type, default, what is legal; then the presets."""
    if options.json:
        print(json.dumps({name: _parameter_table(name) for name in BLOCKS}, indent=2))
        return 0
    for name in BLOCKS:
        print(f"{name}: {summary(make_block(name))}")
        for row in _parameter_table(name):
            print(f"  {row['name']} ({row['type']}, default {row['default']}): {row['doc']}; {row['legal']}")
        print()
    print(f"presets: {', '.join(PRESETS)}")
    print(f"{ALL}: {', '.join(IN_ALL)}; {EVERYTHING}: every block above")
    return 0


def _parameter_table(name):
    rows = []
    for item in fields(unit_class(name).Parameters):
        kind = kind_of(item)
        default = str(item.default).lower() if item.default is None or isinstance(item.default, bool) else item.default
        rows.append(
            {"name": item.name, "type": kind.type_name, "default": default, "legal": kind.legal, "doc": kind.doc}
        )
    return rows
