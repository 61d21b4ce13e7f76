"""``python -m hw fpga``: implements the blocks on an FPGA, writes the reports and prints the table."""

from pathlib import Path

from hw.cli.reports import block_label, report_name, telling, write_report, write_to
from hw.lib.errors import UsageError
from hw.synthesis import fpga


def add_arguments(parser):
    """The options of the flow itself."""
    parser.add_argument("-o", "--output", metavar="DIR", default="build/fpga", help="folder for the JSON reports")
    parser.add_argument(
        "--nextpnr", metavar="FILE", help=f"program (default: {' or '.join(fpga.PROGRAMS)} on the PATH)"
    )
    parser.add_argument("--frequency", metavar="MHZ", default="200", help="target of place and route (default 200)")
    parser.add_argument("--seed", metavar="N", default="1", help="of place and route (default 1)")


def run(options, blocks):
    """Implement ``{name: block}`` and print a table."""
    frequency, seed = _number("frequency", options.frequency), _number("seed", options.seed)
    try:
        program = fpga.find_nextpnr(options.nextpnr)
    except ValueError as error:
        raise UsageError(str(error)) from None
    folder = Path(options.output)
    write_to(folder, {})
    reports = []
    for name, block in blocks.items():
        try:
            report = fpga.implement(name, block, program, frequency, seed, telling(name))
        except ValueError as error:
            raise UsageError(f"{name} cannot be implemented: {error}") from None
        label = block_label(name, options)
        reports.append({"name": label, **report})
        write_report(folder, report_name(label, f"{frequency}MHz", f"seed-{seed}"), reports[-1])
    print(fpga.table(reports))
    return 0


def _number(name, text):
    if not text.isdecimal() or not 0 < int(text) < 10_000:
        raise UsageError(f"{name} must be a whole number from 1 to 9999, not {text!r}")
    return int(text)
