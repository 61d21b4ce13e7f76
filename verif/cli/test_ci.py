"""CI runs every test, selected by targets and markers, and no test overrides the user's choice of simulator."""

import re
from pathlib import Path

CI = Path(".ci/run").read_text()
MAKEFILE = Path("Makefile").read_text()


def test_ci_selects_by_targets_only():
    commands = [line for line in CI.splitlines() if not line.startswith("#")]
    assert {"make test", "make test-core", "make formal-quick"} <= set(commands)
    assert not [line for line in commands if re.search(r"pytest|\s-k\s", line)]


def test_the_two_targets_are_all_tests():
    expressions = re.findall(r"^test(?:-core)?:.*\n(?:\t.*\n)*?\t.*pytest.* -m (.*)$", MAKEFILE, re.M)
    assert sorted(expression.strip("'") for expression in expressions) == ["core", "not core"]


def test_no_test_of_the_core_names_a_simulator():
    tests = [path for path in Path("verif/core").glob("*.py") if "sim=" in path.read_text()]
    assert not [path for path in tests if re.search(r'sim="|SIM = ', path.read_text())]
