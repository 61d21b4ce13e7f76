"""Rows of adders from modules with a role to library cells: constants, unused outputs, inverted cells."""

import subprocess
import sys

import pytest

from hw.synthesis import flow
from verif.synthesis import mini_liberty
from verif.synthesis.designs import ADDERS


def test_inverted_adder_cells_and_constants_are_equivalent(tmp_path):
    source = tmp_path / "adders.v"
    source.write_text(ADDERS)
    cells = dict(mini_liberty.CELLS)
    inverted = (8.0, cells["FULL"][1], {"SN": "!(A ^ B ^ CI)", "CN": "!((A B) + (B CI) + (CI A))"})
    for name, full in (("plain", cells["FULL"]), ("inverted", inverted)):
        library = tmp_path / f"{name}.lib"
        library.write_text(mini_liberty.text({**cells, "FULL": full}))
        folder = tmp_path / name
        report = flow.synthesise([source], "adders", liberty=library, keep=folder)
        assert report["figures"]["cells_by_type"]["FULL"] == 1  # the only one without a constant and with both outputs
        assert_equivalent(source, folder / "mapped.v", library)


def assert_equivalent(source, netlist, library, top="adders"):
    """Prove with Yosys that a combinational netlist does what its source does."""
    commands = [
        f"read_verilog {source}", f"hierarchy -top {top}", "proc", "flatten", f"rename {top} gold",
        "design -stash gold",
        f"read_liberty {library}", f"read_verilog {netlist}", f"hierarchy -top {top}", "proc", "flatten",
        f"rename {top} gate", "design -stash gate", "design -copy-from gold gold", "design -copy-from gate gate",
        "miter -equiv -flatten -make_outputs gold gate miter", "sat -verify -prove trigger 0 miter",
    ]  # fmt: skip
    code = "import sys; from pyosys import libyosys as y; d = y.Design(); [y.run_pass(c, d) for c in sys.argv[1:]]"
    run = subprocess.run([sys.executable, "-c", code, *commands], capture_output=True, text=True)
    assert run.returncode == 0 and "SUCCESS" in run.stdout, run.stdout[-2000:] + run.stderr


def test_the_role_decides_not_the_name(tmp_path):
    """Without the attribute a module is what its Verilog says; with it, it must look like a row of adders."""
    (tmp_path / "mini.lib").write_text(mini_liberty.text())
    row = "module {}(input [3:0] a, b, c, output [3:0] sum, carry);\n"
    row += "  assign sum = a ^ b ^ c; assign carry = (a & b) | (c & (a | b));\nendmodule\n"
    top = (
        "module top(input [3:0] a, b, c, output [3:0] s, k); {} one(.a(a), .b(b), .c(c), .sum(s), .carry(k)); endmodule"
    )
    for role, name, n_cells in (("", "full_adder_row_4", 0), ('(* role = "full_adder_row" *)\n', "any", 4)):
        (tmp_path / "top.v").write_text(role + row.format(name) + top.format(name))
        report = flow.synthesise([tmp_path / "top.v"], "top", liberty=tmp_path / "mini.lib")
        assert report["figures"]["cells_by_type"].get("FULL", 0) == n_cells
    (tmp_path / "top.v").write_text('(* role = "half_adder_row" *)\n' + row.format("any") + top.format("any"))
    with pytest.raises(ValueError, match="module any is not a row of adders: its ports are a, b, c, sum, carry"):
        flow.synthesise([tmp_path / "top.v"], "top", liberty=tmp_path / "mini.lib")
