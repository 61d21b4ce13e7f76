"""Command line of the generator: list the blocks, emit Verilog, estimate area."""

import argparse
import json
import sys
from dataclasses import fields
from pathlib import Path

from tqdm import tqdm

from golden.spec.parameters import kind_of
from hw.cli import command_documents, fpga, readme
from hw.cli import synth_check as check
from hw.cli.arguments import add_block_arguments, blocks_from, reporting_errors
from hw.cli.synth import add_arguments as add_synthesis_arguments
from hw.cli.synth import run as run_synthesis
from hw.emit.emission import MEMORY_BODIES, summary
from hw.emit.package import build_package, write_files
from hw.emit.verilog_subset import RESERVED
from hw.lib.errors import UsageError
from hw.registry import BLOCKS, PRESETS, make_block, unit_class


def list_blocks(options):
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


def emit_verilog(options):
    """Write the Verilog package of one block, or of all blocks of a preset."""
    blocks = blocks_from(options)
    if options.name is not None:
        if len(blocks) > 1:
            raise UsageError(f"--name {options.name!r} needs the name of one block")
        if not options.name.isidentifier() or not options.name.isascii() or options.name in RESERVED:
            raise UsageError(f"--name must be a plain Verilog identifier, not {options.name!r}")
        blocks = {options.name: block for block in blocks.values()}
    folder = Path(options.output or Path("build", "verilog", options.config or options.unit))
    try:
        with tqdm(total=len(blocks) + 1, unit="block", disable=None, leave=False) as bar:

            def progress(stage):
                bar.set_description(stage)
                bar.update()

            files = build_package(blocks, options.memory, progress)
    except ValueError as error:
        raise UsageError(str(error)) from None
    try:
        write_files(folder, files)
    except OSError as error:
        raise UsageError(f"cannot write to the output folder {str(folder)!r}: {error.strerror}") from None
    for name, text in files.items():
        print(f"{folder / name}  {len(text.encode()):,} bytes")
    return 0


def synthesise(options):
    """Estimate area (and delay) of one block, or of all blocks of a preset."""
    return run_synthesis(options, blocks_from(options))


def write_command_documents(options):
    """Write the description of the command set and its C header."""
    files = command_documents.documents()
    try:
        write_files(options.output, files)
    except OSError as error:
        raise UsageError(f"cannot write to the output folder {options.output!r}: {error.strerror}") from None
    for name in files:
        print(Path(options.output) / name)
    return 0


def renew_readme(options):
    """Renew docs/commands.md and the generated parts of README.md; with synthesis reports, take over their figures."""
    try:
        if options.reports is not None:
            figures = json.dumps(readme.measured(options.reports), indent=2) + "\n"
            write_files(readme.FIGURES.parent, {readme.FIGURES.name: figures})
        write_files(".", {"README.md": readme.render(Path("README.md").read_text())})
        write_files("docs", {command_documents.MARKDOWN: command_documents.markdown()})
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    return 0


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m hw", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    lister = commands.add_parser("list", help="the blocks, their parameters and what is legal")
    lister.add_argument("--json", action="store_true", help="as JSON")
    lister.set_defaults(run=list_blocks)

    verilog = commands.add_parser("verilog", help="emit Verilog")
    add_block_arguments(verilog, several=True)
    verilog.add_argument("-o", "--output", metavar="DIR", help="output folder (default build/verilog/CONFIG)")
    verilog.add_argument("--name", metavar="TOP", help="name of the top module (default: the block's name)")
    verilog.add_argument(
        "--memory", metavar="|".join(MEMORY_BODIES), default="model", help="memories: inferable, or black boxes"
    )
    verilog.set_defaults(run=emit_verilog)

    synth = commands.add_parser("synth", help="estimate area")
    add_block_arguments(synth, several=True)
    add_synthesis_arguments(synth)
    synth.set_defaults(run=synthesise)

    checker = commands.add_parser("synth-check", help="compare area and delay with the committed baseline")
    check.add_arguments(checker)
    checker.set_defaults(run=check.run)

    implementer = commands.add_parser("fpga", help="implement on an ECP5: LUTs, DSPs, block RAMs, clock frequency")
    add_block_arguments(implementer, several=True)
    fpga.add_arguments(implementer)
    implementer.set_defaults(run=lambda options: fpga.run(options, blocks_from(options)))

    documents = commands.add_parser("commands", help="write the core's command set as Markdown and as a C header")
    documents.add_argument(
        "-o", "--output", metavar="DIR", default="build/commands", help="output folder (default %(default)s)"
    )
    documents.set_defaults(run=write_command_documents)

    renewer = commands.add_parser("readme", help="renew the generated parts of README.md")
    renewer.add_argument("--reports", metavar="DIR", help="take over the figures of these synthesis reports")
    renewer.set_defaults(run=renew_readme)

    options = parser.parse_args(arguments)
    return options.run(options)


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
