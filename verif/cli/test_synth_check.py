"""The comparison with the baseline: what is a loss, what a new baseline writes, and that the committed one is whole."""

import csv
import functools
import io
import json
from pathlib import Path

import pytest

from hw import __main__ as command_line
from hw.cli import repair_table, synth_baseline
from hw.cli import synth_check as check
from hw.cli.arguments import reporting_errors
from hw.synthesis.points import Point
from verif.synthesis import mini_liberty


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Baseline, history and picture in a folder of the test's own, with one small point."""
    for name in ("BASELINE", "HISTORY", "PLOT", "PAGE"):
        monkeypatch.setattr(synth_baseline, name, tmp_path / getattr(synth_baseline, name).name)
    for name in ("FIGURES", "PAGE"):
        monkeypatch.setattr(repair_table, name, tmp_path / getattr(repair_table, name).name)
    point = Point("hash", "hash_bank_mapper", {"n_columns": 64, "n_banks": 4}, 500, quick=True)
    for module in (check, synth_baseline, repair_table):
        monkeypatch.setattr(module, "POINTS", (point,))
    (tmp_path / "mini.lib").write_text(mini_liberty.text())
    return tmp_path


def run(*arguments):
    return reporting_errors(lambda: command_line.main(["synth-check", *map(str, arguments)]))


@pytest.mark.parametrize("with_library", [False, True])
def test_a_new_baseline_holds_until_something_is_lost(files, capsys, monkeypatch, with_library):
    measure = check.measure
    (point,) = check.POINTS
    once = functools.cache(lambda recipe, library: measure(point, recipe, library))  # the same each time
    monkeypatch.setattr(check, "measure", lambda _, *what: once(*what))
    library = ("--liberty", files / "mini.lib") if with_library else ()
    assert run(*library) == 1
    assert "has no figures of library" in capsys.readouterr().err
    assert run(*library, "--update") == 0
    assert run(*library) == 0
    baseline = json.loads(synth_baseline.BASELINE.read_text())
    ((name, figures),) = baseline.items()
    assert name == ("mini" + name[4:] if with_library else "generic")
    key = "hash area"
    for what, factor, code in (("area", 0.98, 0), ("area", 0.96, 1), ("delay", 0.96, 0), ("delay", 0.94, 1)):
        changed = {**figures[key], what: figures[key][what] * factor}
        synth_baseline.BASELINE.write_text(json.dumps({name: {key: changed}}))
        capsys.readouterr()
        assert run(*library) == code, (what, factor)
        assert ("error: hash area: " in capsys.readouterr().err) == bool(code)
    synth_baseline.BASELINE.write_text(json.dumps({name: {}}))
    assert run(*library) == 1
    assert "hash area has no baseline" in capsys.readouterr().err


def test_history_grows_and_is_drawn(files):
    pytest.importorskip("matplotlib")
    for _ in range(2):
        assert run("--liberty", files / "mini.lib", "--update") == 0
    rows = list(csv.DictReader(io.StringIO(synth_baseline.HISTORY.read_text())))
    assert [(row["point"], row["recipe"]) for row in rows] == [("hash", "area")] * 2
    assert float(rows[0]["area"]) == float(rows[1]["area"]) > 0
    assert synth_baseline.PLOT.read_text().startswith("<?xml")


def test_bad_options(files, capsys):
    assert run("--only", "nothing") == 2
    assert "unknown point 'nothing': legal are hash" in capsys.readouterr().err
    assert run("--liberty", files / "nowhere.lib") == 2
    synth_baseline.BASELINE.write_text("{")
    assert run() == 2
    assert "cannot be read" in capsys.readouterr().err


def test_the_committed_baseline_has_every_quick_point():
    baseline = json.loads(synth_baseline.BASELINE.read_text())
    assert check.GENERIC in baseline and len(baseline) > 1
    for library, figures in baseline.items():
        for point in check.POINTS:
            recipes = ("area",) if library == check.GENERIC else point.recipes
            if point.quick:
                assert all(f"{point.name} {recipe}" in figures for recipe in recipes), (library, point.name)
    rows = {
        (row["library"], f"{row['point']} {row['recipe']}")
        for row in csv.DictReader(io.StringIO(synth_baseline.HISTORY.read_text()))
    }
    assert rows >= {(library, name) for library, figures in baseline.items() for name in figures}


def test_the_table_of_points_is_that_of_the_baseline():
    committed = Path("docs/synthesis.md").read_text()
    assert synth_baseline.page(committed, json.loads(Path("docs/synthesis_baseline.json").read_text())) == committed


def test_the_table_of_timing_repair_is_that_of_its_figures():
    committed = Path("docs/synthesis.md").read_text()
    figures = json.loads(repair_table.FIGURES.read_text())
    assert all(len(rows) >= 8 for rows in figures.values())
    assert repair_table.page(committed, figures) == committed


@pytest.mark.slow
def test_a_new_baseline_renews_the_table_of_points(files):
    begin = "<!-- begin points (generated: make synth-check UPDATE=1) -->"
    synth_baseline.PAGE.write_text(f"{begin}\nold\n<!-- end points -->\nrest")
    assert run("--liberty", files / "mini.lib", "--update") == 0
    text = synth_baseline.PAGE.read_text()
    assert "| hash" in text and "n_columns=64 n_banks=4" in text and "old" not in text and text.endswith("rest")
    synth_baseline.PAGE.write_text("no markers")
    assert run("--liberty", files / "mini.lib", "--update") == 2


@pytest.mark.slow
def test_the_table_of_timing_repair_is_renewed(files, capsys):
    begin = "<!-- begin repair (generated: make repair-table) -->"
    repair_table.PAGE.write_text(f"before\n{begin}\nold\n<!-- end repair -->\nrest")
    assert run("--repair-table") == 2
    assert "give --liberty FILE" in capsys.readouterr().err
    assert run("--repair-table", "--liberty", files / "mini.lib") == 0
    text = repair_table.PAGE.read_text()
    figures = json.loads(repair_table.FIGURES.read_text())
    assert repair_table.page(text, figures) == text
    row = next(line.split("|") for line in text.splitlines() if line.startswith("| hash"))
    area, path = ((float(row[n + 2].replace(",", "")) / float(row[n].replace(",", ""))) for n in (3, 4))
    # Both are rounded to whole units in the table.
    assert float(row[7].split()[0]) == pytest.approx(100 * (area - 1), abs=2)
    assert float(row[8].split()[0]) == pytest.approx(100 * (path - 1), abs=2)
    assert "old" not in text and text.startswith("before") and text.endswith("rest")
    assert not synth_baseline.BASELINE.exists()
