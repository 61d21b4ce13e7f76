"""What the flows do alike: how a report is called, where it goes, and how the stages are told."""

import json
import re
import sys
import time
from pathlib import Path

from hw.emit.package import write_files
from hw.lib.errors import UsageError
from hw.synthesis.recipes import RECIPES, SEARCH

__all__ = ["block_label", "report_name", "synthesis_settings", "telling", "write_report", "write_to"]


def block_label(block, options):
    """The block, its preset and parameters: what a table calls it."""
    return _plain([block, options.config, *(text.replace("=", "-") for text in options.param)])


def report_name(label, *settings):
    """The name of a report's file: the block and every setting that the figures depend on, so no two runs share one."""
    return _plain([label, *settings])


def _plain(parts):
    return re.sub(r"[^\w.-]", "_", "_".join(filter(None, parts)))


def synthesis_settings(recipe, period_ps, flatten, library):
    """Recipe, period, flattening and library as parts of a report's name; None for the recipe's own."""
    recipe = RECIPES[recipe]
    period = recipe.period_ps if period_ps is None else period_ps
    return (
        recipe.name,
        period if period == SEARCH else f"{period:g}ps",
        flatten or recipe.flatten,
        f"{library.name}-{library.sha256[:8]}" if library else "no_library",
    )


def write_to(folder, files):
    """Put ``{name: text}`` into the output folder; without files, find out whether that would go."""
    try:
        write_files(folder, files)
    except OSError as error:
        raise UsageError(f"cannot write to the output folder {str(folder)!r}: {error.strerror}") from None


def write_report(folder, name, report):
    """Put a report into the output folder, as JSON; returns the file's path."""
    write_to(folder, {f"{name}.json": json.dumps(report, indent=2) + "\n"})
    return Path(folder, f"{name}.json")


def telling(name):
    """A function that tells a stage and the seconds since now, on standard error."""
    begin = time.monotonic()

    def progress(stage):
        print(f"{name}: {stage} ({time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True)

    return progress
