"""``python -m hw verilog``: writes the Verilog package of one block, or of several blocks of a preset."""

from pathlib import Path

from tqdm import tqdm

from hw.cli.arguments import ALL, EVERYTHING
from hw.emit.emission import MEMORY_BODIES
from hw.emit.package import build_package, write_files
from hw.emit.reserved import why_no_module
from hw.lib.errors import UsageError

__all__ = ["add_arguments", "run"]


def add_arguments(parser):
    """The options of emission."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="output folder (default build/verilog/CONFIG, of one block a folder in it)",
    )
    parser.add_argument("--name", metavar="TOP", help="name of the top module (default: the block's name)")
    parser.add_argument(
        "--memory", metavar="|".join(MEMORY_BODIES), default="model", help="memories: inferable, or black boxes"
    )


def run(options, blocks):
    """Emit ``{name: block}``, write the package, and tell which files there are now and which are there no more."""
    if options.name is not None:
        if len(blocks) > 1:
            raise UsageError(f"--name {options.name!r} needs the name of one block")
        if why := why_no_module(options.name):
            raise UsageError(f"--name must be a name for a Verilog module: {options.name!r} {why}")
        blocks = dict(zip([options.name], blocks.values(), strict=True))
    folder = Path(options.output) if options.output else _default_folder(options, blocks)
    try:
        with tqdm(total=len(blocks) + 1, unit="block", disable=None, leave=False) as bar:

            def progress(stage):
                bar.set_description(stage)
                bar.update()

            files = build_package(blocks, options.memory, progress)
    except ValueError as error:
        raise UsageError(str(error)) from None
    try:
        removed = write_files(folder, files)
    except OSError as error:
        raise UsageError(f"cannot write to the output folder {str(folder)!r}: {error.strerror}") from None
    for name, text in files.items():
        print(f"{folder / name}  {len(text.encode()):,} bytes")
    for name in sorted(removed):
        print(f"{folder / name}  removed: it belonged to the package that was there")
    return 0


def _default_folder(options, blocks):
    """A package has a folder of its own: that of a preset, and below it those of single blocks."""
    root = Path("build", "verilog", *([options.config] if options.config else []))
    return root if options.unit in (ALL, EVERYTHING) else root / next(iter(blocks))
