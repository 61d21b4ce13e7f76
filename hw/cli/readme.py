"""The generated parts of the README: the table of blocks and the table of figures."""

import hashlib
import json
import re
from pathlib import Path

from tabulate import tabulate

from hw.cli import command_documents, mixed_precision_documents, register_documents
from hw.emit.contract import members, summary
from hw.emit.package import build_package, write_files
from hw.lib.errors import UsageError
from hw.registry import BLOCKS, IN_ALL, PRESETS, make_block
from hw.synthesis.recipes import RECIPES
from hw.synthesis.report_table import notes as notes_of

FIGURES = Path("docs/figures.json")
FIGURE_ROWS = [
    (unit, config, recipe)
    for recipe in ("area", "A")
    for unit in IN_ALL
    if unit != "vector_unit"  # a synthesis of many minutes, too long to repeat at leisure
    for config in ("small", "edge")
]
"""Block, preset and recipe of each row of the table of figures."""


def add_arguments(parser):
    """The reports to take over."""
    parser.add_argument("--reports", metavar="DIR", help="take over the figures of these synthesis reports")


def run(options):
    """Renew the pages of commands and the generated parts of README.md; with synthesis reports, their figures."""
    try:
        if options.reports is not None:
            figures = json.dumps(measured(options.reports), indent=2) + "\n"
            write_files(FIGURES.parent, {FIGURES.name: figures})
        write_files(".", {"README.md": render(Path("README.md").read_text())})
        for page in (command_documents, mixed_precision_documents, register_documents):
            write_files("docs", {page.MARKDOWN: page.markdown()})
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    return 0


def block_table():
    """What each block does, its streams, its latency at every preset."""
    rows = []
    for unit in BLOCKS:
        blocks = {config: make_block(unit, config) for config in PRESETS}
        connected = members(blocks["small"])
        ports = {direction: _names(connected, direction) for direction in ("input", "output")}
        latencies = [block.latency for block in blocks.values()]
        latency = "by command" if None in latencies else " / ".join(map(str, latencies))
        what = summary(blocks["small"]).replace("|", "\\|")
        rows.append([f"`{unit}`", what, ports["input"], ports["output"], latency])
    headers = ["block", "what it does", "in", "out", f"latency in clocks ({' / '.join(PRESETS)})"]
    return tabulate(rows, headers=headers, tablefmt="github")


def _names(members, direction):
    """The members of one direction; of numbered ones only the first and the last, of an AXI port its prefix."""
    names = [member["name"] for member in members if member["direction"] == direction]
    names = list(dict.fromkeys(re.sub(r"^([ms]_axi_)\w+$", r"\1*", name) for name in names))
    numbered = [name for name in names if re.fullmatch(r"\w+_\d+", name)]
    shown = [f"`{name}`" for name in names if name not in numbered]
    return ", ".join(([f"`{numbered[0]}` … `{numbered[-1]}`"] if numbered else []) + shown)


def verilog_digest(unit, config):
    """A digest of a block's modules, without comments and attributes: figures belong to exactly this Verilog."""
    files = build_package({unit: make_block(unit, config)})
    text = "".join(
        re.sub(r"^(//.*|\(\*.*\*\))\n", "", files[name], flags=re.M) for name in sorted(files) if name.endswith(".v")
    )
    return hashlib.sha256(text.encode()).hexdigest()


FIGURES_SHOWN = {
    "flip_flops": "flip-flops",
    "memory_bits": "memory bits",
    "area_um2": "µm²",
    "gate_equivalents": "gate equivalents",
    "period_ps": "period ps",
    "period_wire_load_ps": "with wire load",
}


def figure_table():
    """Area and timing of every block from the committed measurements."""
    data = json.loads(FIGURES.read_text())
    rows = []
    for entry in data["figures"]:
        parameters = ", ".join(f"{name}={value}" for name, value in PRESETS[entry["config"]][entry["unit"]].items())
        row = [f"`{entry['unit']}`", f"{entry['config']} ({parameters})", entry["recipe"]]
        rows.append(row + [f"{entry[key]:,}" for key in FIGURES_SHOWN])
    headers = ["block", "configuration", "recipe", *FIGURES_SHOWN.values()]
    align = ["left"] * 3 + ["right"] * len(FIGURES_SHOWN)
    return tabulate(rows, headers=headers, tablefmt="github", colalign=align) + "\n\n" + "\n".join(data["notes"])


def measured(folder):
    """The committed form of the reports that ``make synth`` wrote to a folder for the rows of the table."""
    figures, notes = [], {}
    for unit, config, recipe in FIGURE_ROWS:
        path = _report_path(folder, unit, config, recipe)
        try:
            report = json.loads(path.read_text())
            values = {**report["figures"], **report["delay"]}
            shown = {key: round(values[key]) for key in FIGURES_SHOWN}
            told = [note for note in notes_of(report) if not note.startswith("flattening")]
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            raise ValueError(f"{str(path)!r} is not the report of a synthesis with a library and delay") from None
        digest = verilog_digest(unit, config)
        figures.append({"unit": unit, "config": config, "recipe": recipe, "verilog_sha256": digest, **shown})
        notes.update(dict.fromkeys(told))
    return {"notes": [f"- {note}" for note in notes], "figures": figures}


def _report_path(folder, unit, config, recipe):
    """The one report of a row with a library, at the recipe's own settings; its name says all of them."""
    own = RECIPES[recipe]
    pattern = f"{unit}_{config}_{recipe}_{own.period_ps}ps_{own.flatten}_*.json"
    found = [path for path in Path(folder).glob(pattern) if not path.stem.endswith("no_library")]
    if len(found) != 1:
        raise ValueError(f"{len(found)} reports in {str(folder)!r} are called {pattern}, with a library: one is needed")
    return found[0]


def render(text):
    """README text with every generated part renewed."""
    for name, content in (("blocks", block_table()), ("figures", figure_table())):
        text = with_generated(text, "README.md", name, "make readme", content)
    return text


def with_generated(text, file, name, command, content):
    """The text of a file with new content between the markers of a generated part."""
    begin, end = f"<!-- begin {name} (generated: {command}) -->", f"<!-- end {name} -->"
    if begin not in text or end not in text:
        raise ValueError(f"{file} lacks the markers of its generated part {name!r}")
    head, rest = text.split(begin)
    return f"{head}{begin}\n{content}\n{end}{rest.split(end)[1]}"
