"""Command line of the models: planning of programs for the hardware."""

import argparse
import sys

from golden.program import balance, vectors


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m golden", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    balancer = commands.add_parser("balance", help="find the hash multiplier that suits given masks")
    balance.add_arguments(balancer)
    balancer.set_defaults(run=balance.run)
    writer = commands.add_parser("vectors", help="write a program as hex files with a Verilog testbench")
    vectors.add_arguments(writer)
    writer.set_defaults(run=vectors.run)
    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        sys.stderr.close()
        return 1


if __name__ == "__main__":
    sys.exit(main())
