"""Several packages in one design: equal modules are read once, others have other names, and a user's top works."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hw.emit.package import build_package
from hw.lib.memory import MemoryBank
from hw.registry import BLOCKS, make_block
from verif.campaigns import lint

HERE = Path(__file__).parent
TOP, BENCH = HERE / "user_top.v", HERE / "user_bench.v"


def modules(files):
    """``{module: its entry in the manifest}``."""
    return json.loads(files["manifest.json"])["modules"]


@pytest.fixture(scope="module")
def packages():
    return [
        build_package({name: make_block(unit, None, parameters)})
        for name, unit, parameters in [
            ("dot_fp16", "dot_product_unit", {"n_lanes": 2}),
            ("dot_int8", "dot_product_unit", {"n_lanes": 2, "format": "int8"}),
            ("softmax_unit", "softmax_unit", {"n_banks": 2, "n_slots": 2}),
        ]
    ]


@pytest.fixture(scope="module")
def sources(packages, tmp_path_factory):
    """The files of all packages, each in its own folder, in the order in which a user would list them."""
    paths = []
    for number, files in enumerate(packages):
        folder = tmp_path_factory.mktemp(f"package_{number}")
        for name in files["files.f"].split():
            (folder / name).write_text(files[name])
            paths.append(folder / name)
    return paths


def test_the_packages_have_modules_in_common(packages):
    names = [set(modules(files)) for files in packages]
    assert names[0] & names[1] and names[0] & names[2]


def one_unit(paths, top):
    """slang takes each file for a unit of its own unless it is told otherwise."""
    return lint.slang(paths, top, "--single-unit")


@pytest.mark.parametrize("tool", [lint.verilator, lint.yosys, lint.icarus, one_unit])
@pytest.mark.parametrize("order", [1, -1])
def test_a_top_around_three_packages_is_clean(sources, tool, order):
    found = tool([*sources[::order], TOP], "user_top")
    if found is None:
        pytest.skip("not installed")
    assert found == []


@pytest.mark.skipif(not shutil.which("iverilog"), reason="needs Icarus Verilog")
def test_a_top_around_three_packages_computes(sources, tmp_path):
    program = tmp_path / "bench.vvp"
    subprocess.run(["iverilog", "-g2005", "-s", "bench", "-o", program, *sources, TOP, BENCH], check=True)
    run = subprocess.run(["vvp", "-n", program], capture_output=True, text=True, check=True)
    # 1.5 * 2 + 0.5 * 4 = 5 in FP32; -3 * 5 + 100 * 7 = 685; two equal scores have half of the row each.
    assert sorted(line for line in run.stdout.splitlines() if "finish" not in line) == [
        "fp16 40a00000",
        "int8 685",
        "row 38003800",
    ]


def test_another_text_of_a_module_is_not_taken_for_it(packages, sources, tmp_path):
    """The same module out of a package that differs: a tool refuses the design and does not choose one of the two."""
    path = next(path for path in sources if path.name == "dot_int8.v")
    shared = next(iter(set(modules(packages[0])) & set(modules(packages[1]))))
    other = tmp_path / "dot_int8.v"
    lines = path.read_text().replace(f"`ifndef {shared}_", f"`ifndef {shared}_other_")
    other.write_text(lines)
    (found,) = lint.yosys([*(other if each == path else each for each in sources), TOP], "user_top")
    assert "ERROR" in found and shared in found


# The large ones at one preset only; what a core has is theirs.
CONFIGURATIONS = [
    *((unit, "tiny", {}) for unit in BLOCKS if unit not in ("core", "accelerator")),
    *(
        (unit, "small", {})
        for unit in BLOCKS
        if unit not in ("vector_unit", "mixed_precision_core", "core", "accelerator")
    ),
    ("dot_product_unit", None, {"n_lanes": 3, "format": "bf16"}),
    ("dot_product_unit", None, {"n_lanes": 4, "align_width": 40}),
    ("dot_product_unit", None, {"n_lanes": 5, "format": "int8"}),
    ("bitonic_sorter", None, {"n": 8, "signed": True}),
    ("bitonic_sorter", None, {"n": 8, "stable": True}),
    ("bitonic_sorter", None, {"n": 8, "key_width": 9, "payload_width": 0}),
    ("hash_bank_mapper", None, {"n_columns": 40, "n_banks": 4, "multiplier": "runtime"}),
    ("hash_bank_mapper", None, {"n_columns": 40, "n_banks": 4, "direction": "forward"}),
    ("token_selector", None, {"reference": "last", "bounds": 2}),
    ("token_selector", None, {"reference": "last"}),
    ("softmax_unit", None, {"n_banks": 2, "n_slots": 40}),
    ("layer_norm_unit", None, {"n_lanes": 2, "n_slots": 40}),
]


@pytest.mark.slow
def test_equal_names_have_equal_text():
    """Names are functions of class and parameters: whatever is emitted with them, the text is the same."""
    texts, seen = {}, 0
    for number, (unit, config, parameters) in enumerate(CONFIGURATIONS):
        top = f"top_{number}"
        for name, entry in modules(build_package({top: make_block(unit, config, parameters)})).items():
            if name == top:
                continue
            seen += name in texts
            assert texts.setdefault(name, entry["sha256"]) == entry["sha256"], f"{name} of {unit} {config} {parameters}"
    assert len(texts) > 100 and seen > 50


def test_names_of_modules_tell_all_parameters():
    names = {MemoryBank(depth=depth, width=8).module_name for depth in (4, 5)}
    names |= {make_block("bitonic_sorter", None, {"n": 4, flag: True}).module_name for flag in ("signed", "stable")}
    names |= {make_block("dot_product_unit", None, {"n_lanes": 4, **more}).module_name
              for more in ({"max_terms": 64}, {"align_width": 40}, {})}  # fmt: skip
    assert len(names) == 7


def test_a_prefix_stands_before_every_module_and_shared_file():
    blocks = {name: make_block(name, "tiny") for name in ("bitonic_sorter", "hash_bank_mapper")}
    files = build_package({f"left_{name}": block for name, block in blocks.items()}, prefix="left_")
    text = "".join(text for name, text in files.items() if name.endswith(".v"))
    assert all(name.startswith("left_") for name in re.findall(r"^module (\w+)", text, re.M))
    assert all(name.startswith("left_") for name in files["files.f"].split())


def test_a_prefix_of_memories_is_that_of_their_macros():
    files = build_package({"bank": make_block("vector_unit", "tiny")}, "macro", prefix="my_")
    (macro,) = json.loads(files["manifest.json"])["macros"].values()
    assert macro["module"].startswith("my_memory_") and f"module {macro['module']} (" in files["my_macros.v"]
