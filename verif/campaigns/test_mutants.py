"""Mutants: the testbench kills them, what it cannot see is proved to be nothing, and what it should see is told."""

import shutil

import pytest

from hw.registry import make_block
from verif.campaigns import mutate

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="Verilator needs a compiler")


@pytest.fixture(scope="module")
def mutants(tmp_path_factory):
    return mutate.Mutants(make_block("hash_bank_mapper", "tiny"), 20, 1, tmp_path_factory.mktemp("mutants"))


def test_a_sample_is_killed(mutants):
    verdicts = mutate.run_mutants(mutants, count=90, seed=1)
    alive = [number for number, text in verdicts.items() if text is None]
    assert len(verdicts) == 20 and len(alive) < 10
    assert all(mutate.is_equivalent(mutants, number) for number in alive), [mutants.descriptions[n - 1] for n in alive]


@pytest.mark.slow
def test_what_the_testbench_notices_is_not_proved(mutants):
    verdicts = mutate.run_mutants(mutants, count=90, seed=1)
    noticed = [number for number, text in verdicts.items() if text is not None]
    assert noticed
    for number in noticed:
        assert not mutants.graph.steps_alike(number, 60) and mutants.graph.answers_alike(number, 60) is not True


def test_a_mutant_that_differs_is_not_called_equivalent(mutants):
    inverted = next(number for number in mutants.numbers if ": inv at" in mutants.descriptions[number - 1])
    assert mutate.is_equivalent(mutants, inverted) is False
    assert mutate.is_equivalent(mutants, 0) is True
