"""The plain script, Yosys' synth and ABC once more: what must survive Yosys' own mapping, and the period then."""

import os
from pathlib import Path

import pytest

from hw.arith.prefix_adder import PrefixAdder
from hw.emit.package import build_package, write_files
from hw.registry import make_block
from hw.synthesis import flow as synth
from hw.synthesis import timing
from verif.synthesis import mini_liberty

REFERENCE = Path(os.environ.get("LIBERTY") or Path(__file__).parents[3] / "shared" / "lib" / "nangate45_typ.lib.gz")
WIDTH = 45
LIMIT_PS = 1250


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "mini.lib"
    path.write_text(mini_liberty.text())
    return path


def adder(folder, without=""):
    """The file of an adder, without some text."""
    verilog = build_package({"top": PrefixAdder(width=WIDTH)})["top.v"]
    write_files(folder, {"top.v": verilog.replace(without, "")})
    return [folder / "top.v"]


@pytest.mark.parametrize(
    "recipe, command", [("plain", "synth -flatten -top top"), ("plain-noabc", "synth -flatten -noabc -top top")]
)
def test_the_user_script_is_what_is_run(tmp_path, library, recipe, command):
    report = synth.synthesise(adder(tmp_path), "top", liberty=library, recipe=recipe)
    commands = [line for line in report["recipe"]["commands"] if not line.startswith("#")]
    assert command in commands
    assert not any(line.startswith(("techmap", "flatten", "clockgate")) for line in commands)


def test_a_tree_of_kept_nets_is_no_chain_after_the_first_mapping(tmp_path, library):
    """Without the attribute it becomes one: then the test measures nothing, or Yosys has learnt to spare it."""
    delays = {}
    for name, without in (("kept", ""), ("not kept", "(* keep *) ")):
        report = synth.synthesise(adder(tmp_path / name, without), "top", liberty=library, recipe="plain")
        delays[name] = report["delay"]["worst_path_ps"]
    assert delays["kept"] < 0.7 * delays["not kept"]


def test_other_recipes_add_with_an_addition(tmp_path, library):
    """The module below a top: the rule makes what ``a + b`` in its place makes."""
    areas = {}
    for name, body in (("module", "adder of(.a(a), .b(b), .sum(sum));"), ("plus", "assign sum = a + b;")):
        verilog = build_package({"adder": PrefixAdder(width=WIDTH)})["adder.v"] if name == "module" else ""
        ports = f"input [{WIDTH - 1}:0] a, b, output [{WIDTH - 1}:0] sum"
        write_files(tmp_path / name, {"top.v": f"{verilog}\nmodule top({ports});\n  {body}\nendmodule\n"})
        report = synth.synthesise([tmp_path / name / "top.v"], "top", liberty=library, recipe="A")
        areas[name] = report["figures"]["area_um2"]
    assert areas["module"] == areas["plus"]


@pytest.mark.parametrize("flatten", ["auto", "hierarchy"])
def test_plain_flattens_all(tmp_path, library, flatten):
    with pytest.raises(
        ValueError, match=f"flatten must be flat with recipe plain, whose synth flattens, not '{flatten}'"
    ):
        synth.synthesise(adder(tmp_path), "top", liberty=library, recipe="plain", flatten=flatten)


@pytest.mark.core  # a minute, and the cause is tested above on the adder alone
@pytest.mark.slow
@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference library is not here (set LIBERTY)")
@pytest.mark.skipif(timing.opensta_version() is None, reason="wire load needs OpenSTA")
@pytest.mark.parametrize("recipe", ["plain", "plain-noabc"])
def test_the_dot_product_meets_its_period(tmp_path, recipe):
    """All paths, with the library's wire load."""
    files = build_package({"dot_product_unit": make_block("dot_product_unit", "edge")})
    write_files(tmp_path, files)
    paths = [tmp_path / name for name in files if name.endswith(".v")]
    report = synth.synthesise(paths, "dot_product_unit", liberty=REFERENCE, recipe=recipe)
    assert report["delay"]["worst_path_wire_load_ps"] <= LIMIT_PS
