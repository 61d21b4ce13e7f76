"""docs/verification.md: what coverage, mutation and gate-level runs measured, made from docs/verification.json."""

import json
from pathlib import Path

from tabulate import tabulate

from hw.emit.package import write_files

__all__ = ["PAGE", "render", "renew"]

PAGE = Path("docs/verification.md")
DATA = PAGE.with_suffix(".json")


def renew(kind, rows):
    """Take over the measurements ``{block: values}`` of one kind and write the page again."""
    data = json.loads(DATA.read_text()) if DATA.exists() else {}
    data.setdefault(kind, {}).update(rows)
    text = json.dumps(data, indent=1, sort_keys=True) + "\n"
    write_files(PAGE.parent, {DATA.name: text, PAGE.name: render(json.loads(text))})


def render(data):
    """The page."""
    parts = [
        "# What the testbenches reach\n\nMade by the commands named below from `docs/verification.json`; "
        "what is proved, `make formal` shows.\n"
    ]
    for kind, section in (("coverage", _coverage), ("mutation", _mutation), ("gates", _gates)):
        if data.get(kind):
            parts.append(section(data[kind]))
    return "\n".join(parts)


def _percent(part, whole):
    return f"{part / whole:.1%}" if whole else "none"


def _coverage(rows):
    table = [
        [
            f"`{unit}`",
            *(f"{_percent(*row[key])} of {row[key][1]:,}" for key in ("lines", "toggles")),
            row["constant"],
            sum(row["excluded"].values()),
            len(row["bins"]),
        ]
        for unit, row in rows.items()
    ]
    headers = ["block", "lines", "toggles", "constant", "excluded", "corner cases, all hit"]
    reasons = [
        f"- `{unit}`: {text} ({number})" for unit, row in rows.items() for text, number in row["excluded"].items()
    ]
    bins = [
        f"- `{unit}`: " + ", ".join(f"{name} {hits}" for name, hits in sorted(row["bins"].items()))
        for unit, row in rows.items()
        if row["bins"]
    ]
    return "\n".join(
        [
            "## Coverage\n",
            "`make coverage`: Verilog of preset tiny under each block's standard testbench, counted by Verilator. "
            "A toggle",
            "is a bit that rises or falls; bits that Yosys finds constant are left out. The core runs random programs",
            "(`make coverage UNIT=core`, eight minutes).\n",
            tabulate(table, headers=headers, tablefmt="github"),
            "",
            *(["Excluded toggles, with the reason:\n", *reasons, ""] if reasons else []),
            "Corner cases that the testbenches count themselves, with their hits:\n",
            *bins,
            "",
        ]
    )


def _mutation(rows):
    table = [
        [
            f"`{unit}`",
            row["mutants"],
            row["killed"],
            row["equivalent"],
            row["survivors"],
            _percent(row["killed"], row["mutants"] - row["equivalent"]),
        ]
        for unit, row in rows.items()
    ]
    headers = ["block", "mutants", "killed", "shown equivalent", "survivors", "killed of the others"]
    left = [f"- `{unit}`: {text}" for unit, row in rows.items() for text in row["left"]]
    return "\n".join(
        [
            "## Mutants\n",
            "`make mutate`: one change of a gate of the emitted Verilog at a time, made by Yosys, against the block's",
            "standard testbench. A mutant that it does not notice is called equivalent if ABC proves that no output "
            "ever",
            "differs, nor a payload while it is valid; those left open are run once more with four times the beats.\n",
            tabulate(table, headers=headers, tablefmt="github"),
            "",
            *(["Survivors:\n", *left, ""] if left else []),
        ]
    )


def _gates(rows):
    table = [
        [f"`{unit}`", row["cells"], row["checked"], row["failed"], row["equivalence"]] for unit, row in rows.items()
    ]
    headers = ["block", "cells", "results checked", "wrong", "equivalence with the RTL"]
    return "\n".join(
        [
            "## Gates\n",
            "`make gates LIBERTY=…`: the netlist that `make synth` makes, with models from the library, under the",
            "standard testbench at preset tiny. Equivalence is proved by ABC at the size named.\n",
            tabulate(table, headers=headers, tablefmt="github"),
            "",
        ]
    )
