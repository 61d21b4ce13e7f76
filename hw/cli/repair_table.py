"""The table of what timing repair gains: each point of the baseline with and without it, on the same mapped netlist."""

from tabulate import tabulate

from hw.cli.readme import with_generated
from hw.cli.synth_baseline import PAGE
from hw.emit.package import write_files
from hw.lib.errors import UsageError
from hw.synthesis.points import report_of

__all__ = ["page", "run"]

RECIPE = "area"


def run(points, library):
    """Measure the points and renew the table in ``docs/synthesis.md``."""
    if library is None:
        raise UsageError("timing repair works with a library's delays: give --liberty FILE")
    try:
        reports = [(point, report_of(point, RECIPE, library)) for point in points]
        content = table(reports)
        write_files(PAGE.parent, {PAGE.name: page(PAGE.read_text(), content)})
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    print(content)
    return 0


def page(text, content):
    """The text of the page with the table renewed."""
    return with_generated(text, str(PAGE), "repair", "make repair-table", content)


def table(reports):
    """``[(point, report)]`` as a table in Markdown, with the conditions that it holds under."""
    rows, libraries, totals = [], {}, [1.0, 1.0]
    for point, report in reports:
        (module,) = report["timing_repair"]  # a point is small enough to be flat
        before, after = (module["mapped_um2"], module["mapped_ps"]), (module["area_um2"], module["worst_path_ps"])
        row = [point.name, f"{point.period_ps:,.0f}", *(f"{value:,.0f}" for value in (*before, *after))]
        rows.append(row + [_change(new / old) for new, old in zip(after, before, strict=True)])
        totals = [total * new / old for total, new, old in zip(totals, after, before, strict=True)]
        libraries[f"{report['library']['name']} {report['library']['sha256'][:12]}"] = None
    means = (_change(total ** (1 / len(rows))) for total in totals)
    rows.append(["geometric mean", *[""] * 5, *means])
    headers = ["point", "wanted ps", "without: µm²", "ps", "with: µm²", "ps", "area", "worst path"]
    text = tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["left"] + ["right"] * 7)
    conditions = (
        f"Recipe {RECIPE}, library {', '.join(libraries)}, no wire load; worst path by the flow's own analysis."
    )
    return f"{text}\n\n{conditions}"


def _change(ratio):
    return f"{100 * (ratio - 1):+.1f} %"
