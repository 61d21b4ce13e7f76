"""Command line of the generator: list the blocks, emit and verify Verilog, synthesise, and what belongs to them."""

import argparse
import sys

from hw.cli import commands, fpga, listing, readme, registers, synth, synth_check, verilog
from hw.cli.arguments import add_block_arguments, blocks_from, reporting_errors

COMMANDS = {
    "list": (listing, "the blocks, their parameters and what is legal"),
    "verilog": (verilog, "emit Verilog"),
    "synth": (synth, "estimate area"),
    "synth-check": (synth_check, "compare area and delay with the committed baseline"),
    "fpga": (fpga, "implement on an ECP5: LUTs, DSPs, block RAMs, clock frequency"),
    "commands": (commands, "write the core's command set as Markdown and as a C header"),
    "registers": (registers, "write the accelerator's registers as Markdown, C header and SystemRDL"),
    "readme": (readme, "renew the generated parts of README.md"),
}
"""Each command is a module with ``add_arguments(parser)`` and ``run(options)``, which returns the exit code."""

OF_BLOCKS = ("verilog", "synth", "fpga")
"""Commands that work on blocks: ``run(options, blocks)``."""


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m hw", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, text) in COMMANDS.items():
        command = subparsers.add_parser(name, help=text)
        if name in OF_BLOCKS:
            add_block_arguments(command, several=True)
        module.add_arguments(command)
    options = parser.parse_args(arguments)
    module, _ = COMMANDS[options.command]
    return module.run(options, blocks_from(options)) if options.command in OF_BLOCKS else module.run(options)


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
