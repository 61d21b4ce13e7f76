"""``python -m golden balance``: finds the multiplier of the golden search, and refuses files that hold no masks."""

import numpy as np
import pytest

from golden import __main__ as command_line
from golden.units.hash_bank_mapper import search_multiplier


def run(capsys, *words):
    code = command_line.main(["balance", *map(str, words)])
    return code, *capsys.readouterr()


@pytest.fixture
def masks(tmp_path):
    masks = np.random.default_rng(1).random((2, 20, 64)) < np.linspace(0.1, 0.9, 64)
    packed = np.packbits(masks, axis=-1, bitorder="little")
    np.savez(tmp_path / "m.npz", plain=masks, packed=packed, real=np.ones((3, 4)))
    return tmp_path / "m.npz", masks


@pytest.mark.parametrize("key, options", [("plain", ()), ("packed", ("--packed",))])
def test_the_best_multiplier_is_printed(capsys, masks, key, options):
    path, masks = masks
    code, output, _ = run(capsys, path, "--key", key, *options, "--banks", 8, "--run-ahead", 2, "--best", 3)
    ranked = search_multiplier(masks, 8, 2)
    rows = [line.split() for line in output.splitlines()[-3:]]
    assert code == 0
    assert [(int(row[0]), int(row[1])) for row in rows] == [(each.multiplier, each.cycles) for each in ranked[:3]]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("nowhere.npy",), ["'nowhere.npy'"]),
        (("m.npz",), ["--key", "plain, packed, real", "None"]),
        (("m.npz", "--key", "mask"), ["--key", "plain, packed, real", "'mask'"]),
        (("m.npz", "--key", "real"), ["integers or booleans", "float64"]),
        (("m.npz", "--key", "plain", "--packed"), ["bytes", "bool"]),
        (("short.npz", "--key", "plain"), ["short.npz", ".npz"]),
        (("text.npy",), ["text.npy", ".npy"]),
        (("m.npz", "--key", "plain", "--banks", "6"), ["--banks", "power of two", "6"]),
        (("m.npz", "--key", "plain", "--run-ahead", "-1"), ["--run-ahead", "-1"]),
        (("m.npz", "--key", "plain", "--best", "0"), ["--best", "0"]),
    ],
)
def test_bad_input(capsys, masks, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.npz").write_bytes(masks[0].read_bytes()[:500])
    (tmp_path / "text.npy").write_text("hello\n")
    code, output, errors = run(capsys, *arguments)
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert all(word in errors for word in words), errors
