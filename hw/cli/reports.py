"""What the flows do alike: how a report is called, where it goes, and how the stages are told."""

import json
import re
import sys
import time

from hw.emit.package import write_files
from hw.lib.errors import UsageError

__all__ = ["report_name", "telling", "write_report", "write_to"]


def report_name(block, options, *more):
    """The block, its preset and every setting that is not the usual one."""
    parts = [block, options.config, *(text.replace("=", "-") for text in options.param), *more]
    return re.sub(r"[^\w.-]", "_", "_".join(filter(None, parts)))


def write_to(folder, files):
    """Put ``{name: text}`` into the output folder; without files, find out whether that would go."""
    try:
        write_files(folder, files)
    except OSError as error:
        raise UsageError(f"cannot write to the output folder {str(folder)!r}: {error.strerror}") from None


def write_report(folder, report):
    """Put a report into the output folder, as JSON."""
    write_to(folder, {f"{report['name']}.json": json.dumps(report, indent=2) + "\n"})


def telling(name):
    """A function that tells a stage and the seconds since now, on standard error."""
    begin = time.monotonic()

    def progress(stage):
        print(f"{name}: {stage} ({time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True)

    return progress
