"""The tidied Verilog computes what Yosys wrote: proved by Yosys, module by module."""

import subprocess
import sys

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.emit import emission as emit
from hw.registry import make_block
from verif.campaigns import lint

CASES = [
    ("bitonic_sorter", {"n": 4, "key_width": 3, "payload_width": 2, "stable": True}),
    ("hash_bank_mapper", {"n_columns": 40, "n_banks": 4, "multiplier": "runtime"}),
    ("token_selector", {"width": 5, "height": 3, "channels": 1, "patch": 2, "n_values": 2}),
    pytest.param("dot_product_unit", {"n_lanes": 2}, marks=pytest.mark.slow),
    pytest.param("vector_unit", {"n_engines": 2, "n_lanes": 1, "bank_depth": 4}, marks=pytest.mark.slow),
]

PROOF = """
read_verilog {raw}; proc; {hide}; design -stash raw
read_verilog {tidy}; proc; {hide}; design -stash tidy
"""

COMPARE = """
design -reset
design -copy-from raw -as gold {name}
design -copy-from tidy -as gate {name}
equiv_make gold gate equiv
hierarchy -top equiv
equiv_struct
equiv_simple
equiv_status -assert
"""


@pytest.mark.parametrize("unit, parameters", CASES)
def test_tidying_preserves_the_logic(unit, parameters, tmp_path, monkeypatch):
    emission = emit.Emission()
    emission.add_top(make_block(unit, None, parameters), unit)
    tidied = emission.verilog()
    monkeypatch.setattr(emit, "tidy", lambda module, black_box: module + "\n")
    raw = emission.verilog()
    assert raw.keys() == tidied.keys() and any(raw[name] != tidied[name] for name in raw)
    (tmp_path / "raw.v").write_text("\n".join(raw.values()))
    (tmp_path / "tidy.v").write_text("\n".join(tidied.values()))
    lines = PROOF.format(raw=tmp_path / "raw.v", tidy=tmp_path / "tidy.v", hide="memory_collect")
    lines += "".join(COMPARE.format(name=name) for name in tidied)
    script = ";".join(line for line in lines.strip().splitlines() if line)
    run = subprocess.run([sys.executable, "-c", emit.YOSYS_RUNNER, script], capture_output=True, text=True)
    assert run.returncode == 0, (run.stdout + run.stderr)[-1500:]
    assert run.stdout.count("Equivalence successfully proven!") == len(tidied)


class Countdown(wiring.Component):
    """Yosys makes a register of its own of the bit that the start sets, and gives it the name of a vector's bit."""

    start: In(1)
    count_reg_2: In(1)
    count: Out(4)

    def elaborate(self, platform):
        m = Module()
        left = Signal(4)
        m.d.comb += self.count.eq(left)
        with m.If(self.start):
            m.d.sync += left.eq(4)
        with m.Elif((left != 0) & self.count_reg_2):
            m.d.sync += left.eq(left - 1)
        return m


def test_names_of_single_bits_are_plain(monkeypatch):
    emission = emit.Emission()
    emission.add_top(Countdown(), "countdown")
    text = "\n".join(emission.verilog().values())
    assert "count_reg_2_" in text and "\\" not in text
    assert not any(lint.lint({"countdown.v": text}, ["countdown"]).values())
    monkeypatch.setattr(emit, "tidy", lambda module, black_box: module + "\n")
    assert "\\count_reg[2] " in "\n".join(emission.verilog().values())
