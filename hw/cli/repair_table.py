"""The table of what timing repair gains: points of the baseline with and without it, on the same mapped netlist.

The figures (``docs/synthesis_repair.json``) are written point by point; the table in ``docs/synthesis.md`` shows them.
"""

import json
from pathlib import Path

from tabulate import tabulate

from hw.cli.readme import with_generated
from hw.cli.synth_baseline import PAGE
from hw.emit.package import write_files
from hw.lib.errors import UsageError
from hw.synthesis.points import POINTS, report_of

__all__ = ["page", "run"]

FIGURES = Path("docs/synthesis_repair.json")
RECIPE = "area"


def run(points, library):
    """Measure points and renew their rows of the table."""
    if library is None:
        raise UsageError("timing repair works with a library's delays: give --liberty FILE")
    try:
        figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
        for point in points:
            report = report_of(point, RECIPE, library)
            name = f"{report['library']['name']} {report['library']['sha256'][:12]}"
            (module,) = report["timing_repair"]  # a point is small enough to be flat
            figures.setdefault(name, {})[point.name] = {key: module[key] for key in module if key != "module"}
            text = page(PAGE.read_text(), figures)
            write_files(PAGE.parent, {FIGURES.name: json.dumps(figures, indent=1) + "\n", PAGE.name: text})
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    print("\n\n".join(table(library, rows) for library, rows in figures.items()))
    return 0


def page(text, figures):
    """The text of the page with the table renewed, from ``{library: {point: figures}}``."""
    content = "\n\n".join(table(library, rows) for library, rows in figures.items())
    return with_generated(text, str(PAGE), "repair", "make repair-table", content)


def table(library, figures):
    """The figures of a library's points as a table in Markdown, with the conditions that they hold under."""
    rows, products = [], [1.0, 1.0]
    for point in (point for point in POINTS if point.name in figures):
        now = figures[point.name]
        before, after = (now["mapped_um2"], now["mapped_ps"]), (now["area_um2"], now["worst_path_ps"])
        ratios = [new / old for new, old in zip(after, before, strict=True)]
        row = [point.name, f"{point.period_ps:,.0f}", *(f"{value:,.0f}" for value in (*before, *after))]
        rows.append(row + [_change(ratio) for ratio in ratios])
        products = [product * ratio for product, ratio in zip(products, ratios, strict=True)]
    means = [_change(product ** (1 / len(rows))) for product in products] if rows else ["-", "-"]
    rows.append(["geometric mean", *[""] * 5, *means])
    headers = ["point", "wanted ps", "without: µm²", "ps", "with: µm²", "ps", "area", "worst path"]
    text = tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=["left"] + ["right"] * 7)
    return f"{text}\n\nRecipe {RECIPE}, library {library}, no wire load; worst path by the flow's own analysis."


def _change(ratio):
    return f"{100 * (ratio - 1):+.1f} %"
