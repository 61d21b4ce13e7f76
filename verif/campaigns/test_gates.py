"""Gates: the netlist of a block does what its RTL does, and a wrong cell is seen by the testbench and by the proof."""

import re

import pytest

from hw.registry import make_block
from verif.bench.harness import run_bench
from verif.campaigns import gates
from verif.synthesis import mini_liberty


@pytest.fixture(scope="module")
def netlist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gates")
    (folder / "mini.lib").write_text(mini_liberty.text())
    return gates.Netlist(make_block("hash_bank_mapper", "tiny"), folder / "mini.lib", "A", folder)


def bench(netlist, verilog):
    return run_bench(netlist.block, count=90, edit=lambda files: {"hash_bank_mapper.v": verilog})


@pytest.mark.slow
def test_the_netlist_is_right(netlist):
    result = bench(netlist, netlist.verilog)
    assert netlist.cells > 20
    assert result.passed, result.messages
    assert gates.is_equivalent(netlist) is True


@pytest.mark.slow
def test_a_wrong_cell_is_seen(netlist):
    wrong, n = re.subn(r"^  XOR2 (?=_g)", "  NAND2 ", netlist.verilog, count=1, flags=re.M)
    assert n
    assert bench(netlist, wrong).failed
    right, netlist.verilog = netlist.verilog, wrong
    assert gates.is_equivalent(netlist) is False
    netlist.verilog = right


def test_without_a_library_it_says_so(capsys):
    assert gates.main([]) == 0
    assert "skipped" in capsys.readouterr().out
