"""The synthesis flow on small hand-written designs: counts, areas, adder cells, memories, delay, reports, errors."""

import json
import subprocess
import sys
import tempfile
from dataclasses import replace

import pytest

from hw import __main__ as command_line
from hw.cli.arguments import reporting_errors
from hw.synthesis import flow as synth
from hw.synthesis import groups, liberty, recipes, timing, worker
from hw.synthesis import timing_repair as recovery
from verif.synthesis import mini_liberty

DESIGN = """
module full_adder_row_4(input [3:0] a, b, c, output [3:0] sum, carry);
  assign sum = a ^ b ^ c;
  assign carry = (a & b) | (c & (a | b));
endmodule
module half_adder_row_4(input [3:0] a, b, output [3:0] sum, carry);
  assign sum = a ^ b;
  assign carry = a & b;
endmodule
module memory_1r1w_8x4(input clk, write_enable, input [2:0] write_address, read_address, input [3:0] write_data,
                       output reg [3:0] read_data);
  reg [3:0] words [7:0];
  always @(posedge clk) begin
    if (write_enable) words[write_address] <= write_data;
    read_data <= words[read_address];
  end
endmodule
module top(input clk, rst, enable, input [3:0] x, y, z, output reg [4:0] total, output reg [3:0] word);
  wire [3:0] sum_1, carry_1, sum_2, carry_2, stored;
  reg [2:0] inferred [15:0];
  full_adder_row_4 row_1(.a(x), .b(y), .c({z[3:1], 1'b0}), .sum(sum_1), .carry(carry_1));
  half_adder_row_4 row_2(.a(sum_1), .b({carry_1[2:0], 1'b0}), .sum(sum_2), .carry(carry_2));
  memory_1r1w_8x4 bank(.clk(clk), .write_enable(enable), .write_address(x[2:0]), .read_address(y[2:0]),
                       .write_data(z), .read_data(stored));
  always @(posedge clk) begin
    if (rst) total <= 0;
    else if (enable) total <= sum_2 + {carry_2, 1'b0};
    inferred[x] <= y[2:0];
    word <= stored ^ inferred[z];
  end
endmodule
"""

# Every pattern of constants at a full and a half adder, and adders of which one output is unused.
ADDERS = """
module full_adder_row_9(input [8:0] a, b, c, output [8:0] sum, carry);
  assign sum = a ^ b ^ c;
  assign carry = (a & b) | (c & (a | b));
endmodule
module half_adder_row_3(input [2:0] a, b, output [2:0] sum, carry);
  assign sum = a ^ b;
  assign carry = a & b;
endmodule
module full_adder_row_1(input a, b, c, output sum, carry);
  assign sum = a ^ b ^ c;
  assign carry = (a & b) | (c & (a | b));
endmodule
module adders(input [8:0] p, q, r, output [8:0] sum, carry, output [2:0] half_sum, half_carry, output only_sum, only_carry);
  full_adder_row_9 full(.a({p[8:6], 1'b0, 1'b1, p[3:2], 2'b10}), .b({q[8:5], 1'b1, q[3], 2'b01, q[0]}),
                        .c({r[8], 2'b10, r[5:4], 2'b10, r[1:0]}), .sum(sum), .carry(carry));
  half_adder_row_3 half(.a({p[2:1], 1'b1}), .b({q[2], 1'b0, r[0]}), .sum(half_sum), .carry(half_carry));
  full_adder_row_1 summing(.a(p[0]), .b(q[1]), .c(r[2]), .sum(only_sum), .carry());
  full_adder_row_1 carrying(.a(p[3]), .b(q[4]), .c(r[5]), .sum(), .carry(only_carry));
endmodule
"""

