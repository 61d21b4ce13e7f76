"""``python -m hw commands``: writes the core's command set as Markdown and as a C header."""

from pathlib import Path

from hw.cli.command_documents import documents
from hw.cli.reports import write_to

__all__ = ["add_arguments", "run"]


def add_arguments(parser):
    """Where to write."""
    parser.add_argument(
        "-o", "--output", metavar="DIR", default="build/commands", help="output folder (default %(default)s)"
    )


def run(options):
    """Write both documents and tell where they are."""
    files = documents()
    write_to(options.output, files)
    for name in files:
        print(Path(options.output) / name)
    return 0
