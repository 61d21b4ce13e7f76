"""The generated parts of the README: the table of blocks and the table of figures."""

import hashlib
import json
import re
from pathlib import Path

from tabulate import tabulate

from hw import contract, synth
from hw.emit import summary
from hw.package import build_package
from hw.registry import BLOCKS, PRESETS, UNITS, make_block

FIGURES = Path("docs/figures.json")
FIGURE_ROWS = [(unit, config) for config in ("small", "edge") for unit in UNITS if (unit, config) != ("vector_unit", "edge")]
"""What the table of figures shows; the vector unit at edge takes a synthesis too long to repeat at leisure."""


def block_table():
    """What each block does, its streams, its latency at every preset."""
    rows = []
    for unit in BLOCKS:
        blocks = {config: make_block(unit, config) for config in PRESETS}
        members = contract.members(blocks["small"])
        ports = {
            direction: ", ".join(f"`{member['name']}`" for member in members if member["direction"] == direction)
            for direction in ("input", "output")
        }
        latency = " / ".join(str(block.latency) for block in blocks.values())
        rows.append([f"`{unit}`", summary(blocks["small"]), ports["input"], ports["output"], latency])
    headers = ["block", "what it does", "in", "out", f"latency in clocks ({' / '.join(PRESETS)})"]
    return tabulate(rows, headers=headers, tablefmt="github")


def verilog_digest(unit, config):
    """A digest of a block's emitted modules, without comments: figures belong to exactly this Verilog."""
    files = build_package({unit: make_block(unit, config)})
    text = "".join(re.sub(r"^//.*\n", "", files[name], flags=re.M) for name in sorted(files) if name.endswith(".v"))
    return hashlib.sha256(text.encode()).hexdigest()


def figure_table():
    """Area and timing of every block from the committed measurements."""
    data = json.loads(FIGURES.read_text())
    rows = []
    for entry in data["figures"]:
        parameters = ", ".join(f"{name}={value}" for name, value in PRESETS[entry["config"]][entry["unit"]].items())
        rows.append(
            [f"`{entry['unit']}`", f"{entry['config']} ({parameters})"]
            + [f"{entry[key]:,}" for key in ("flip_flops", "memory_bits", "area_um2", "gate_equivalents", "period_ps")]
        )
    headers = ["block", "configuration", "flip-flops", "memory bits", "µm²", "gate equivalents", "period ps"]
    align = ("left", "left", *["right"] * 5)
    return tabulate(rows, headers=headers, tablefmt="github", colalign=align) + "\n\n" + "\n".join(data["notes"])


def measured(folder):
    """The committed form of the reports that ``make synth`` wrote to a folder for the rows of the table."""
    figures, notes = [], {}
    for unit, config in FIGURE_ROWS:
        report = json.loads(Path(folder, f"{unit}_{config}.json").read_text())
        counts, delay = report["figures"], report["delay"]
        figures.append(
            {
                "unit": unit,
                "config": config,
                "verilog_sha256": verilog_digest(unit, config),
                "flip_flops": counts["flip_flops"],
                "memory_bits": counts["memory_bits"],
                "area_um2": round(counts["area_um2"]),
                "gate_equivalents": round(counts["gate_equivalents"]),
                "period_ps": round(delay["period_ps"]),
            }
        )
        notes.update(dict.fromkeys(note for note in synth.notes(report) if not note.startswith("flattening")))
    return {"notes": [f"- {note}" for note in notes], "figures": figures}


def render(text):
    """README text with every generated part renewed."""
    for name, content in (("blocks", block_table()), ("figures", figure_table())):
        begin, end = f"<!-- begin {name} (generated: make readme) -->", f"<!-- end {name} -->"
        if begin not in text or end not in text:
            raise ValueError(f"README.md lacks the markers of its generated part {name!r}")
        head, rest = text.split(begin)
        text = f"{head}{begin}\n{content}\n{end}{rest.split(end)[1]}"
    return text
