"""A sample of the fuzzer's cases, and what it must see."""

import subprocess
import sys

import pytest

from verif.campaigns.fuzz.cases import make_case
from verif.campaigns.fuzz.run import Outcome, check_outcome


def fuzz(*words):
    return subprocess.run([sys.executable, "-m", "verif.campaigns.fuzz", *words], capture_output=True, text=True)


@pytest.mark.slow
def test_a_sample_is_met_well():
    run = fuzz("--seed", "0", "-n", "100")
    assert run.returncode == 0 and "100 cases" in run.stdout and " 0 failed" in run.stdout, run.stdout + run.stderr


def test_a_case_is_made_from_its_number():
    assert make_case(1, 7) == make_case(1, 7) != make_case(2, 7)


GOOD = "error: n must be odd\n"


@pytest.mark.parametrize(
    "code, errors, after, words",
    [
        (2, GOOD, {}, None),
        (None, "", {}, None),
        (1, "", {}, "exit code 1"),
        (-11, "", {}, "exit code -11"),
        (2, "Traceback (most recent call last):\n", {}, "traceback"),
        (2, "", {}, "0 sentences"),
        (2, GOOD + GOOD, {}, "2 sentences"),
        (2, GOOD, {"out/x.v": "123"}, "files were written"),
        (0, "", {"out/.writing-abc": "folder"}, "staging"),
        ("hang", "", {}, "more than 10 s"),
    ],
)
def test_the_check(tmp_path, code, errors, after, words):
    problem = check_outcome(Outcome(code, "", errors, 1.0), {}, after, tmp_path)
    assert problem is None if words is None else words in problem


def test_the_check_reads_the_manifest(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/manifest.json").write_text('{"files": {"a.v": {"sha256": "0"}}}')
    (tmp_path / "out/a.v").write_text("half")
    assert "a.v is not what the manifest says" in check_outcome(Outcome(0, "", "", 1.0), {}, {}, tmp_path)
