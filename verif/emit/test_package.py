"""The Verilog package: its files, its manifest, and that it is the same bytes on every run."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

from hw import emit
from hw.emit.package import COMMON_FILE, MACRO_FILE, build_package, write_files
from hw.registry import IN_ALL, make_block
from hw.units.bitonic_sorter.unit import BitonicSorter


def modules_of(files):
    """Every module definition, file by file, in order."""
    return [
        name for file, text in files.items() if file.endswith(".v") for name in re.findall(r"^module (\S+)", text, re.M)
    ]


def header_ports(text, top):
    header = re.search(rf"^module {top} \((.*?)^\);", text, re.M | re.S)[1]
    ports = []
    for line in header.strip().splitlines():
        direction, high, name = re.fullmatch(r" *(input|output) +(?:wire|reg) *(?:\[(\d+):0\] )?(\w+),?", line).groups()
        ports.append({"name": name, "direction": direction, "width": int(high or 0) + 1})
    return ports


@pytest.fixture(scope="module")
def tiny():
    return build_package({unit: make_block(unit, "tiny") for unit in IN_ALL})


def test_manifest_describes_the_files(tiny):
    manifest = json.loads(tiny["manifest.json"])
    listed = tiny["files.f"].split()
    assert sorted(listed) == sorted(manifest["files"]) == sorted(name for name in tiny if name.endswith(".v"))
    for name, entry in manifest["files"].items():
        assert hashlib.sha256(tiny[name].encode()).hexdigest() == entry["sha256"]
    assert [entry["top"] for entry in manifest["blocks"]] == list(IN_ALL)
    for entry in manifest["blocks"]:
        assert header_ports(tiny[entry["file"]], entry["top"]) == entry["ports"]
        assert entry["latency"] >= 0 and entry["interval"] >= 1


def test_every_module_is_defined_once_and_shared_ones_are_in_the_common_file(tiny):
    names = modules_of(tiny)
    assert len(names) == len(set(names))
    bodies = [
        re.sub(r"^module \S+", "", text, flags=re.M)
        for file in tiny.values()
        for text in re.findall(r"^module .*?^endmodule", file, re.M | re.S)
    ]
    assert len(bodies) == len(set(bodies)), "two modules differ in name only"
    assert COMMON_FILE in tiny


@pytest.mark.slow
def test_macro_memories_are_black_boxes_and_listed():
    blocks = {"vector_unit": make_block("vector_unit", "tiny")}
    files = build_package(blocks, memory="macro")
    manifest = json.loads(files["manifest.json"])
    names = re.findall(r"^\(\* blackbox \*\)\nmodule (\S+)", files[MACRO_FILE], re.M)
    assert names and sorted(names) == sorted(manifest["macros"])
    assert MACRO_FILE not in build_package(blocks)


class PairOfSorters(wiring.Component):
    """A user's own design around two equal blocks."""

    def __init__(self):
        member = BitonicSorter(n=4).signature.members
        super().__init__({f"{name}_{side}": member[name] for side in "ab" for name in ("unsorted", "sorted")})

    def elaborate(self, platform):
        m = Module()
        for side in "ab":
            sorter = BitonicSorter(n=4)
            m.submodules[f"sorter_{side}"] = sorter
            for name in ("unsorted", "sorted"):
                inner, outer = getattr(sorter, name), getattr(self, f"{name}_{side}")
                wiring.connect(m, inner, wiring.flipped(outer))
        return m


def test_a_users_design_gets_each_block_once():
    files = build_package({"pair": PairOfSorters()})
    assert modules_of(files).count(BitonicSorter(n=4).module_name) == 1
    assert len(re.findall(rf"^  {BitonicSorter(n=4).module_name} sorter_[ab] \(", files["pair.v"], re.M)) == 2


def test_nothing_half_written(tmp_path):
    target = tmp_path / "new" / "folder"
    with pytest.raises(OSError):
        write_files(target, {"good.v": "module a;\nendmodule\n", "bad/name.v": "x"})
    assert not (tmp_path / "new").exists()


def test_a_package_replaces_the_one_that_was_there(tmp_path):
    (tmp_path / "mine.v").write_text("module mine;\nendmodule\n")
    two = {name: make_block(name, "tiny") for name in ("dot_product_unit", "bitonic_sorter")}
    for blocks in (two, {"sorter": two["bitonic_sorter"]}):
        files = build_package(blocks)
        write_files(tmp_path, files)
        assert {path.name for path in tmp_path.iterdir()} == {*files, "mine.v"}
    (tmp_path / "manifest.json").write_text("[")
    write_files(tmp_path, build_package({"other": two["bitonic_sorter"]}))
    assert (tmp_path / "sorter.v").exists()


ORDER = """
    contract header reserved yosys netlist rtlil_text operators dataflow naming verilog emission package equivalence
""".split()


def test_emission_is_one_way():
    """No module of hw.emit imports one that comes after it; the package does not even see the components' classes."""
    folder = Path(emit.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} == {*ORDER, "__init__"}
    for place, name in enumerate(ORDER):
        imported = re.findall(r"^from hw\.emit\.(\w+) import", (folder / f"{name}.py").read_text(), re.M)
        assert set(imported) <= set(ORDER[:place]), name
    assert "hw.lib" not in (folder / "package.py").read_text() + (folder / "header.py").read_text()
