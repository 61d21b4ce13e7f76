"""``python -m hw synth-check``: area and delay of chosen blocks against the committed baseline.

The baseline (``docs/synthesis_baseline.json``) holds a library's figures and, for machines without that library, those
of Yosys' own gates. A loss of more than 3 % of area or 5 % of delay is an error until a new baseline is written, which
also adds the figures to the history (``docs/synthesis_history.csv``), draws it, and renews the table of points in
``docs/synthesis.md``.
"""

import csv
import importlib
import io
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tabulate import tabulate

from hw.cli.readme import with_generated
from hw.emit.package import build_package, write_files
from hw.lib.errors import UsageError
from hw.registry import make_block
from hw.synthesis import flow as synth
from hw.synthesis import liberty

BASELINE = Path("docs/synthesis_baseline.json")
HISTORY = Path("docs/synthesis_history.csv")
PLOT = Path("docs/synthesis_history.svg")
PAGE = Path("docs/synthesis.md")
GENERIC = "generic"
AREA_LOSS, DELAY_LOSS = 0.03, 0.05
COLUMNS = ("date", "commit", "library", "point", "recipe", "cells", "flip_flops", "area", "delay")


@dataclass(frozen=True)
class Point:
    """A block in one configuration: a unit's name, or the class of a part of the arithmetic library."""

    name: str
    unit: str
    parameters: dict = field(default_factory=dict)
    period_ps: float = 1000
    quick: bool = False
    recipes: tuple = ("area",)

    def block(self):
        if ":" not in self.unit:
            return make_block(self.unit, None, self.parameters)
        module, name = self.unit.split(":")
        return getattr(importlib.import_module(f"hw.arith.{module}"), name)(**self.parameters)

    @property
    def top(self):
        return self.name.replace("-", "_")


_MAPPER = {"n_columns": 4096, "n_banks": 32, "direction": "forward"}
_SELECTOR = {"width": 64, "height": 64, "channels": 1, "patch": 2, "n_values": 64}
_ALL = ("area", "speed", "A")
POINTS = (
    Point("hash-constant", "hash_bank_mapper", {**_MAPPER, "multiplier": 577}, 500, quick=True, recipes=_ALL),
    Point("hash-runtime", "hash_bank_mapper", {**_MAPPER, "multiplier": "runtime"}, 850, quick=True),
    Point("exponential", "exponential:Exponential", quick=True, recipes=_ALL),
    Point("reciprocal", "reciprocal:Reciprocal", period_ps=950, quick=True),
    Point("reciprocal-root", "reciprocal_root:ReciprocalRoot", period_ps=950, quick=True),
    Point("gelu", "gelu:Gelu", period_ps=1050),
    Point("fma", "fma:FusedMultiplyAdd", quick=True, recipes=_ALL),
    Point("sorter-16", "bitonic_sorter", {"n": 16, "network": "odd_even"}, 900, recipes=_ALL),
    Point("sorter-16-fast", "bitonic_sorter", {"n": 16, "network": "odd_even", "layers_per_stage": 1}, 460),
    Point("sorter-64", "bitonic_sorter", {"n": 64, "network": "odd_even"}, 910),
    Point("selector-64", "token_selector", {**_SELECTOR, "reference": "last", "bounds": 2}, 900),
    Point("selector-64-previous", "token_selector", _SELECTOR, 900),
    Point("dot-int8-16", "dot_product_unit", {"n_lanes": 16, "format": "int8"}, 950),
    Point("dot-bf16-16", "dot_product_unit", {"n_lanes": 16, "format": "bf16"}),
    Point("dot-fp16-4", "dot_product_unit", {"n_lanes": 4}),
    Point("dot-fp16-16", "dot_product_unit", {"n_lanes": 16}, recipes=("area", "A")),
    Point("dot-fp16-64", "dot_product_unit", {"n_lanes": 64}, 1050),
)


def add_arguments(parser):
    """The options of the check."""
    parser.add_argument("--liberty", metavar="FILE", help="standard-cell library (else: Yosys' own gates)")
    parser.add_argument("--quick", action="store_true", help="only the blocks that take seconds, and no search")
    parser.add_argument("--only", metavar="POINT", nargs="+", help=f"of {', '.join(point.name for point in POINTS)}")
    parser.add_argument("--update", action="store_true", help="write a new baseline and add it to the history")