TWINS = """
module leaf(input clk, input [7:0] a, output reg [7:0] b);
  always @(posedge clk) b <= b ^ {a[0], a[7:1]};
endmodule
module twins(input clk, input [7:0] a, output [7:0] b);
  wire [7:0] c, d;
  leaf one(.clk(clk), .a(a), .b(c));
  leaf two(.clk(clk), .a(c), .b(d));
  leaf three(.clk(clk), .a(d), .b(b));
endmodule
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synth")
    (folder / "mini.lib").write_text(mini_liberty.text())
    (folder / "top.v").write_text(DESIGN)
    (folder / "adders.v").write_text(ADDERS)
    (folder / "twins.v").write_text(TWINS)
    return folder


@pytest.fixture(scope="module")
def report(folder):
    return synth.synthesise([folder / "top.v"], "top", liberty=folder / "mini.lib", parameters={"n": 4})


@pytest.mark.parametrize("order", [1, -1])
def test_the_better_script_is_taken_and_kept(folder, tmp_path, monkeypatch, order):
    """The other one, without any restructuring, gives more area; the kept job repeats the one that was taken."""
    area = recipes.RECIPES["area"]
    scripts = ("strash; amap; stime -p", "strash; dch; amap; stime -p")
    mappings = tuple(map(recipes.Mapping, scripts[::order]))
    monkeypatch.setitem(recipes.RECIPES, "area", replace(area, mappings=mappings, recovery=False))
    job = {"files": [folder / "top.v"], "top": "top", "liberty": folder / "mini.lib", "period_ps": 5000}
    areas = {}
    for script in scripts:
        alone = replace(area, mappings=(recipes.Mapping(script),), recovery=False)
        with monkeypatch.context() as patch:
            patch.setitem(recipes.RECIPES, "area", alone)
            areas[script] = synth.synthesise(**job)["figures"]["area_um2"]
    best = min(areas, key=areas.get)
    assert max(areas.values()) > areas[best]
    report = synth.synthesise(**job, keep=tmp_path)
    assert report["figures"]["area_um2"] == areas[best]
    commands = (tmp_path / "yosys.ys").read_text().splitlines()
    assert commands == report["recipe"]["commands"]
    assert any(best.replace(" ", ",") in command for command in commands)


@pytest.mark.parametrize("period_ps, n_tried", [(100_000, 1), (1, 3)])
def test_where_the_period_is_missed_the_next_mapping_follows(folder, monkeypatch, period_ps, n_tried):
    tried = []
    monkeypatch.setattr(recovery, "recover", lambda netlist, *_: (tried.append(netlist), (netlist, []))[1])
    synth.synthesise([folder / "top.v"], "top", liberty=folder / "mini.lib", period_ps=period_ps)
    assert len(tried) == n_tried == len({id(netlist) for netlist in tried})


def test_carries_as_chains_are_smaller_and_slower(folder, tmp_path, monkeypatch):
    (tmp_path / "sum.v").write_text(
        "module sum(input [31:0] a, b, output [31:0] y, output less); assign y = a + b, less = a < b; endmodule\n"
    )
    found = {}
    for ripple in (False, True):
        mapping = recipes.Mapping("strash; amap; stime -p", ripple)
        monkeypatch.setitem(
            recipes.RECIPES, "area", replace(recipes.RECIPES["area"], mappings=(mapping,), recovery=False)
        )
        report = synth.synthesise([tmp_path / "sum.v"], "sum", liberty=folder / "mini.lib", keep=tmp_path / "kept")
        found[ripple] = report["figures"]["area_um2"], report["delay"]["worst_path_ps"]
        assert (tmp_path / "kept" / "ripple.v").exists() == ripple
    assert found[True][0] < 0.95 * found[False][0]
    assert found[True][1] > 1.3 * found[False][1]


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
    assert report["flattening"] == {"mode": "auto", "kept_modules": []}
    assert report["parameters"] == {"n": 4}


def test_report_is_the_same_on_every_run_and_machine(report, folder):
    again = synth.synthesise([folder / "top.v"], "top", liberty=folder / "mini.lib", parameters={"n": 4})
    assert json.dumps(again) == json.dumps(report)
    assert str(folder) not in json.dumps(report)
    assert "/tmp/" not in json.dumps(report)


def test_estimates_without_a_library(folder):
    report = synth.synthesise([folder / "top.v"], "top")
    figures = report["figures"]
    assert report["library"] is None
    assert "area_um2" not in figures
    assert figures["flip_flops"] == 9
    assert figures["memory_bits"] == 80
    assert 200 < figures["transistors_estimate"] < 1000
    assert figures["gate_equivalents_estimate"] == figures["transistors_estimate"] / 4
    assert 3 < figures["logic_depth_estimate"] < 20
    text = synth.table([report])
    assert "estimates" in text and "delay needs a library" in text


def test_tables_are_logic(folder, tmp_path):
    """A table with a register behind it is no memory: boxes have no area."""
    table = 0xC0FF_EE00_BEEF_1234_5678_9ABC_DEF0_1357
    (tmp_path / "table.v").write_text(
        "module rom(input clk, input [4:0] a, output reg q); wire [6:0] x = {a, 2'h0};\n"
        f"always @(posedge clk) q <= 128'h{table:032x} >> x; endmodule\n"
    )
    figures = synth.synthesise([tmp_path / "table.v"], "rom", liberty=folder / "mini.lib")["figures"]
    assert figures["memory_bits"] == 0 and figures["flip_flops"] == 1 and figures["cells"] > 5


def test_recipe_of_the_peers_has_no_adder_cells(folder):
    report = synth.synthesise([folder / "top.v"], "top", liberty=folder / "mini.lib", recipe="A")
    assert "FULL" not in report["figures"]["cells_by_type"]
    assert report["recipe"]["adder_cells"].startswith("none")
    assert report["flattening"]["mode"] == "flat"


def test_inverted_adder_cells_and_constants_are_equivalent(folder, tmp_path):
    cells = dict(mini_liberty.CELLS)
    inverted = (8.0, cells["FULL"][1], {"SN": "!(A ^ B ^ CI)", "CN": "!((A B) + (B CI) + (CI A))"})
    for name, full in (("plain", cells["FULL"]), ("inverted", inverted)):
        library = tmp_path / f"{name}.lib"
        library.write_text(mini_liberty.text({**cells, "FULL": full}))
        kept = tmp_path / name
        report = synth.synthesise([folder / "adders.v"], "adders", liberty=library, keep=kept)
        assert report["figures"]["cells_by_type"]["FULL"] == 1  # the only one without a constant and with both outputs
        assert_equivalent(folder / "adders.v", kept / "mapped.v", library)


def assert_equivalent(source, netlist, library, top="adders"):
    """Prove with Yosys that a combinational netlist does what its source does."""
    commands = [
        f"read_verilog {source}", f"hierarchy -top {top}", "proc", "flatten", f"rename {top} gold", "design -stash gold",
        f"read_liberty {library}", f"read_verilog {netlist}", f"hierarchy -top {top}", "proc", "flatten",
        f"rename {top} gate", "design -stash gate", "design -copy-from gold gold", "design -copy-from gate gate",
        "miter -equiv -flatten -make_outputs gold gate miter", "sat -verify -prove trigger 0 miter",
    ]  # fmt: skip
    code = "import sys; from pyosys import libyosys as y; d = y.Design(); [y.run_pass(c, d) for c in sys.argv[1:]]"
    run = subprocess.run([sys.executable, "-c", code, *commands], capture_output=True, text=True)
    assert run.returncode == 0 and "SUCCESS" in run.stdout, run.stdout[-2000:] + run.stderr


def test_hierarchy_is_multiplied_out(folder):
    files = [folder / "twins.v"]
    parts = synth.synthesise(files, "twins", liberty=folder / "mini.lib", flatten="hierarchy")
    whole = synth.synthesise(files, "twins", liberty=folder / "mini.lib", flatten="flat")
    assert parts["flattening"]["kept_modules"] == ["leaf"]
    assert whole["flattening"]["kept_modules"] == []
    rows = {row["module"]: row for row in parts["modules"]}
    assert (rows["leaf"]["instances"], rows["leaf"]["flip_flops"]) == (3, 8)
    assert parts["figures"]["flip_flops"] == whole["figures"]["flip_flops"] == 24
    assert parts["figures"]["area_um2"] == pytest.approx(3 * rows["leaf"]["area_um2"])


def test_estimates_of_a_hierarchy(folder):
    parts = synth.synthesise([folder / "twins.v"], "twins", flatten="hierarchy")["figures"]
    whole = synth.synthesise([folder / "twins.v"], "twins", flatten="flat")["figures"]
    assert parts["transistors_estimate"] == whole["transistors_estimate"]
    assert parts["logic_depth_estimate"] == whole["logic_depth_estimate"] == 1


def cell(kind, width=1):
    return {"type": kind, "connections": {"Y": list(range(width))}}


def test_auto_keeps_large_modules_that_repeat():
    modules = {
        "big": {"cells": {"x": cell("$xor", 500)}},
        "small": {"cells": {"x": cell("$xor", 5)}},
        "single": {"cells": {"x": cell("$xor", 500)}},
        "top": {
            "cells": {"a": cell("big"), "b": cell("big"), "c": cell("small"), "d": cell("small"), "e": cell("single")}
        },
    }
    kept = "setattr -mod -set keep_hierarchy 1 big"
    assert worker.flatten(modules, "top", "auto", 1000, 100, 0) == [kept, "flatten", "opt_clean"]
    assert worker.flatten(modules, "top", "auto", 2000, 100, 0) == ["flatten", "opt_clean"]
    assert worker.flatten(modules, "top", "flat", 1000, 100, 0) == ["flatten", "opt_clean"]
    assert worker.flatten(modules, "top", "hierarchy", 1000, 100, 0) == []


@pytest.mark.parametrize("most, kept", [(300, ["leaf", "pair"]), (600, ["pair"])])
def test_auto_keeps_a_module_of_moderate_size_whole(most, kept):
    """What is in it goes unless it is a part of a core; a table of constants is as small as it is."""
    table = {"type": "$shr", "connections": {"A": ["0"] * 256, "B": list(range(8)), "Y": list(range(256))}}
    modules = {
        "leaf": {"cells": {"x": cell("$xor", 150)}},
        "dot_product_unit": {"cells": {"x": cell("$xor", 150)}},
        "pair": {"cells": {"a": cell("leaf"), "b": cell("leaf"), "c": cell("dot_product_unit"), "t": table}},
        "top": {"cells": {"a": cell("pair"), "b": cell("pair"), "x": cell("$xor", 500)}},
    }
    marks = [f"setattr -mod -set keep_hierarchy 1 {name}" for name in sorted([*kept, "dot_product_unit"])]
    assert worker.flatten(modules, "top", "auto", 1000, 100, most) == [*marks, "flatten", "opt_clean"]
    assert worker.flatten(modules, "top", "auto", 1600, 100, most) == ["flatten", "opt_clean"]


def test_auto_keeps_the_parts_of_a_core():
    modules = {
        "dot_product_unit_n_lanes_4": {"cells": {"x": cell("$xor", 500)}},
        "vector_unit": {"cells": {"x": cell("$xor", 5)}},
        "core": {"cells": {"a": cell("dot_product_unit_n_lanes_4"), "b": cell("vector_unit"), "c": cell("$xor", 900)}},
    }
    kept = "setattr -mod -set keep_hierarchy 1 dot_product_unit_n_lanes_4"
    assert worker.flatten(modules, "core", "auto", 1000, 100, 0) == [kept, "flatten", "opt_clean"]


def test_area_divides_over_the_parts_of_a_core():
    """A part has all that is below it, however often; what is below none is everything else."""
    netlist = {
        "core": {"array": 2, "vector_unit_8": 1, "INV_X1": 3},
        "array": {"dot_product_unit_16": 4, "queue": 1},
        "dot_product_unit_16": {"lane": 2, "queue": 1},
        "vector_unit_8": {"lane": 8, "dot_product_united": 1},
        "dot_product_united": {},
        "lane": {},
        "queue": {},
    }
    own = {
        "core": 10.0,
        "array": 3.0,
        "dot_product_unit_16": 5.0,
        "vector_unit_8": 2.0,
        "dot_product_united": 0.5,
        "lane": 1.0,
        "queue": 0.25,
    }
    assert groups.divide(netlist, "core", own) == {
        "dot products": 8 * (5.0 + 2 * 1.0 + 0.25),
        "vector lanes": 2.0 + 8 * 1.0 + 0.5,
        "everything else": 10.0 + 2 * (3.0 + 0.25),
    }
    assert groups.divide({"lane": {}}, "lane", own) is None


@pytest.mark.skipif(timing.opensta_version() is None, reason="OpenSTA (sta) is not installed")
def test_delay_by_opensta(report):
    delay = report["delay"]
    assert delay["method"] == "opensta"
    assert "OpenSTA" in delay["label"]
    assert 80 < delay["period_ps"] <= delay["worst_path_ps"] < 2000  # clock-to-Q and setup alone are 80
    assert "Startpoint" in report["critical_path"]
    assert "OpenSTA" in synth.table([report])


def test_delay_where_there_is_no_opensta(folder, report, monkeypatch):
    monkeypatch.setattr(timing, "opensta_version", lambda: None)
    alone = synth.synthesise([folder / "top.v"], "top", liberty=folder / "mini.lib")
    assert alone["delay"]["method"] == "own"
    assert alone["figures"] == report["figures"]
    assert "the flow's own analysis" in synth.table([alone])
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
        synth.synthesise([folder / "top.v"], "top", **options)


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
        synth.synthesise([tmp_path / "bad.v"], "top")
    assert "\n" not in str(caught.value)


def test_library_without_a_nand(folder, tmp_path):
    cells = {name: cell for name, cell in mini_liberty.CELLS.items() if not name.startswith("NAND2")}
    (tmp_path / "less.lib").write_text(mini_liberty.text(cells))
    with pytest.raises(ValueError, match="has no two-input NAND"):
        synth.synthesise([folder / "top.v"], "top", liberty=tmp_path / "less.lib")


@pytest.mark.parametrize("with_library", [False, True])
def test_command_line(folder, tmp_path, capsys, with_library):
    arguments = ["synth", "hash_bank_mapper", "--config", "tiny", "-o", str(tmp_path / "out")]
    arguments += ["--liberty", str(folder / "mini.lib")] if with_library else []
    assert reporting_errors(lambda: command_line.main(arguments)) == 0
    written = [path.name for path in (tmp_path / "out").iterdir()]
    assert written == ["hash_bank_mapper_tiny.json"]
    report = json.loads((tmp_path / "out" / written[0]).read_text())
    assert report["figures"]["cells"] > 0
    assert ("area_um2" in report["figures"]) == with_library
    output = capsys.readouterr()
    assert "hash_bank_mapper_tiny" in output.out
    assert "mapping" in output.err  # progress


def test_folders_with_spaces(folder, tmp_path, monkeypatch):
    scratch = tmp_path / "a folder" / "of mine"
    scratch.mkdir(parents=True)
    (scratch / "my top.v").write_text(DESIGN)
    (scratch / "my cells.lib").write_text(mini_liberty.text())
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", None)
    report = synth.synthesise([scratch / "my top.v"], "top", liberty=scratch / "my cells.lib")
    assert report["figures"]["flip_flops"] == 9
    assert list(report["sources"]) == ["source/my_top.v"]


def test_design_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="nowhere.v' cannot be read"):
        synth.synthesise([tmp_path / "nowhere.v"], "top")
