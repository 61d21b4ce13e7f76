"""The generated parts of the README are those of the code, and its figures belong to the Verilog of today."""

import json
from pathlib import Path

import pytest

from hw.cli import readme
from hw.emit.verilog import WAIVERS

TEXT = Path("README.md").read_text()


def test_generated_tables_are_current():
    assert readme.render(TEXT) == TEXT, "run: make readme"


def test_every_lint_waiver_is_explained():
    for name in WAIVERS:
        assert f"`{name}`" in TEXT


@pytest.mark.slow
def test_figures_belong_to_this_verilog():
    figures = json.loads(readme.FIGURES.read_text())["figures"]
    assert [(entry["unit"], entry["config"], entry["recipe"]) for entry in figures] == readme.FIGURE_ROWS
    digests = {(entry["unit"], entry["config"]): entry["verilog_sha256"] for entry in figures}
    for (unit, config), digest in digests.items():
        assert readme.verilog_digest(unit, config) == digest, f"{unit} changed: run make figures LIBERTY=..."