def run(options):
    """Measure, compare, and with ``--update`` write; 1 if something was lost or has no baseline."""
    points = _chosen(options)
    baseline = _read_baseline()
    library = _library_name(options.liberty)
    if not options.update and library not in baseline:
        known = ", ".join(baseline) or "none"
        print(f"error: the baseline has no figures of library {library} (it has: {known})", file=sys.stderr)
        return 1
    figures = {}
    for point in points:
        for recipe in _recipes(point, options):
            figures[f"{point.name} {recipe}"] = _measure(point, recipe, options.liberty)
    if options.update:
        baseline.setdefault(library, {}).update(figures)
        _write(library, figures, baseline)
        print(f"{len(figures)} figures of library {library} are the new baseline ({BASELINE}, {HISTORY})")
        return 0
    old = baseline[library]
    print(_table(figures, old, library))
    losses = list(_losses(figures, old, library))
    for loss in losses:
        print(f"error: {loss}", file=sys.stderr)
    return 1 if losses else 0


def _chosen(options):
    if options.only:
        names = {point.name: point for point in POINTS}
        unknown = [name for name in options.only if name not in names]
        if unknown:
            raise UsageError(f"unknown point {unknown[0]!r}: legal are {', '.join(names)}")
        return [names[name] for name in options.only]
    return [point for point in POINTS if point.quick or not options.quick]


def _recipes(point, options):
    """Without a library recipes make no difference; a search for the period takes too long for a quick look."""
    if not options.liberty:
        return ("area",)
    return [recipe for recipe in point.recipes if recipe != "speed" or not options.quick]


def _library_name(path):
    if path is None:
        return GENERIC
    try:
        library = liberty.read(path)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return f"{library.name} {library.sha256[:12]}"


def _read_baseline():
    try:
        return json.loads(BASELINE.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"baseline {BASELINE} cannot be read: {error}") from None


def _measure(point, recipe, library):
    """``{cells, flip_flops, area, delay}`` of a point; area and delay in µm² and ps, or in transistors and gates."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="check-") as scratch:
        texts = build_package({point.top: point.block()})
        files = {name: text for name, text in texts.items() if name.endswith(".v")}
        write_files(scratch, files)
        period = None if recipe == "speed" else point.period_ps
        paths = [Path(scratch, name) for name in files]
        try:
            report = synth.synthesise(paths, point.top, liberty=library, recipe=recipe, period_ps=period)
        except ValueError as error:
            raise UsageError(f"{point.name} cannot be synthesised: {error}") from None
    print(f"{point.name} {recipe} ({time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True)
    counts, delay = report["figures"], report["delay"]
    area, late = counts.get("area_um2"), delay.get("worst_path_ps")
    if library is None:
        area, late = counts["transistors_estimate"], counts["logic_depth_estimate"]
    return {"cells": counts["cells"], "flip_flops": counts["flip_flops"], "area": area, "delay": late}


def _units(library):
    return ("transistors", "gates deep") if library == GENERIC else ("µm²", "ps")


def _change(new, old):
    return f"{100 * (new / old - 1):+.1f} %" if old else "-"


def _table(figures, old, library):
    rows = []
    for name, new in figures.items():
        before = old.get(name, {"area": None, "delay": None})
        row = [name, new["cells"], new["flip_flops"]]
        for key in ("area", "delay"):
            row += [f"{new[key]:,.0f}", "-" if before[key] is None else _change(new[key], before[key])]
        rows.append(row)
    area, delay = _units(library)
    return tabulate(rows, headers=["point", "cells", "flip-flops", area, "change", delay, "change"],
                    disable_numparse=True, colalign=["left"] + ["right"] * 6)  # fmt: skip


def _losses(figures, old, library):
    """A sentence for every figure that is worse than the baseline allows, or has none."""
    for name, new in figures.items():
        if name not in old:
            yield f"{name} has no baseline; write one with --update"
            continue
        for key, unit, limit in zip(("area", "delay"), _units(library), (AREA_LOSS, DELAY_LOSS), strict=True):
            if new[key] > old[name][key] * (1 + limit):
                change = _change(new[key], old[name][key])
                yield (
                    f"{name}: {new[key]:,.0f} {unit} is {change} against the baseline's {old[name][key]:,.0f}, "
                    f"more than {100 * limit:.0f} %; if it must be, write a new baseline with --update"
                )


def _write(library, figures, baseline):
    rows = [{"date": time.strftime("%Y-%m-%d"), "commit": _commit(), "library": library} for _ in figures]
    for row, (name, values) in zip(rows, figures.items(), strict=True):
        row["point"], row["recipe"] = name.rsplit(" ", 1)
        row.update(values)
    try:
        text = HISTORY.read_text() if HISTORY.exists() else ",".join(COLUMNS) + "\n"
        added = io.StringIO()
        csv.DictWriter(added, COLUMNS, lineterminator="\n").writerows(rows)
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
        import matplotlib
    except ImportError:
        print(f"note: {PLOT} is not drawn anew: matplotlib is not installed (requirements-demo.txt)")
        return
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "synthesis"
    from matplotlib import pyplot

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
