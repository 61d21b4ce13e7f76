"""``python -m hw synth-check``: area and delay of chosen blocks against the committed baseline.

The baseline (``docs/synthesis_baseline.json``) holds a library's figures and, for machines without that library, those
of Yosys' own gates. A loss of more than 3 % of area or 5 % of delay is an error until a new baseline is written, which
also adds the figures to the history (``docs/synthesis_history.csv``), draws it, and renews the table of points in
``docs/synthesis.md``.
"""

import sys

from tabulate import tabulate

from hw.cli import repair_table, synth_baseline
from hw.cli.synth_baseline import BASELINE, GENERIC, HISTORY
from hw.lib.errors import UsageError
from hw.synthesis import liberty
from hw.synthesis.points import POINTS, measure

AREA_LOSS, DELAY_LOSS = 0.03, 0.05


def add_arguments(parser):
    """The options of the check."""
    parser.add_argument("--liberty", metavar="FILE", help="standard-cell library (else: Yosys' own gates)")
    parser.add_argument("--quick", action="store_true", help="only the blocks that take seconds, and no search")
    parser.add_argument("--only", metavar="POINT", nargs="+", help=f"of {', '.join(point.name for point in POINTS)}")
    parser.add_argument("--repair-table", action="store_true", help="only renew the table of what timing repair gains")
    parser.add_argument("--update", action="store_true", help="write a new baseline and add it to the history")


def run(options):
    """Measure, compare, and with ``--update`` write; 1 if something was lost or has no baseline."""
    points = _chosen(options)
    if options.repair_table:
        return repair_table.run(points, options.liberty)
    baseline = synth_baseline.read()
    library = _library_name(options.liberty)
    if not options.update and library not in baseline:
        known = ", ".join(baseline) or "none"
        print(f"error: the baseline has no figures of library {library} (it has: {known})", file=sys.stderr)
        return 1
    figures = {}
    try:
        for point in points:
            for recipe in _recipes(point, options):
                figures[f"{point.name} {recipe}"] = measure(point, recipe, options.liberty)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if options.update:
        baseline.setdefault(library, {}).update(figures)
        synth_baseline.write(library, figures, baseline)
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
