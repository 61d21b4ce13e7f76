"""``python -m verif core --program`` and ``python -m golden vectors`` on the emitted Verilog of a very small core."""

import json
import os
import re
import shutil
import subprocess

import pytest

from golden.__main__ import main as golden_main
from hw.emit.package import build_package, write_files
from hw.registry import make_block
from verif.__main__ import main as verif_main
from verif.bench import simulator
from verif.core import program_run
from verif.core.test_program_files import SMALLEST

pytestmark = pytest.mark.core

SIMULATORS = [
    pytest.param("icarus", marks=pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus is not installed")),
    pytest.param("verilator", marks=pytest.mark.skipif(not shutil.which("g++"), reason="Verilator needs g++")),
]


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.json"
    path.write_text(json.dumps(SMALLEST))
    return str(path)


def test_a_program_on_the_verilog(program, capsys):
    assert verif_main(["core", "--program", program]) == 0
    report = capsys.readouterr().out
    assert report.endswith("core: 8 checked, 0 failed\n")
    assert report.startswith("3 commands, 2 beats loaded, 2 beats stored\n")
    assert re.search(r"\| vector +\| .* \| \d+ +\| \d", report) and re.search(r"\| load_beats +\| 2 ", report)


def test_the_first_wrong_word_is_told(program, capsys, monkeypatch):
    """The golden model is made wrong in one word."""
    right = program_run.golden_run

    def wrong(built):
        store, counters = right(built)
        store.values[1, 2] ^= 1
        return store, counters

    monkeypatch.setattr(program_run, "golden_run", wrong)
    assert verif_main(["core", "--program", program, "--load-interval", "3"]) == 1
    report = capsys.readouterr().out
    told = "first wrong word: element 2 of beat 1 of command 2, STORE ROWS: 3c00, and 3c01 is right"
    assert told in report and report.endswith("core: 8 checked, 1 failed\n")


def run_testbench(folder, sim):
    """Build and run the testbench of a folder with the core's files in it; what it prints."""
    files = ["core_testbench.v", *(folder / "rtl" / "files.f").read_text().split()]
    files = [files[0], *(f"rtl/{name}" for name in files[1:])]
    environment = dict(os.environ)
    top = "core_testbench"
    if sim == "icarus":
        builds = [["iverilog", "-g2005", "-s", top, "-o", "run", *files]]
        run = ["vvp", "run"]
    else:
        environment |= simulator.verilator_environment()
        fast_build = ["-CFLAGS", "-O0", "-fno-inline", "-fno-gate", "-fno-dfg", "--output-split", "0"]
        # The compiler's standard and the second line are what this Verilator's makefiles need.
        fast_build += ["-CFLAGS", "-std=c++20", "-MAKEFLAGS", "VM_PARALLEL_BUILDS=0"]
        builds = [["verilator", "--binary", "-Wno-fatal", *fast_build, "--top-module", top, *files]]
        run = [f"obj_dir/V{top}"]
    for command in [*builds, run]:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("sim", SIMULATORS)
def test_vectors_in_a_simulator(program, tmp_path, sim):
    """The right vectors pass; a wrong bit, a missing beat and a refused command are told."""
    folder = tmp_path / "vectors"
    assert golden_main(["vectors", program, "-o", str(folder)]) == 0
    block = make_block("core", assignments=SMALLEST["core"])
    write_files(folder / "rtl", build_package({"core": block}))
    printed = run_testbench(folder, sim)
    assert re.search(r"^PASSED: 2 beats stored in \d+ clocks$", printed, re.MULTILINE)
    again = ["vvp", "run"] if sim == "icarus" else ["obj_dir/Vcore_testbench"]
    for name, old, new, message in (
        ("store.hex", "1c0003c0", "1c0003c1", "FAILED: 1 of 2 stored beats are wrong"),
        ("commands.hex", "02\n", "63\n", "FAILED: command 0 was refused with error 1"),
    ):
        text = (folder / name).read_text()
        assert text.count(old) == 1
        (folder / name).write_text(text.replace(old, new))
        printed = subprocess.run(again, cwd=folder, capture_output=True, text=True, timeout=600).stdout
        assert message in printed
        (folder / name).write_text(text)
