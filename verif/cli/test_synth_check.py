"""The comparison with the baseline: what is a loss, what a new baseline writes, and that the committed one is whole."""

import csv
import functools
import io
import json
from pathlib import Path

import pytest

from hw import __main__ as command_line
from hw.cli import synth_check as check
from hw.cli.arguments import reporting_errors
from verif.synthesis import mini_liberty


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Baseline, history and picture in a folder of the test's own, with one small point."""
    for name in ("BASELINE", "HISTORY", "PLOT", "PAGE"):
        monkeypatch.setattr(check, name, tmp_path / getattr(check, name).name)
    point = check.Point("hash", "hash_bank_mapper", {"n_columns": 64, "n_banks": 4}, 500, quick=True)
    monkeypatch.setattr(check, "POINTS", (point,))
    (tmp_path / "mini.lib").write_text(mini_liberty.text())
    return tmp_path


def run(*arguments):
    return reporting_errors(lambda: command_line.main(["synth-check", *map(str, arguments)]))


@pytest.mark.parametrize("with_library", [False, True])
def test_a_new_baseline_holds_until_something_is_lost(files, capsys, monkeypatch, with_library):
    measure = check._measure
    (point,) = check.POINTS
    once = functools.cache(lambda recipe, library: measure(point, recipe, library))  # the same each time
    monkeypatch.setattr(check, "_measure", lambda _, *what: once(*what))
    library = ("--liberty", files / "mini.lib") if with_library else ()
    assert run(*library) == 1
    assert "has no figures of library" in capsys.readouterr().err
    assert run(*library, "--update") == 0
    assert run(*library) == 0
    baseline = json.loads(check.BASELINE.read_text())
    ((name, figures),) = baseline.items()
    assert name == ("mini" + name[4:] if with_library else "generic")
    key = "hash area"
    for what, factor, code in (("area", 0.98, 0), ("area", 0.96, 1), ("delay", 0.96, 0), ("delay", 0.94, 1)):
        changed = {**figures[key], what: figures[key][what] * factor}
        check.BASELINE.write_text(json.dumps({name: {key: changed}}))
        capsys.readouterr()
        assert run(*library) == code, (what, factor)
        assert ("error: hash area: " in capsys.readouterr().err) == bool(code)
    check.BASELINE.write_text(json.dumps({name: {}}))
    assert run(*library) == 1
    assert "hash area has no baseline" in capsys.readouterr().err


def test_history_grows_and_is_drawn(files):
    pytest.importorskip("matplotlib")
    for _ in range(2):
        assert run("--liberty", files / "mini.lib", "--update") == 0
    rows = list(csv.DictReader(io.StringIO(check.HISTORY.read_text())))
    assert [(row["point"], row["recipe"]) for row in rows] == [("hash", "area")] * 2
    assert float(rows[0]["area"]) == float(rows[1]["area"]) > 0
    assert check.PLOT.read_text().startswith("<?xml")


def test_bad_options(files, capsys):
    assert run("--only", "nothing") == 2
    assert "unknown point 'nothing': legal are hash" in capsys.readouterr().err
    assert run("--liberty", files / "nowhere.lib") == 2
    check.BASELINE.write_text("{")
    assert run() == 2
    assert "cannot be read" in capsys.readouterr().err


def test_the_committed_baseline_has_every_quick_point():
    baseline = json.loads(check.BASELINE.read_text())
    assert check.GENERIC in baseline and len(baseline) > 1
    for library, figures in baseline.items():
        for point in check.POINTS:
            recipes = ("area",) if library == check.GENERIC else point.recipes
            if point.quick:
                assert all(f"{point.name} {recipe}" in figures for recipe in recipes), (library, point.name)
    rows = {
        (row["library"], f"{row['point']} {row['recipe']}")
        for row in csv.DictReader(io.StringIO(check.HISTORY.read_text()))
    }
    assert rows >= {(library, name) for library, figures in baseline.items() for name in figures}


def test_the_table_of_points_is_that_of_the_baseline():
    committed = Path("docs/synthesis.md").read_text()
    assert check.page(committed, json.loads(Path("docs/synthesis_baseline.json").read_text())) == committed


@pytest.mark.slow
def test_a_new_baseline_renews_the_table_of_points(files):
    begin = "<!-- begin points (generated: make synth-check UPDATE=1) -->"
    check.PAGE.write_text(f"{begin}\nold\n<!-- end points -->\nrest")
    assert run("--liberty", files / "mini.lib", "--update") == 0
    text = check.PAGE.read_text()
    assert "| hash" in text and "n_columns=64 n_banks=4" in text and "old" not in text and text.endswith("rest")
    check.PAGE.write_text("no markers")
    assert run("--liberty", files / "mini.lib", "--update") == 2
