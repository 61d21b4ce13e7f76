"""``python -m verif UNIT --waves`` keeps waveforms, with either simulator."""

import shutil
from pathlib import Path

import pytest

from hw.registry import make_block
from verif.bench.harness import run_bench

SIMULATORS = [
    pytest.param("icarus", "dump.fst", marks=pytest.mark.skipif(not shutil.which("iverilog"), reason="no Icarus here")),
    pytest.param("verilator", "dump.vcd", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("sim, name", SIMULATORS)
def test_waveforms_are_written(tmp_path, sim, name):
    block = make_block("bitonic_sorter", None, {"n": 2, "key_width": 2, "payload_width": 1})
    assert run_bench(block, sim=sim, count=9, waves=True, keep=tmp_path).passed
    assert Path(tmp_path, name).stat().st_size > 100
