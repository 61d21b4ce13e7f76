"""The function units' emitted Verilog equals the golden model on every word of both 16-bit formats."""

import os

import numpy as np
import pytest

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


@pytest.mark.parametrize("format", ["fp16", pytest.param("bf16", marks=pytest.mark.slow)])
@pytest.mark.parametrize("cls", UNITS, ids=lambda cls: cls.__name__)
def test_every_word(cls, format):
    block = cls(format=format)
    words = (0, 1 << 16)
    print(f"seed {SEED}")
    found = run_lockstep(block, {"x": range(*words)}, ["y"], stalls=0.03, holds=True, seed=SEED)["y"]
    expected = UNITS[cls](np.arange(*words), FORMATS[format])
    assert len(found) == len(expected)
    wrong = np.flatnonzero(np.array(found) != expected)
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
