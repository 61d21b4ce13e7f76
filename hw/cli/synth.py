"""``python -m hw synth``: emits the blocks, runs the flow on each, writes the reports and prints the table."""

import tempfile
from pathlib import Path

from hw.cli.reports import block_label, report_name, synthesis_settings, telling, write_report, write_to
from hw.emit.package import build_package, write_files
from hw.lib.errors import UsageError
from hw.synthesis import flow, liberty, report_table
from hw.synthesis.recipes import RECIPES, SEARCH


def add_arguments(parser):
    """The options of the flow itself."""
    parser.add_argument("-o", "--output", metavar="DIR", default="build/synth", help="folder for the JSON reports")
    parser.add_argument("--liberty", metavar="FILE", help="standard-cell library, .lib or .lib.gz (else: estimates)")
    parser.add_argument("--recipe", default="area", metavar="|".join(RECIPES), help="how the design is mapped")
    parser.add_argument("--period", metavar="PS", help="wanted period, or search (default: 1000; with speed search)")
    parser.add_argument(
        "--flatten",
        metavar="|".join(flow.FLATTEN),
        help="auto preserves large modules that repeat (default: the recipe's own)",
    )
    parser.add_argument("--keep", action="store_true", help="also keep netlist, log and commands, in DIR/NAME")


def run(options, blocks):
    """Synthesise ``{name: block}``; what the user can put right is told before the work begins."""
    try:
        period = _period(options.period)
        flow.check_options(options.recipe, period, options.flatten)
        library = liberty.read(options.liberty) if options.liberty is not None else None
    except ValueError as error:
        raise UsageError(str(error)) from None
    folder = Path(options.output)
    write_to(folder, {})
    settings = synthesis_settings(options.recipe, period, options.flatten, library)
    reports, paths = [], []
    for top, block in blocks.items():
        label = block_label(top, options)
        name = report_name(label, *settings)
        report = _one(top, label, block, options, period, folder / name if options.keep else None)
        paths.append(write_report(folder, name, report))
        reports.append(report)
    print(report_table.table(reports))
    print("\n".join(map(str, paths)))
    return 0


def _period(text):
    try:
        return text if text in (None, SEARCH) else float(text)
    except ValueError:
        raise ValueError(f"period must be a number of picoseconds or {SEARCH!r}, not {text!r}") from None


def _one(top, name, block, options, period, keep):
    progress = telling(top)
    progress("emitting Verilog")
    try:
        with tempfile.TemporaryDirectory(prefix="synth-") as scratch:
            files = {name: text for name, text in build_package({top: block}).items() if name.endswith(".v")}
            write_files(scratch, files)
            return flow.synthesise(
                [Path(scratch, name) for name in files],
                top,
                liberty=options.liberty,
                recipe=options.recipe,
                period_ps=period,
                flatten=options.flatten,
                name=name,
                parameters=block.parameters.to_dict(),
                keep=keep,
                progress=progress,
            )
    except ValueError as error:
        raise UsageError(f"{top} cannot be synthesised: {error}") from None
