"""Mutants: the testbench kills them, what it cannot see is proved to be nothing, and what it should see is told."""

import re
import shutil

import pytest

from hw.registry import make_block
from verif.campaigns import mutate

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="Verilator needs a compiler")


@pytest.fixture(scope="module")
def mutants(tmp_path_factory):
    return mutate.Mutants(make_block("hash_bank_mapper", "tiny"), 20, 1, tmp_path_factory.mktemp("mutants"))


@pytest.fixture(scope="module")
def verdicts(mutants):
    return mutate.run_mutants(mutants, count=90, seed=1)


def test_a_sample_is_killed(mutants, verdicts):
    alive = [number for number, text in verdicts.items() if text is None]
    assert len(verdicts) == 20 and len(alive) < 10
    assert all(mutate.is_equivalent(mutants, number) for number in alive), [mutants.descriptions[n - 1] for n in alive]


@pytest.mark.slow
def test_what_the_testbench_notices_is_not_proved(mutants, verdicts):
    # The graph has no clocks, so that it cannot tell a mutant of one.
    described = zip(verdicts.items(), mutants.descriptions, strict=True)
    noticed = [number for (number, text), what in described if text is not None and ".CLK[" not in what]
    assert noticed
    for number in noticed:
        assert not mutants.graph.steps_alike(number, 60) and mutants.graph.answers_alike(number, 60) is not True


def test_a_mutant_that_differs_is_not_called_equivalent(mutants):
    inverted = next(number for number in mutants.numbers if ": inv at" in mutants.descriptions[number - 1])
    assert mutate.is_equivalent(mutants, inverted) is False
    assert mutate.is_equivalent(mutants, 0) is True


def test_an_accepted_survivor_that_matches_nothing_is_reported(mutants):
    module, gate = next((module, name) for (module, _), name in mutants.gates.items() if " to " in name)
    here = mutate.Accepted("hash_bank_mapper", module[:-1] + "*", f"const0 at {gate}.Y[0]", "a gate that there is")
    gone = mutate.Accepted("hash_bank_mapper", module, "const0 at xor to no_such_signal.Y[0]", "a gate of old")
    of_others = mutate.Accepted("bitonic_sorter", module, "const0 at xor to no_such_signal.Y[0]", "another block")
    assert mutate.unmatched("hash_bank_mapper", mutants.gates, [here, gone, of_others]) == [gone]
    assert here.covers("hash_bank_mapper", f"{module}: const0 at {gate}.Y[0]")
    assert not here.covers("hash_bank_mapper", f"{module}: const1 at {gate}.Y[0]")


def test_gates_are_named_by_what_they_compute(mutants):
    assert not [text for text in mutants.descriptions if re.search(r"\.v:\d|\$", text)]


@pytest.mark.slow
@pytest.mark.parametrize("unit", sorted({entry.block for entry in mutate.ACCEPTED}))
def test_accepted_survivors_are_gates_of_today(unit, tmp_path):
    assert mutate.unmatched(unit, mutate.Mutants(make_block(unit, "tiny"), 1, 1, tmp_path).gates) == []
