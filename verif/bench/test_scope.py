"""A run of the standard testbench scales with the block, and the simulator is the user's choice."""

import shutil

import pytest

from hw.registry import make_block
from verif.bench import harness
from verif.bench.hierarchy import expanded_size

LEAF = "module leaf (\n  input wire [7:0] a\n);\n  wire [15:0] b;\nendmodule"
TOP = "module top (\n  input wire a\n);\n  leaf one (\n  );\n  leaf two (\n  );\nendmodule"


def scope_of(monkeypatch, work, sim=None):
    monkeypatch.setattr(harness, "work_of_beat", lambda block: work)
    return harness.scope(None, sim)


def test_size_counts_every_instance():
    leaf = 4 + 8 + 16
    assert expanded_size({"leaf.v": LEAF + "\n"}, "leaf") == leaf
    assert expanded_size({"all.v": f"{LEAF}\n\n{TOP}\n"}, "top") == 7 + 2 * leaf


def test_beats_become_fewer(monkeypatch):
    monkeypatch.setenv("SIM", "icarus")
    monkeypatch.setattr(shutil, "which", lambda program: program)
    assert scope_of(monkeypatch, 1000) == ("icarus", 900, True)
    assert scope_of(monkeypatch, 500_000) == ("icarus", 500, True)
    assert scope_of(monkeypatch, 1_000_000) == ("icarus", 250, False)
    assert scope_of(monkeypatch, 1_000_000_000) == ("icarus", 27, False)


def test_large_blocks_take_verilator_unless_the_user_says_otherwise(monkeypatch, capsys):
    monkeypatch.delenv("SIM", raising=False)
    monkeypatch.setattr(shutil, "which", lambda program: program)
    assert scope_of(monkeypatch, 1_000_000)[0] == "icarus" and not capsys.readouterr().err
    assert scope_of(monkeypatch, 5_000_000) == ("verilator", 500, True)
    assert "SIM=icarus" in capsys.readouterr().err
    assert scope_of(monkeypatch, 5_000_000, "icarus") == ("icarus", 50, False)
    monkeypatch.setenv("SIM", "icarus")
    assert scope_of(monkeypatch, 5_000_000)[0] == "icarus"


@pytest.mark.parametrize("unit", ["bitonic_sorter", "token_selector"])
def test_a_larger_block_is_more_work(unit):
    assert harness.work_of_beat(make_block(unit, "tiny")) < harness.work_of_beat(make_block(unit, "small"))
