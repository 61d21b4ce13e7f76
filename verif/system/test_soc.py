"""The system with a RISC-V: its workload is what the golden model does, and what is missing is said in one sentence."""

import shutil

import numpy as np
import pytest

from golden.core.core import Core
from golden.spec.accelerator.parameters import AcceleratorSizes
from hw.lib.errors import UsageError
from hw.presets import CORES
from verif.bench import datasets
from verif.core.demo.program import head_of
from verif.system.soc import __main__ as soc
from verif.system.soc.workload import DESCRIPTORS, head_program, make_workload


def test_what_is_expected_is_what_the_core_stores():
    sizes = AcceleratorSizes(**CORES["tiny"])
    program = head_program(sizes, head_of(datasets.workload(), 0, 1))
    workload = make_workload(program, sizes)
    run = Core(sizes).execute(program.commands, program.load_beats)
    assert len(workload.ranges) == len(program.stored)
    for (_, expected, count), stored in zip(workload.ranges, program.stored, strict=True):
        words = stored.of(run)
        found = workload.data[expected - DESCRIPTORS : expected - DESCRIPTORS + count].view(np.uint16)
        assert words.any() and np.array_equal(found, words.ravel())


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--latency", "-1"], "--latency must be from 0 to 65535, not -1"),
        (["--config", "huge"], "unknown config 'huge'"),
    ],
)
def test_wrong_arguments(arguments, message, monkeypatch, tmp_path):
    monkeypatch.setattr(soc, "_cpu", lambda: tmp_path)
    monkeypatch.setattr(shutil, "which", lambda *arguments, **options: "found")
    with pytest.raises(UsageError, match=message):
        soc.main([*arguments, "-o", str(tmp_path / "soc")])
    assert not (tmp_path / "soc").exists()


def test_a_missing_compiler_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(soc, "_cpu", lambda: tmp_path)
    monkeypatch.setattr(shutil, "which", lambda *arguments, **options: None)
    with pytest.raises(UsageError, match="apt install gcc-riscv64-unknown-elf"):
        soc.main(["-o", str(tmp_path / "soc")])
