"""``python -m hw verilog`` and ``make verilog``: which blocks, into which folder, and words that would be ignored."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hw.__main__ import main
from hw.cli.arguments import reporting_errors
from hw.registry import BLOCKS, IN_ALL

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def emit(tmp_path, monkeypatch, capsys):
    """A function that runs the command in an empty folder; returns its output's lines."""
    monkeypatch.chdir(tmp_path)

    def run(*words, code=0):
        assert reporting_errors(lambda: main(["verilog", *words])) == code
        captured = capsys.readouterr()
        return (captured.out or captured.err).splitlines()

    return run


def make(*words):
    return subprocess.run(["make", "-C", PROJECT, *words], capture_output=True, text=True)


@pytest.mark.parametrize("texts", [["n=2,key_width=3"], ["n=2,", "key_width=3"], ["n=2", "key_width=3,"]])
def test_commas_between_parameters(emit, texts):
    emit("bitonic_sorter", "-p", *texts, "-o", "out")
    header = Path("out/bitonic_sorter.v").read_text()
    assert "//   n = 2\n" in header and "//   key_width = 3\n" in header


@pytest.mark.parametrize("text", ["n=2,3", "n=2,key_width", ",n=2"])
def test_commas_that_mean_nothing(emit, text):
    (line,) = emit("bitonic_sorter", "-p", text, code=2)
    assert line.startswith("error: ")


def test_each_package_has_a_folder_of_its_own(emit):
    emit("bitonic_sorter", "--config", "tiny")
    emit("hash_bank_mapper", "--config", "tiny")
    emit("bitonic_sorter", "-p", "n=2", "--name", "pair")
    files = {str(path) for path in Path("build/verilog").glob("**/*.v")}
    assert files == {
        f"build/verilog/{name}.v"
        for name in ("tiny/bitonic_sorter/bitonic_sorter", "tiny/hash_bank_mapper/hash_bank_mapper", "pair/pair")
    }


def test_targets(emit):
    """For an FPGA products stay multiplications, which become DSP blocks."""
    for target in ("asic", "fpga"):
        emit("dot_product_unit", "-p", "n_lanes=1", "-o", target, "--target", target)
        assert json.loads(Path(target, "manifest.json").read_text())["target"] == target
        products = re.findall(r"^[^/\n]* \* ", Path(target, "dot_product_unit.v").read_text(), re.M)
        assert bool(products) == (target == "fpga")
    (line,) = emit("dot_product_unit", "-p", "n_lanes=1", "--target", "gpu", code=2)
    assert line == "error: target must be one of asic, fpga, not 'gpu'"


def test_removed_files_are_told(emit):
    emit("bitonic_sorter", "-p", "n=2", "-o", "out")
    lines = emit("hash_bank_mapper", "-p", "n_columns=4", "n_banks=2", "-o", "out")
    assert [line for line in lines if "removed" in line] == [
        "out/bitonic_sorter.v  removed: it belonged to the package that was there"
    ]
    assert not Path("out/bitonic_sorter.v").exists()


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
class TestMake:
    @pytest.mark.parametrize("word", ["unit=core", "UNITS=core", "params=n=4", "Config=tiny", "liberty=x.lib"])
    def test_variables_that_would_be_ignored(self, word):
        result = make("-n", "verilog", word)
        assert result.returncode == 2 and not result.stdout.count("hw verilog")
        (line,) = [line for line in result.stderr.splitlines() if "***" in line]
        assert f"unknown variable {word.split('=')[0]}: legal are" in line and " UNIT " in line

    def test_every_variable_that_a_rule_uses_is_legal(self):
        text = (PROJECT / "Makefile").read_text()
        legal = set(re.search(r"^VARIABLES := (.*)$", text, re.M)[1].split())
        assert set(re.findall(r"\$\(if \$\((\w+)\)", text)) - {"UNKNOWN", "UNREAD"} <= legal
        assert set(re.findall(r"^(\w+) +\?=", text, re.M)) <= legal

    @pytest.mark.parametrize(
        "words, unread",
        [
            (["test", "UNIT=bitonic_sorter"], "UNIT"),
            (["test-core", "CONFIG=tiny"], "CONFIG"),
            (["formal", "SIM=icarus"], "SIM"),
            (["verilog", "LIBERTY=x.lib"], "LIBERTY"),
            (["NAME=top"], "NAME"),
        ],
    )
    def test_variables_that_a_target_would_ignore(self, words, unread):
        result = make("-n", *words)
        assert result.returncode == 2 and not result.stdout.count("python")
        (line,) = [line for line in result.stderr.splitlines() if "***" in line]
        goal = words[0] if len(words) > 1 else "help"
        assert f"make {goal} does not read {unread}; it reads " in line

    def test_targets_together_read_what_each_reads(self):
        assert make("-n", "verilog", "test", "UNIT=bitonic_sorter", "SIM=icarus").returncode == 0

    def test_the_variables_of_each_target_are_those_of_its_rule(self):
        text = (PROJECT / "Makefile").read_text().replace("$(BLOCK)", "$(UNIT) $(CONFIG) $(PARAMS)")
        legal = set(re.search(r"^VARIABLES := (.*)$", text, re.M)[1].split())
        reads = {goal: set(words.split()) for goal, words in re.findall(r"^READS_([\w-]+) := (.*)$", text, re.M)}
        in_rules = {}
        for goal, rule in re.findall(r"^([a-z-]+):.*\n((?:\t.*\n)*)", text, re.M):
            in_rules[goal] = legal & set(re.findall(r"\$\((\w+)\)", rule))
        # These reach the tools through the environment.
        through = {"SIM", "SEED", "TESTFLOAT", "WORKLOAD", "LIBERTY"}
        assert set(reads) <= set(in_rules)
        for goal, used in in_rules.items():
            assert used <= reads.get(goal, set()), goal
            assert reads.get(goal, set()) - {"$(TESTS)"} - used <= through, goal

    def test_help_says_which_blocks_all_is(self):
        result = make("help")
        assert result.returncode == 0
        text = " ".join(result.stdout.split())
        assert f"all, which is {' '.join(IN_ALL)};" in text
        assert f"further blocks by name: {' '.join(BLOCKS[len(IN_ALL) :])};" in text and "UNIT=everything" in text

    def test_words_reach_the_command(self):
        result = make("-n", "verilog", "UNIT=bitonic_sorter", "PARAMS=n=2,key_width=3", "NAME=pair", "TARGET=fpga")
        (line,) = [line for line in result.stdout.splitlines() if "hw verilog" in line]
        words = ["bitonic_sorter", "--config", "small", "-p", "n=2,key_width=3", "--memory", "model"]
        words += ["--target", "fpga", "--name", "pair"]
        assert line.replace('"', "").split()[4:] == words
