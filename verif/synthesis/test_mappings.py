"""The mappings of a recipe: which one is taken, and what they differ in."""

from dataclasses import replace

import pytest

from hw.synthesis import flow, recipes
from hw.synthesis.repair import design as repair_design
from verif.synthesis import mini_liberty
from verif.synthesis.designs import DESIGN


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "mini.lib"
    path.write_text(mini_liberty.text())
    return path


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    path = tmp_path_factory.mktemp("design") / "top.v"
    path.write_text(DESIGN)
    return path


@pytest.mark.parametrize("order", [1, -1])
def test_the_better_script_is_taken(design, library, tmp_path, monkeypatch, order):
    """The other one, without any restructuring, gives more area; the job on disk repeats the one that was taken."""
    area = recipes.RECIPES["area"]
    scripts = ("strash; amap; stime -p", "strash; dch; amap; stime -p")
    mappings = tuple(map(recipes.Mapping, scripts[::order]))
    monkeypatch.setitem(recipes.RECIPES, "area", replace(area, mappings=mappings, timing_repair=False))
    job = {"files": [design], "top": "top", "liberty": library, "period_ps": 5000}
    areas = {}
    for script in scripts:
        alone = replace(area, mappings=(recipes.Mapping(script),), timing_repair=False)
        with monkeypatch.context() as patch:
            patch.setitem(recipes.RECIPES, "area", alone)
            areas[script] = flow.synthesise(**job)["figures"]["area_um2"]
    best = min(areas, key=areas.get)
    assert max(areas.values()) > areas[best]
    report = flow.synthesise(**job, keep=tmp_path)
    assert report["figures"]["area_um2"] == areas[best]
    commands = (tmp_path / "yosys.ys").read_text().splitlines()
    assert commands == report["recipe"]["commands"]
    assert any(best.replace(" ", ",") in command for command in commands)


@pytest.mark.parametrize("period_ps, n_tried", [(100_000, 1), (1, 3)])
def test_where_the_period_is_missed_the_next_mapping_follows(design, library, monkeypatch, period_ps, n_tried):
    tried = []
    monkeypatch.setattr(repair_design, "repair_one", lambda netlist, *_: (tried.append(netlist), (netlist, []))[1])
    flow.synthesise([design], "top", liberty=library, period_ps=period_ps)
    assert len(tried) == n_tried == len({id(netlist) for netlist in tried})


def test_carries_as_chains_are_smaller_and_slower(design, library, tmp_path, monkeypatch):
    (tmp_path / "sum.v").write_text(
        "module sum(input [31:0] a, b, output [31:0] y, output less); assign y = a + b, less = a < b; endmodule\n"
    )
    found = {}
    for ripple in (False, True):
        mapping = recipes.Mapping("strash; amap; stime -p", ripple)
        monkeypatch.setitem(
            recipes.RECIPES, "area", replace(recipes.RECIPES["area"], mappings=(mapping,), timing_repair=False)
        )
        report = flow.synthesise([tmp_path / "sum.v"], "sum", liberty=library, keep=tmp_path / "job")
        found[ripple] = report["figures"]["area_um2"], report["delay"]["worst_path_ps"]
        assert (tmp_path / "job" / "ripple.v").exists() == ripple
    assert found[True][0] < 0.95 * found[False][0]
    assert found[True][1] > 1.3 * found[False][1]
