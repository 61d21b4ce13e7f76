"""``python -m hw registers``: writes the accelerator's registers as Markdown, as a C header and as SystemRDL."""

from pathlib import Path

from hw.cli.register_documents import documents
from hw.cli.reports import write_to

__all__ = ["add_arguments", "run"]


def add_arguments(parser):
    """Where to write."""
    parser.add_argument(
        "-o", "--output", metavar="DIR", default="build/registers", help="output folder (default %(default)s)"
    )


def run(options):
    """Write the documents and tell where they are."""
    files = documents()
    write_to(options.output, files)
    for name in files:
        print(Path(options.output) / name)
    return 0
