"""The formal checks find hand-made bugs in the emitted Verilog, wrong claims, and situations never reached."""

import dataclasses

import pytest

from hw.arith.trees import MaximumTree, SumTree
from hw.emit.emission import Emission
from hw.lib.stream import RegisterSlice
from hw.registry import BLOCKS, make_block
from verif.campaigns import fault_injection as bugs
from verif.formal import __main__ as command
from verif.formal import registry, solver, table
from verif.formal.properties import Property
from verif.formal.run import Result, run
from verif.formal.streams import moves, stable


def _marked(bug):
    return pytest.param(bug, id=bug.name, marks=[pytest.mark.core] if bug.unit == "core" else [])


@pytest.mark.slow
@pytest.mark.parametrize("bug", [_marked(bug) for bug in bugs.BUGS if not bug.for_bench])
def test_finds(bug, tmp_path):
    result = bugs.by_formal(bug, tmp_path)
    assert result.holds is False and result.verdict.startswith("fails"), result


@pytest.mark.slow
@pytest.mark.parametrize("bug", [bug for bug in bugs.BUGS if bug.for_bench], ids=lambda bug: bug.name)
def test_the_testbench_finds(bug):
    """With one of a few seeds, as every unit is tested at several sizes: a reset must come at the right moment."""
    assert any(failed for failed, _ in (bugs.by_testbench(bug, seed) for seed in range(1, 6)))


@pytest.mark.slow
def test_every_part_of_the_tiny_blocks_is_proved_at_its_size():
    proved = {}
    for prop in registry.properties(("building_blocks",)):
        proved.setdefault(prop.block, set()).update(prop.block(**size).key for size in prop.sizes)
    del proved[SumTree], proved[MaximumTree]  # trees over wide numbers are more than the solver does
    parts = {}
    for unit in BLOCKS:
        if unit not in ("core", "accelerator"):
            emission = Emission()
            emission.add_top(make_block(unit, "tiny"))
            parts |= emission.modules_of(proved)
    missing = [name for name, key in parts.items() if key not in proved[key[0]]]
    assert not missing, f"parts of blocks whose sizes building_blocks lack: {', '.join(missing)}"


@pytest.mark.slow
def test_a_bug_is_noticed_by_the_testbench_too():
    bug = next(bug for bug in bugs.BUGS if bug.name == "valid is held a clock too long")
    failed, checked = bugs.by_testbench(bug, count=100)
    assert failed and checked
    assert bugs.by_testbench(dataclasses.replace(bug, replacement=r"sorted__valid <= \1;"), count=100)[0] == 0


def test_a_bug_that_changes_nothing_is_refused(tmp_path):
    bug = dataclasses.replace(bugs.BUGS[0], pattern="no such thing")
    with pytest.raises(ValueError, match="nothing in the Verilog looks like no such thing"):
        bugs.by_formal(bug, tmp_path)


def _slice_property(check, **options):
    return Property("stream_helpers", "a statement", RegisterSlice, [{"width": 2}], check, **options)


def test_a_wrong_claim_fails_and_names_the_claim_and_the_clock(tmp_path):
    def check(c, block):
        c.claim("the sink is never valid", ~block.sink.valid)

    result = run(_slice_property(check), tmp_path)
    assert result.holds is False and result.verdict.startswith("fails in clock 2: the sink is never valid")
    assert list(tmp_path.glob("*/failing.vcd*"))


def test_a_property_about_nothing_fails(tmp_path):
    def check(c, block):
        c.assume(~block.source.valid)
        stable(c, sink=block.sink)

    result = run(_slice_property(check, depth=10), tmp_path)
    assert result.holds is False and result.verdict.startswith("not reached within 10 clocks: sink is stalled")


def test_what_no_engine_decides_is_no_success(tmp_path, monkeypatch):
    def check(c, block):
        c.claim("anything", moves(block.source) | ~moves(block.source) | block.sink.valid)

    monkeypatch.setattr(solver, "_run", lambda *arguments: solver.Answer(None, 0, ""))
    result = run(_slice_property(check), tmp_path)
    assert result.holds is None and result.verdict.startswith("unknown after")


def test_bounded_results_are_called_bounded(tmp_path):
    def check(c, block):
        stable(c, sink=block.sink)

    result = run(_slice_property(check, engine="bmc", depth=8), tmp_path)
    assert result.holds is True and result.verdict == "bounded: holds for 8 clocks" and result.depth == 8


def test_table_says_how_many_hold():
    prop = _slice_property(None)
    text = table.document([(prop, Result(True, "proved", 4, 1.2)), (prop, Result(None, "unknown after 600 s", 9, 600))])
    assert "1 of 2 properties hold" in text and "unknown after 600 s" in text


def test_sizes_are_told_in_few_words():
    assert table.sizes_text([{}]) == "-"
    assert table.sizes_text([{"width": width, "signed": True} for width in range(1, 65)]) == (
        "width=1 to 64; signed=true (64 sizes)"
    )
    assert table.sizes_text([{"n": 2}, {"n": 4, "k": None}]) == "n=2, 4; k=none in some (2 sizes)"


def test_command_line(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["formal", "stream", "--list"])
    with pytest.raises(SystemExit, match="2"):
        command.main()
    assert "no properties of unit 'stream'" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["formal", "--quick", "--table", "x.md"])
    with pytest.raises(SystemExit, match="2"):
        command.main()
    without = {prop.unit for prop in registry.properties()} - {prop.unit for prop in registry.properties(quick=True)}
    for unit in without:
        monkeypatch.setattr("sys.argv", ["formal", "--quick", unit, "-o", str(tmp_path / "none")])
        assert command.main() == 0
        assert capsys.readouterr().out == f"formal: no property of {unit} is in the quick tier: leave out --quick\n"
    assert without and not (tmp_path / "none").exists()
    monkeypatch.setattr("sys.argv", ["formal", "--list", "memory", "-o", str(tmp_path)])
    assert command.main() == 0
    assert capsys.readouterr().out.count("memory: ") == len(registry.properties(("memory",)))
