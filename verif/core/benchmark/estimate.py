"""``python -m verif.core.benchmark.estimate FILE``: a program's clocks in the cycle model, without any simulation."""

import argparse
import sys
from pathlib import Path

from tabulate import tabulate

from golden.program.files import read_program
from golden.spec.commands import Unit
from golden.timing.program_model import estimate, load_interval
from hw.cli.arguments import reporting_errors
from hw.lib.errors import UsageError

__all__ = ["command_table", "draw", "unit_table"]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m verif.core.benchmark.estimate", description=__doc__)
    parser.add_argument("file", metavar="FILE", help="a program, see golden/program/files.py")
    parser.add_argument("--bytes", type=float, metavar="N", help="bytes to load a clock (default: a beat)")
    parser.add_argument("--commands", action="store_true", help="a line for each command, too")
    parser.add_argument("--picture", metavar="FILE", help="draw when each unit is busy; needs matplotlib")
    options = parser.parse_args(arguments)
    if options.bytes is not None and not 0 < options.bytes < float("inf"):
        raise UsageError(f"--bytes must be above 0, not {options.bytes}")
    try:
        program = read_program(options.file)
        interval = 1 if options.bytes is None else load_interval(program.sizes, options.bytes)
        found = estimate(program.sizes, program.commands, program.beats_of_loads, interval)
    except OSError as error:
        raise UsageError(f"cannot read the program {options.file!r}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    if options.commands:
        print(command_table(found), end="\n\n")
    usage, multipliers = found.usage(), program.sizes.n_banks * program.sizes.n_lanes
    share = usage.products / multipliers / max(1, found.n_clocks)
    print(unit_table(found))
    print(
        f"\n{found.n_clocks:,} clocks; {usage.products:,} products, {share:.1%} of what {multipliers} multipliers can"
    )
    if options.picture:
        _save(found, Path(options.picture))
    return 0


def _table(rows):
    return tabulate(rows, headers="keys", tablefmt="github", disable_numparse=True)


def unit_table(found):
    """Clocks of each unit: busy, those that its commands need, and idle ones by what its next command waited for."""
    rows = []
    for unit in Unit:
        causes = sorted(found.idle(unit).items(), key=lambda pair: -pair[1])
        rows.append(
            {
                "unit": unit.name.lower(),
                "commands": len(found.of(unit)),
                "busy": f"{found.busy[unit]:,}",
                "work": f"{found.work[unit]:,}",
                "idle, because of": "; ".join(f"{cause} {clocks:,}" for cause, clocks in causes),
            }
        )
    return _table(rows)


def command_table(found):
    """When each command is busy, and what kept it from starting earlier."""
    return _table(
        {
            "command": item.number,
            "name": item.name,
            "begin": f"{item.begin:,}",
            "end": f"{item.end:,}",
            "busy": f"{item.end - item.begin:,}",
            "work": f"{item.work:,}",
            "waited for": item.cause,
        }
        for item in found.intervals
    )


def draw(found, axes):
    """Bars on axes of matplotlib, a row for each unit: dark for the work of a command, light for all of its clocks."""
    names = [unit.name.lower() for unit in Unit]
    for unit in Unit:
        bars = [(item.begin, item.end - item.begin) for item in found.of(unit)]
        work = [(item.begin, min(item.work, item.end - item.begin)) for item in found.of(unit)]
        axes.broken_barh(bars, (unit - 0.4, 0.8), color="lightsteelblue", edgecolor="white", linewidth=0.3)
        axes.broken_barh(work, (unit - 0.2, 0.4), color="steelblue")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("clock")


def _save(found, path):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("--picture needs matplotlib: install requirements-demo.txt") from None
    figure = Figure(figsize=(14, 3), layout="constrained")
    draw(found, figure.add_subplot())
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write the picture {str(path)!r}: {error}") from None
    print(path)


if __name__ == "__main__":
    sys.exit(reporting_errors(main))
