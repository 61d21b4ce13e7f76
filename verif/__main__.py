"""Command line: run a block's standard testbench on exactly the configuration that the user wants to ship."""

import argparse
import sys
from pathlib import Path

from hw.cli.arguments import add_block_arguments, block_from, check_least, reporting_errors
from hw.lib.errors import UsageError
from verif.bench import harness, simulator


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m verif", description=__doc__)
    add_block_arguments(parser)
    parser.add_argument("--seed", type=int, default=1, help="seed of the stimulus (default 1)")
    parser.add_argument(
        "--sim",
        metavar="|".join(simulator.SIMULATORS),
        help="simulator (default: SIM, else Icarus, Verilator for large blocks)",
    )
    parser.add_argument("--waves", metavar="DIR", nargs="?", const="build/waves", help="keep waveforms in this folder")
    parser.add_argument(
        "-n",
        "--count",
        type=int,
        help=f"beats of stimulus, about (default {harness.DEFAULT_COUNT}, fewer for large blocks)",
    )
    options = parser.parse_args(arguments)
    check_least(options, count=1, seed=0)
    block = block_from(options)
    try:
        sim, count, every_pair = harness.scope(block, options.sim)
        if options.count is not None:
            count, every_pair = options.count, True
        result = harness.run_bench(
            block,
            seed=options.seed,
            sim=sim,
            count=count,
            every_pair=every_pair,
            waves=bool(options.waves),
            keep=Path(options.waves, block.base_name) if options.waves else None,
        )
    except simulator.SimulatorError as error:
        raise UsageError(str(error)) from None
    pairs = "all pairs of stall and idle patterns" if every_pair else "each stall and idle pattern once"
    print(f"about {count} beats, {pairs}")
    print(
        f"simulator {sim}, seed {options.seed}, {result.cycles} cycles, {result.stalls} stalls, "
        f"{result.idles} idle cycles, {result.resets} resets in mid-flight"
    )
    for name, hits in sorted(result.bins.items()):
        print(f"  {name}: {hits}")
    for message in result.messages:
        print(message, file=sys.stderr)
    if options.waves:
        print(f"waveforms in {Path(options.waves, block.base_name)}")
    print(result.line())
    return 0 if result.passed else 1


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
