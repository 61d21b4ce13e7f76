"""The synthesis flow on small hand-written designs: counts, areas, adder cells, memories, delay, reports, errors."""

import json
import tempfile

import pytest

from hw import __main__ as command_line
from hw.cli.arguments import reporting_errors
from hw.synthesis import flow, liberty, report_table, timing
from verif.synthesis import mini_liberty
from verif.synthesis.designs import DESIGN


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synth")
    (folder / "mini.lib").write_text(mini_liberty.text())
    (folder / "top.v").write_text(DESIGN)
    return folder


@pytest.fixture(scope="module")
def report(folder):
    return flow.synthesise([folder / "top.v"], "top", liberty=folder / "mini.lib", parameters={"n": 4})


def test_counts_and_areas(report):
    figures = report["figures"]
    kinds = figures["cells_by_type"]
    assert (kinds["FULL"], kinds["HALF"]) == (2, 4)  # of 4 + 4: constants and an unused carry take two away
    assert figures["flip_flops"] == kinds["DFF"] == 9
    assert figures["latches"] == 0
    assert figures["memory_bits"] == 8 * 4 + 16 * 3
    assert figures["cells"] == sum(kinds.values())
    areas = {name: cell[0] for name, cell in mini_liberty.CELLS.items()} | {"DFF": 6.0}
    assert figures["area_um2"] == pytest.approx(sum(areas[kind] * count for kind, count in kinds.items()))
    assert figures["sequential_um2"] == 9 * 6.0
    assert figures["combinational_um2"] == pytest.approx(figures["area_um2"] - 54.0)
    assert figures["gate_equivalents"] == pytest.approx(figures["area_um2"] / 2.0)


def test_report_says_what_the_figures_depend_on(report, folder):
    assert set(report["tools"]) >= {"pyosys", "amaranth"}
    assert report["library"]["name"] == "mini"
    assert report["library"]["sha256"] == liberty.read(folder / "mini.lib").sha256
    assert report["recipe"]["name"] == "area"
    assert report["recipe"]["adder_cells"] == "FULL, HALF"
    assert any(
        command.startswith("abc -liberty cells.lib -constr constraints") for command in report["recipe"]["commands"]
    )
    assert report["flattening"] == {"mode": "auto", "preserved_modules": []}
    assert report["parameters"] == {"n": 4}


def test_report_is_the_same_on_every_run_and_machine(report, folder):
    again = flow.synthesise([folder / "top.v"], "top", liberty=folder / "mini.lib", parameters={"n": 4})
    assert json.dumps(again) == json.dumps(report)
    assert str(folder) not in json.dumps(report)
    assert "/tmp/" not in json.dumps(report)


def test_estimates_without_a_library(folder):
    report = flow.synthesise([folder / "top.v"], "top")
    figures = report["figures"]
    assert report["library"] is None
    assert "area_um2" not in figures
    assert figures["flip_flops"] == 9
    assert figures["memory_bits"] == 80
    assert 200 < figures["transistors_estimate"] < 1000
    assert figures["gate_equivalents_estimate"] == figures["transistors_estimate"] / 4
    assert 3 < figures["logic_depth_estimate"] < 20
    text = report_table.table([report])
    assert "estimates" in text and "delay needs a library" in text


def test_tables_are_logic(folder, tmp_path):
    """A table with a register behind it is no memory: boxes have no area."""
    table = 0xC0FF_EE00_BEEF_1234_5678_9ABC_DEF0_1357
    (tmp_path / "table.v").write_text(
        "module rom(input clk, input [4:0] a, output reg q); wire [6:0] x = {a, 2'h0};\n"
        f"always @(posedge clk) q <= 128'h{table:032x} >> x; endmodule\n"
    )
    figures = flow.synthesise([tmp_path / "table.v"], "rom", liberty=folder / "mini.lib")["figures"]
    assert figures["memory_bits"] == 0 and figures["flip_flops"] == 1 and figures["cells"] > 5


def test_recipe_of_the_peers_has_no_adder_cells(folder):
    report = flow.synthesise([folder / "top.v"], "top", liberty=folder / "mini.lib", recipe="A")
    assert "FULL" not in report["figures"]["cells_by_type"]
    assert report["recipe"]["adder_cells"].startswith("none")
    assert report["flattening"]["mode"] == "flat"


@pytest.mark.skipif(timing.opensta_version() is None, reason="OpenSTA (sta) is not installed")
def test_delay_by_opensta(report):
    delay = report["delay"]
    assert delay["method"] == "opensta"
    assert "OpenSTA" in delay["label"]
    assert 80 < delay["period_ps"] <= delay["worst_path_ps"] < 2000  # clock-to-Q and setup alone are 80
    assert "Startpoint" in report["critical_path"]
    assert "OpenSTA" in report_table.table([report])


