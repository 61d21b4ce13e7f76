"""Command line: run a block's standard testbench on exactly the configuration that the user wants to ship."""

import argparse
import sys
from pathlib import Path

from hw.cli.arguments import add_block_arguments, block_from, check_least, reporting_errors
from hw.lib.errors import UsageError
from verif.bench import harness, simulator
from verif.core.program_run import run_file


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
    parser.add_argument(
        "--program",
        metavar="FILE",
        help="of core: run this program (golden/program/files.py) in place of the testbench",
    )
    parser.add_argument(
        "--load-interval", type=int, help="clocks from beat to beat of the load stream of a program (default 1)"
    )
    options = parser.parse_args(arguments)
    check_least(options, count=1, seed=0, load_interval=1)
    if options.program is not None:
        return _run_program(options)
    if options.load_interval is not None:
        raise UsageError("--load-interval needs --program")
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


def _run_program(options):
    """Run a program on the core that its file names, or on the one that the options name."""
    if options.unit != "core":
        raise UsageError(f"--program needs the unit core, not {options.unit!r}")
    for name in ("waves", "count"):
        if getattr(options, name) is not None:
            raise UsageError(f"--{name} cannot be used with --program")
    block = block_from(options) if options.config or options.param else None
    try:
        lines, checked, failed = run_file(
            options.program, block, load_interval=options.load_interval or 1, sim=options.sim
        )
    except simulator.SimulatorError as error:
        raise UsageError(str(error)) from None
    print("\n".join(lines))
    print(f"core: {checked} checked, {failed} failed")
    return 1 if failed or not checked else 0


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
