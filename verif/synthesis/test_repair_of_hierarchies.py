"""Timing repair of designs of several modules: boundaries are timed right, nets into many modules are buffered."""

import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from hw.synthesis import flow, liberty, timing
from hw.synthesis.repair import buffering
from verif.campaigns.cell_models import cell_models
from verif.synthesis import mini_liberty
from verif.synthesis.side_by_side import check_side_by_side

pytestmark = pytest.mark.slow

REFERENCE = Path(os.environ.get("LIBERTY") or Path(__file__).parents[3] / "shared" / "lib" / "nangate45_typ.lib.gz")


@pytest.fixture(scope="module")
def library_file(tmp_path_factory):
    """The reference library, or one that is made up where that is not here."""
    if REFERENCE.exists():
        return REFERENCE
    path = tmp_path_factory.mktemp("library") / "mini.lib"
    path.write_text(mini_liberty.text())
    return path


def test_a_preserved_module_is_timed_at_its_boundary(tmp_path):
    """A path through a preserved module, between registers outside, is as long as in one piece."""
    (tmp_path / "mini.lib").write_text(mini_liberty.text())
    (tmp_path / "top.v").write_text(
        "module inner(input clk, input [3:0] a, output reg [3:0] b);\n"
        "  always @(posedge clk) b <= {^a, &a, |a, a[0] ^ b[1]};\nendmodule\n"
        "module top(input clk, input [3:0] a, output reg [3:0] c);\n"
        "  wire [3:0] b;\n  reg [3:0] x;\n  inner one(.clk(clk), .a(x + 4'd3), .b(b));\n"
        "  always @(posedge clk) begin x <= a; c <= b + x; end\nendmodule\n"
    )
    periods = {}
    for mode in ("flat", "hierarchy"):
        report = flow.synthesise([tmp_path / "top.v"], "top", liberty=tmp_path / "mini.lib", flatten=mode, recipe="A")
        periods[mode] = report["delay"]["period_ps"]
    assert periods["hierarchy"] == pytest.approx(periods["flat"], rel=0.3)


LANES = """
module next(input [7:0] x, output [7:0] y);
  assign y = x + 8'd1;
endmodule
module lane(input clk, input rst, input go, input [7:0] x, output [7:0] y);
  reg [7:0] sum;
  always @(posedge clk) if (rst) sum <= 0; else if (go) sum <= sum + (x ^ {8{sum[0]}});
  assign y = sum;
endmodule
module lanes (
  input clk,
  input rst,
  input ready,
  input [7:0] x,
  output [7:0] y
);
  reg [7:0] first;
  reg busy;
  wire go = ~busy | ready;
  wire [7:0] sums [0:49], second;
  reg [7:0] gathered [0:50];
  next link(.x(first), .y(second));
  genvar i;
  generate for (i = 0; i < 50; i = i + 1) begin : each
    lane one(.clk(clk), .rst(rst), .go(go), .x(i == 1 ? second : first), .y(sums[i]));
    always @(posedge clk) gathered[i + 1] <= gathered[i] ^ sums[i];
  end endgenerate
  always @(posedge clk) begin busy <= ~rst & ready; first <= x; gathered[0] <= second; end
  assign y = gathered[50];
endmodule
"""


@pytest.fixture(scope="module")
def lanes(library_file, tmp_path_factory):
    """Fifty preserved modules under one enable, one behind a combinational one: ``(source, netlist, report)``."""
    folder = tmp_path_factory.mktemp("lanes")
    (folder / "lanes.v").write_text(LANES)
    report = flow.synthesise(
        [folder / "lanes.v"], "lanes", liberty=library_file, flatten="hierarchy", period_ps=700, keep=folder / "job"
    )
    return folder / "lanes.v", (folder / "job" / "mapped.v").read_text(), report


def test_nets_into_many_modules_are_buffered(lanes, library_file):
    """Nothing drives much more than ABC would let it, whether it sees the places or not."""
    _, netlist, report = lanes
    assert report["flattening"]["preserved_modules"] == ["lane", "next"]
    body = netlist.split("module lanes ")[1]
    nets = Counter(net for pin, net in re.findall(r"\.(go|x)\((n\d+|\w+)\)", body))
    assert len(nets) >= 3
    assert max(nets.values()) <= 1.5 * buffering.MOST_LOADS
    names = {row["module"]: row for row in report["timing_repair"]}
    if REFERENCE.name in str(library_file):  # the made-up library's buffers are too slow for that
        assert names["lanes"]["worst_path_ps"] < names["lanes"]["mapped_ps"]


@pytest.mark.skipif(timing.opensta_version() is None, reason="OpenSTA (sta) is not installed")
def test_own_timing_of_a_hierarchy_is_opensta_s(lanes, library_file, monkeypatch):
    """With paths through two modules, and drivers whose loads are in other modules.

    What arrives at a module is the worst of its instances, late and slow alike, so that it may say a little more.
    """
    source, _, report = lanes
    monkeypatch.setattr(timing, "opensta_version", lambda: None)
    alone = flow.synthesise([source], "lanes", liberty=library_file, flatten="hierarchy", period_ps=700)
    assert alone["figures"] == report["figures"]
    for key in ("period_ps", "worst_path_ps"):
        assert 0.98 < alone["delay"][key] / report["delay"][key] < 1.04


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed")
def test_netlist_of_a_hierarchy_does_what_its_verilog_says(lanes, library_file, tmp_path):
    source, netlist, report = lanes
    models = cell_models(liberty.read(library_file), report["figures"]["cells_by_type"])
    for module in ("lanes", "lane", "next"):
        netlist = netlist.replace(f" {module} ", " gates " if module == "lanes" else f" mapped_{module} ")
    (tmp_path / "gates.v").write_text(netlist + models)
    check_side_by_side([source], "lanes", tmp_path)
