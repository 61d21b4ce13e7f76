"""``python -m hw verilog``: writes the Verilog package of one block, or of several blocks of a preset."""

from pathlib import Path

from tqdm import tqdm

from hw.cli.arguments import ALL, EVERYTHING
from hw.cli.verify import verify
from hw.emit.emission import MEMORY_BODIES, TARGETS
from hw.emit.package import emit_package, write_files
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
        "--prefix",
        metavar="TEXT",
        default="",
        help="stands before the name of every module, and of tops without --name",
    )
    parser.add_argument(
        "--verify", action="store_true", help="prove that the files that were written are what Yosys made of the design"
    )
    parser.add_argument(
        "--memory", metavar="|".join(MEMORY_BODIES), default="model", help="memories: inferable, or black boxes"
    )
    parser.add_argument(
        "--target", metavar="|".join(TARGETS), default="asic", help="fpga: multiplications that become DSP blocks"
    )


def run(options, blocks):
    """Emit ``{name: block}``, write the package, and tell which files there are now and which are there no more."""
    blocks = _named(options, blocks)
    folder = Path(options.output) if options.output else _default_folder(options, blocks)
    try:
        with tqdm(total=len(blocks) + 1, unit="block", disable=None, leave=False) as bar:

            def progress(stage):
                bar.set_description(stage)
                bar.update()

            package = emit_package(blocks, options.memory, progress, options.target, options.prefix)
    except ValueError as error:
        raise UsageError(str(error)) from None
    try:
        removed = write_files(folder, package.files)
    except OSError as error:
        raise UsageError(f"cannot write to the output folder {str(folder)!r}: {error.strerror}") from None
    for name, text in package.files.items():
        print(f"{folder / name}  {len(text.encode()):,} bytes")
    for name in sorted(removed):
        print(f"{folder / name}  removed: it belonged to the package that was there")
    return verify(folder, package.emission, blocks) if options.verify else 0


def _named(options, blocks):
    """The blocks by the names of their modules."""
    if options.prefix and (why := why_no_module(f"{options.prefix}x")):
        raise UsageError(f"--prefix must begin names of Verilog modules: {options.prefix + 'x'!r} {why}")
    if options.name is None:
        return {options.prefix + name: block for name, block in blocks.items()}
    if len(blocks) > 1:
        raise UsageError(f"--name {options.name!r} needs the name of one block")
    if why := why_no_module(options.name):
        raise UsageError(f"--name must be a name for a Verilog module: {options.name!r} {why}")
    return dict(zip([options.name], blocks.values(), strict=True))


def _default_folder(options, blocks):
    """A package has a folder of its own: that of a preset, and below it those of single blocks."""
    root = Path("build", "verilog", *([options.config] if options.config else []))
    return root if options.unit in (ALL, EVERYTHING) else root / next(iter(blocks))
