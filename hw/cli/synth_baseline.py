"""The committed baseline of synth-check: the file, its history with a plot, and the table in ``docs/synthesis.md``."""

import csv
import io
import json
import subprocess
import time
from pathlib import Path
from typing import Any

from tabulate import tabulate

from hw.cli.readme import with_generated
from hw.emit.package import write_files
from hw.lib.errors import UsageError
from hw.synthesis.points import POINTS

BASELINE = Path("docs/synthesis_baseline.json")
HISTORY = Path("docs/synthesis_history.csv")
PLOT = Path("docs/synthesis_history.svg")
PAGE = Path("docs/synthesis.md")
GENERIC = "generic"
COLUMNS: tuple[str, ...] = ("date", "commit", "library", "point", "recipe", "cells", "flip_flops", "area", "delay")


def read():
    """``{library: {"point recipe": figures}}``."""
    try:
        return json.loads(BASELINE.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"baseline {BASELINE} cannot be read: {error}") from None


def write(library, figures, baseline):
    """Write a baseline, add its new figures to the history, draw that and renew the table of points."""
    rows: list[dict[str, Any]] = [
        {"date": time.strftime("%Y-%m-%d"), "commit": _commit(), "library": library} for _ in figures
    ]
    for row, (name, values) in zip(rows, figures.items(), strict=True):
        row["point"], row["recipe"] = name.rsplit(" ", 1)
        row.update(values)
    try:
        text = HISTORY.read_text() if HISTORY.exists() else ",".join(COLUMNS) + "\n"
        added = io.StringIO()
        csv.DictWriter(added, list(COLUMNS), lineterminator="\n").writerows(rows)
        text += added.getvalue()
        files = {BASELINE.name: json.dumps(baseline, indent=1) + "\n", HISTORY.name: text}
        if PAGE.exists():
            files[PAGE.name] = page(PAGE.read_text(), baseline)
        write_files(BASELINE.parent, files)
        plot(text)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write the baseline: {error}") from None


def page(text, baseline):
    """The text of ``docs/synthesis.md`` with the table of points renewed."""
    return with_generated(text, str(PAGE), "points", "make synth-check UPDATE=1", _points_table(baseline))


def _points_table(baseline):
    rows = []
    for library, figures in baseline.items():
        for point in POINTS if library != GENERIC else ():
            settings = " ".join(f"{name}={value}" for name, value in point.parameters.items())
            for recipe in point.recipes:
                if values := figures.get(f"{point.name} {recipe}"):
                    period = "search" if recipe == "speed" else f"{point.period_ps:,.0f}"
                    row = [point.name, f"`{point.unit.split(':')[-1]}`", settings, recipe, period]
                    rows.append(row + [f"{values[key]:,.0f}" for key in ("flip_flops", "area", "delay")])
    headers = ["point", "block", "parameters", "recipe", "wanted ps", "flip-flops", "µm²", "worst path ps"]
    align = ["left"] * 4 + ["right"] * 4
    libraries = ", ".join(name for name in baseline if name != GENERIC)
    return tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True, colalign=align) + (
        f"\n\nLibrary {libraries}; no wire load, registers at inputs and outputs included."
    )


def _commit():
    """What the figures were measured on; the commit that brings them comes after it."""
    run = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return run.stdout.strip() or "unknown"


def plot(text):
    """Draw the history of every point, relative to its first entry; without matplotlib say so and go on."""
    try:
        import matplotlib  # pyright: ignore[reportMissingImports]
    except ImportError:
        print(f"note: {PLOT} is not redrawn: matplotlib is not installed (requirements-demo.txt)")
        return
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "synthesis"
    from matplotlib import pyplot  # pyright: ignore[reportMissingImports]

    series = {}
    for row in csv.DictReader(io.StringIO(text)):
        if row["library"] != GENERIC and row["recipe"] == "area":
            series.setdefault((row["point"], row["library"]), []).append((row["date"], row["commit"], row))
    if not series:
        return
    figure, axes = pyplot.subplots(2, 1, figsize=(9, 7), sharex=True)
    order = list(dict.fromkeys((row["date"], row["commit"]) for rows in series.values() for *_, row in rows))
    order.sort(key=lambda item: item[0])
    for (point, _), rows in series.items():
        places = [order.index((date, commit)) for date, commit, _ in rows]
        for axis, key in zip(axes, ("area", "delay"), strict=True):
            axis.plot(places, [100 * float(row[key]) / float(rows[0][2][key]) for *_, row in rows], "o-", label=point)
    for axis, key in zip(axes, ("area", "worst path"), strict=True):
        axis.set_ylabel(f"{key}, % of the first entry")
        axis.grid(alpha=0.3)
    axes[1].set_xticks(range(len(order)), [f"{date}\n{commit}" for date, commit in order], fontsize=7)
    axes[0].legend(fontsize=7, ncols=4)
    figure.tight_layout()
    figure.savefig(PLOT, metadata={"Date": None})
    pyplot.close(figure)
