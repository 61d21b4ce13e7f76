"""A data file that the tests cannot use is refused in one sentence, before any test runs."""

import os
import subprocess
import sys

import numpy as np
import pytest

from verif.bench import datasets


@pytest.fixture
def arrays():
    return datasets.read(datasets.DATA / "testfloat_small.npz")


def refusal(monkeypatch, path):
    monkeypatch.setenv("TESTFLOAT", str(path))
    with pytest.raises(datasets.DataError) as refused:
        datasets.testfloat()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_other_rows_and_more_arrays_are_fine(monkeypatch, tmp_path, arrays):
    np.savez(tmp_path / "a.npz", more=1, **{name: array[:7] for name, array in arrays.items()})
    monkeypatch.setenv("TESTFLOAT", str(tmp_path / "a.npz"))
    assert len(datasets.testfloat()["f16_mul"]) == 7


@pytest.mark.parametrize(
    "change, words",
    [
        ({"f16_mul": None}, ["must hold", "has no f16_mul"]),
        ({"f16_mul": np.zeros((5, 3), np.uint16)}, ["f16_mul", "[1000, 4]", "[5, 3]"]),
        ({"f16_mul": np.zeros((5, 4))}, ["f16_mul", "integer", "float64"]),
        ({"f16_mul": np.zeros((0, 4), np.uint16)}, ["f16_mul", "[0, 4]"]),
        ({"f16_mul": np.array([["a"]], object)}, ["plain arrays"]),
    ],
)
def test_wrong_arrays(monkeypatch, tmp_path, arrays, change, words):
    changed = {name: array for name, array in (arrays | change).items() if array is not None}
    np.savez(tmp_path / "a.npz", **changed)
    message = refusal(monkeypatch, tmp_path / "a.npz")
    assert all(word in message for word in [*words, "a.npz"]), message


def test_broken_files(monkeypatch, tmp_path):
    content = (datasets.DATA / "testfloat_small.npz").read_bytes()
    middle = len(content) // 2
    for name, text in {
        "text.npz": b"hello\n",
        "empty.npz": b"",
        "short.npz": content[:middle],
        "damaged.npz": content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :],
    }.items():
        (tmp_path / name).write_bytes(text)
        assert name in refusal(monkeypatch, tmp_path / name)
    assert "existing file" in refusal(monkeypatch, tmp_path / "missing.npz")


@pytest.mark.parametrize(
    "variable, value, words",
    [
        ("WORKLOAD", "nowhere.npz", ["WORKLOAD", "'nowhere.npz'"]),
        ("TESTFLOAT", __file__, [__file__, "npz"]),
        ("SEED", "one", ["SEED", "'one'"]),
        ("SIM", "modelsim", ["'modelsim'", "icarus, verilator"]),
    ],
)
def test_no_test_runs(variable, value, words):
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", __file__],
        capture_output=True,
        text=True,
        env={**os.environ, variable: value},
    )
    lines = [line for line in (run.stdout + run.stderr).splitlines() if line]
    assert run.returncode == 4 and len(lines) == 1, lines
    assert all(word in lines[0] for word in words), lines
