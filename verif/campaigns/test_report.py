"""docs/verification.md is what its figures say, and the figures are as good as they must be."""

import json

import pytest

from verif.campaigns import coverage, mutate
from verif.campaigns.report import DATA, PAGE, render, renew


@pytest.fixture(scope="module")
def data():
    return json.loads(DATA.read_text())


def test_the_page_is_that_of_the_figures(data):
    assert PAGE.read_text() == render(data), "renew it: see the commands that it names"


def test_figures_of_one_kind_leave_the_others(tmp_path, monkeypatch, data):
    monkeypatch.setattr("verif.campaigns.report.PAGE", tmp_path / "page.md")
    monkeypatch.setattr("verif.campaigns.report.DATA", tmp_path / "page.json")
    row = {"cells": 3, "checked": 4, "failed": 0, "equivalence": "proved"}
    renew("coverage", data["coverage"])
    renew("gates", {"bitonic_sorter": row})
    written = json.loads((tmp_path / "page.json").read_text())
    assert written == {"coverage": data["coverage"], "gates": {"bitonic_sorter": row}}


def test_enough_is_covered(data):
    for row in data["coverage"].values():
        assert row["lines"][0] >= coverage.LEAST_LINES * row["lines"][1]
        assert row["toggles"][0] >= coverage.LEAST_TOGGLES * row["toggles"][1]
        assert all(row["bins"].values())


def test_enough_mutants_are_killed(data):
    for _unit, row in data["mutation"].items():
        assert row["mutants"] >= 200
        assert row["killed"] + row["survivors"] + row["equivalent"] == row["mutants"]
        assert row["killed"] >= mutate.LEAST_KILLED * (row["mutants"] - row["equivalent"])
