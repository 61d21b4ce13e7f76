"""The memory wrapper: its model on the emitted Verilog, and its black box."""

import re
import time

import pytest

from hw.emit.emission import Emission
from hw.emit.package import MACRO_FILE, build_package
from hw.lib.memory import MemoryBank
from verif.bench.harness import run_job

POINTS = [
    {"depth": 1, "width": 1, "read_during_write": "old"},
    {"depth": 5, "width": 9, "read_during_write": "old"},
    {"depth": 8, "width": 16, "read_during_write": "new"},
    {"depth": 3, "width": 40, "read_during_write": "new"},
    {"depth": 6, "width": 8, "read_during_write": "undefined"},
    {"depth": 1, "width": 3, "ports": "single"},
    {"depth": 7, "width": 12, "ports": "single"},
    {"depth": 3, "width": 12, "read_during_write": "new", "granularity": 4},
    {"depth": 4, "width": 6, "read_during_write": "old", "granularity": 1},
    {"depth": 6, "width": 5, "granularity": 5},
    {"depth": 2, "width": 32, "ports": "single", "granularity": 16},
]


def _name(parameters):
    return MemoryBank(**parameters).module_name


@pytest.mark.parametrize("parameters", POINTS, ids=_name)
def test_model(parameters):
    block = MemoryBank(**parameters)
    counts = run_job(block, "verif.lib.memory_access:access", {**block.parameters.to_dict(), "seed": 1, "clocks": 600})
    assert counts["checked"] > 200 and counts["failed"] == 0
    if block.ports == "read_write":
        assert counts["held"]
        assert (counts["collisions"] > 0) == (block.read_during_write != "undefined")
        assert (counts["partial"] > 0) == (block.parameters.n_enables > 1)


def test_model_is_one_array_that_tools_infer():
    text = build_package({"memory_bank": MemoryBank(depth=12, width=7, read_during_write="new")})["memory_bank.v"]
    assert re.search(r"reg \[6:0\] words \[11:0\];", text)
    assert "initial" not in text


def test_emission_takes_no_longer_for_a_deep_memory():
    start = time.process_time()
    text = build_package({"memory_bank": MemoryBank(depth=1 << 22, width=64)})["memory_bank.v"]
    assert re.search(r"reg \[63:0\] words \[4194303:0\];", text)
    assert time.process_time() - start < 10  # Amaranth alone takes minutes to write its zeros


def test_macro_has_the_ports_of_the_model_and_is_listed():
    block = MemoryBank(depth=12, width=7, read_during_write="old")
    texts = {}
    for body in ("model", "macro"):
        emission = Emission(body)
        emission.add_top(block)
        texts[body] = emission.verilog()[block.module_name]
    headers = [re.search(r"module .*?\);", text, re.S)[0].replace(" reg ", " wire ") for text in texts.values()]
    assert len({" ".join(header.split()) for header in headers}) == 1
    assert "always" not in texts["macro"] and "words" not in texts["macro"]
    assert emission.modules["memory_1r1w_12x7_old"].macro == block.describe()
    assert block.describe()["bits"] == 84 and block.describe()["read_during_write"] == "old"
    assert MACRO_FILE in build_package({"memory_bank": block}, "macro")


def test_a_word_of_parts_is_still_one_array():
    block = MemoryBank(depth=12, width=64, granularity=16)
    assert block.module_name == "memory_1r1w_12x64_by_16_undefined"
    text = build_package({"memory_bank": block})["memory_bank.v"]
    assert re.search(r"reg \[63:0\] words \[11:0\];", text)
    assert re.search(r"input +wire \[3:0\] write_enable,", text)
    assert block.describe()["granularity"] == 16


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"depth": 0}, "depth must be .* not 0"),
        ({"ports": "dual"}, "ports must be one of single, read_write, not 'dual'"),
        ({"width": 12, "granularity": 8}, "granularity must be a divisor of width=12, not 8"),
        ({"ports": "single", "read_during_write": "old"}, "read_during_write must be undefined for a single port"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        MemoryBank(**parameters)
