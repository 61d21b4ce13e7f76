"""The function units' emitted Verilog equals the golden model on every word of both 16-bit formats."""

import os

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.arith import functions
from golden.spec.formats import FORMATS
from hw.arith.exponential import Exponential
from hw.arith.gelu import Gelu
from hw.arith.reciprocal import Reciprocal
from hw.arith.reciprocal_root import ReciprocalRoot
from hw.arith.silu import Silu
from hw.emit.package import build_package
from verif.bench.lockstep import run_lockstep
from verif.campaigns import lint

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("SEED", "1"))
UNITS = {
    Exponential: functions.exponential,
    Reciprocal: functions.reciprocal,
    ReciprocalRoot: functions.reciprocal_root,
    Gelu: functions.gelu,
    Silu: functions.silu,
}


class SideBySide(wiring.Component):
    """Equal function units under one enable: a clock of a simulation costs most outside the design."""

    base_name = "side_by_side"

    def __init__(self, unit, count):
        self.latency, self.key = unit.latency, (self.base_name, count, unit.key)
        self._units = [type(unit)(**unit.parameters.to_dict()) for _ in range(count)]
        super().__init__({"advance": In(1), "x": In(16 * count), "y": Out(16 * count)})

    def elaborate(self, platform):
        m = Module()
        for number, unit in enumerate(self._units):
            m.submodules[f"unit_{number}"] = unit
            m.d.comb += [unit.advance.eq(self.advance), unit.x.eq(self.x.word_select(number, 16))]
            m.d.comb += self.y.word_select(number, 16).eq(unit.y)
        return m


@pytest.mark.parametrize("format", ["fp16", pytest.param("bf16", marks=pytest.mark.slow)])
@pytest.mark.parametrize("cls", UNITS, ids=lambda cls: cls.__name__)
def test_every_word(cls, format):
    count = 8
    words = np.arange(1 << 16, dtype="<u2")
    rows = [int.from_bytes(row.tobytes(), "little") for row in words.reshape(-1, count)]
    print(f"seed {SEED}")
    block = SideBySide(cls(format=format), count)
    found = run_lockstep(block, {"x": rows}, ["y"], stalls=0.03, holds=True, seed=SEED)["y"]
    assert None not in found, "a result has an X"
    found = np.frombuffer(b"".join(row.to_bytes(2 * count, "little") for row in found), "<u2")
    expected = UNITS[cls](words.astype(int), FORMATS[format])
    assert len(found) == len(expected)
    wrong = np.flatnonzero(found != expected)
    assert not len(wrong), f"{len(wrong)} words differ, the first is {wrong[0]:#06x}"


@pytest.mark.parametrize("format", ["fp16", "bf16"])
@pytest.mark.parametrize("cls", UNITS, ids=lambda cls: cls.__name__)
def test_lint(cls, format):
    block = cls(format=format)
    report = lint.lint(build_package({block.base_name: block}), [block.base_name])
    assert {tool: found for tool, found in report.items() if found} == {}


@pytest.mark.parametrize("cls", UNITS, ids=lambda cls: cls.__name__)
def test_unknown_format_is_refused(cls):
    with pytest.raises(ValueError, match="format must be one of fp16, bf16, not 'fp32'"):
        cls(format="fp32")
