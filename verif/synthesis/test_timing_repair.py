"""Timing repair: the netlist does what its Verilog says, gets faster, and is timed right."""

import os
import shutil
from pathlib import Path

import pytest

from hw.arith.fma import FusedMultiplyAdd
from hw.emit.package import build_package, write_files
from hw.registry import make_block
from hw.synthesis import flow, liberty, timing
from verif.campaigns.cell_models import cell_models
from verif.synthesis import mini_liberty
from verif.synthesis.side_by_side import check_side_by_side

pytestmark = pytest.mark.slow

REFERENCE = Path(os.environ.get("LIBERTY") or Path(__file__).parents[3] / "shared" / "lib" / "nangate45_typ.lib.gz")

BLOCKS = {
    "hash": ("hash_bank_mapper", lambda: make_block("hash_bank_mapper", None, {"multiplier": 577}), 300),
    "sorter": ("bitonic_sorter", lambda: make_block("bitonic_sorter", None, {"n": 4, "network": "odd_even"}), 800),
    "fma": ("fused_multiply_add", FusedMultiplyAdd, 1000),
}


@pytest.fixture
def library_file(tmp_path):
    """The reference library, or one that is made up where that is not here."""
    if REFERENCE.exists():
        return REFERENCE
    (tmp_path / "mini.lib").write_text(mini_liberty.text())
    return tmp_path / "mini.lib"


def synthesised(name, library_file, folder, **options):
    top, make, period = BLOCKS[name]
    files = {file: text for file, text in build_package({top: make()}).items() if file.endswith(".v")}
    write_files(folder / "source", files)
    sources = [folder / "source" / file for file in files]
    options = {"period_ps": period, **options}
    return sources, flow.synthesise(sources, top, liberty=library_file, keep=folder / "job", **options)


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed")
@pytest.mark.parametrize("name", BLOCKS)
def test_netlist_does_what_its_verilog_says(name, library_file, tmp_path):
    """Clock for clock, on random inputs: the RTL beside the netlist, whose registers begin with random values."""
    sources, report = synthesised(name, library_file, tmp_path)
    changed = report["timing_repair"][0]
    assert changed["area_um2"] == pytest.approx(report["figures"]["area_um2"], abs=0.1)
    library = liberty.read(library_file)
    netlist = (tmp_path / "job" / "mapped.v").read_text()
    top = report["top"]
    models = cell_models(library, report["figures"]["cells_by_type"])
    (tmp_path / "gates.v").write_text(netlist.replace(f"module {top} ", "module gates ") + models)
    check_side_by_side(sources, top, tmp_path)


@pytest.mark.skipif(timing.opensta_version() is None, reason="OpenSTA (sta) is not installed")
@pytest.mark.parametrize("name", ["hash", "sorter"])
def test_own_timing_is_opensta_s(name, library_file, tmp_path, monkeypatch):
    _, report = synthesised(name, library_file, tmp_path, period_ps=900)
    monkeypatch.setattr(timing, "opensta_version", lambda: None)
    _, alone = synthesised(name, library_file, tmp_path / "alone", period_ps=900)
    assert alone["figures"] == report["figures"]
    for key in ("period_ps", "worst_path_ps"):
        assert alone["delay"][key] == pytest.approx(report["delay"][key], rel=0.01)


def test_repair_makes_it_faster(library_file, tmp_path):
    _, report = synthesised("hash", library_file, tmp_path, period_ps=100)
    (done,) = report["timing_repair"]
    # The made-up library's few strengths leave nothing to gain on so short a path.
    assert done["worst_path_ps"] <= (1 if library_file.name == "mini.lib" else 0.97) * done["mapped_ps"]
    assert done["worst_path_ps"] == pytest.approx(report["delay"]["worst_path_ps"], rel=0.01)


def test_a_period_that_is_easily_met_costs_no_area(library_file, tmp_path):
    _, report = synthesised("hash", library_file, tmp_path, period_ps=5000)
    (done,) = report["timing_repair"]
    assert done["area_um2"] <= done["mapped_um2"]


def test_search_finds_a_period_that_justifies_its_area(library_file, tmp_path):
    _, report = synthesised("hash", library_file, tmp_path, period_ps="search")
    (done,) = report["timing_repair"]
    assert report["recipe"]["period_ps"] == "search"
    costs = [
        done[f"{when}_um2"] * done[f"{what}_ps"] ** 0.5 for when, what in (("area", "worst_path"), ("mapped", "mapped"))
    ]
    assert costs[0] <= costs[1]


def test_search_of_a_recipe_that_leaves_all_to_abc(library_file, tmp_path):
    reports = {
        period: synthesised("hash", library_file, tmp_path, recipe="A", period_ps=period)[1]
        for period in ("search", *flow.ABC_PERIODS_PS)
    }
    costs = {
        period: report["figures"]["area_um2"] * report["delay"]["worst_path_ps"] ** 0.5
        for period, report in reports.items()
    }
    assert costs.pop("search") == pytest.approx(min(costs.values()), rel=0.01)