def test_delay_where_there_is_no_opensta(folder, report, monkeypatch):
    monkeypatch.setattr(timing, "opensta_version", lambda: None)
    alone = flow.synthesise([folder / "top.v"], "top", liberty=folder / "mini.lib")
    assert alone["delay"]["method"] == "own"
    assert alone["figures"] == report["figures"]
    assert "the flow's own analysis" in report_table.table([alone])
    if report["delay"]["method"] == "opensta":
        for key in ("period_ps", "worst_path_ps"):
            assert alone["delay"][key] == pytest.approx(report["delay"][key], abs=0.2)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"recipe": "fast"}, "unknown recipe 'fast': legal are area"),
        ({"flatten": "some"}, "flatten must be one of auto, flat, hierarchy, not 'some'"),
        ({"period_ps": 0}, "period must be a number of picoseconds above 0"),
        ({"period_ps": float("nan")}, "period must be a number of picoseconds above 0"),
    ],
)
def test_bad_options(folder, options, message):
    with pytest.raises(ValueError, match=message):
        flow.synthesise([folder / "top.v"], "top", **options)


@pytest.mark.parametrize(
    "text, message",
    [
        ("module top(input a; endmodule", "syntax error"),
        ("module other(input a); endmodule", "top"),
        ("module top(input a, output b); missing part(.a(a), .b(b)); endmodule", "missing"),
        ("(* blackbox *) module part(input a, output b); endmodule module top(input a, output b);"
         " part p(.a(a), .b(b)); endmodule", "module part has"),
    ],
)  # fmt: skip
def test_bad_design_is_one_sentence(tmp_path, text, message):
    (tmp_path / "bad.v").write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        flow.synthesise([tmp_path / "bad.v"], "top")
    assert "\n" not in str(caught.value)


def test_library_without_a_nand(folder, tmp_path):
    cells = {name: cell for name, cell in mini_liberty.CELLS.items() if not name.startswith("NAND2")}
    (tmp_path / "less.lib").write_text(mini_liberty.text(cells))
    with pytest.raises(ValueError, match="has no two-input NAND"):
        flow.synthesise([folder / "top.v"], "top", liberty=tmp_path / "less.lib")


@pytest.mark.parametrize("with_library", [False, True])
def test_command_line(folder, tmp_path, capsys, with_library):
    arguments = ["synth", "hash_bank_mapper", "--config", "tiny", "-o", str(tmp_path / "out")]
    arguments += ["--liberty", str(folder / "mini.lib")] if with_library else []
    assert reporting_errors(lambda: command_line.main(arguments)) == 0
    written = [path.name for path in (tmp_path / "out").iterdir()]
    library = f"mini-{liberty.read(folder / 'mini.lib').sha256[:8]}" if with_library else "no_library"
    assert written == [f"hash_bank_mapper_tiny_area_1000ps_auto_{library}.json"]
    report = json.loads((tmp_path / "out" / written[0]).read_text())
    assert report["figures"]["cells"] > 0
    assert ("area_um2" in report["figures"]) == with_library
    output = capsys.readouterr()
    assert "hash_bank_mapper_tiny" in output.out
    assert "mapping" in output.err  # progress


def test_no_run_overwrites_the_report_of_another(folder, tmp_path):
    """Another period, recipe, flattening or library is another file; the same again is the same file."""
    other = tmp_path / "other.lib"
    other.write_text(mini_liberty.text() + "\n")
    runs = [(), ("--period", "700"), ("--period", "search"), ("--recipe", "A"), ("--flatten", "flat"), ()]
    for options, library in [*((run, folder / "mini.lib") for run in runs), ((), other)]:
        arguments = ["synth", "hash_bank_mapper", "--config", "tiny", "-o", str(tmp_path / "out"), *options]
        assert command_line.main([*arguments, "--liberty", str(library)]) == 0
    assert len(list((tmp_path / "out").iterdir())) == 6


def test_folders_with_spaces(folder, tmp_path, monkeypatch):
    scratch = tmp_path / "a folder" / "of mine"
    scratch.mkdir(parents=True)
    (scratch / "my top.v").write_text(DESIGN)
    (scratch / "my cells.lib").write_text(mini_liberty.text())
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", None)
    report = flow.synthesise([scratch / "my top.v"], "top", liberty=scratch / "my cells.lib")
    assert report["figures"]["flip_flops"] == 9
    assert list(report["sources"]) == ["source/my_top.v"]


def test_design_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="nowhere.v' cannot be read"):
        flow.synthesise([tmp_path / "nowhere.v"], "top")
