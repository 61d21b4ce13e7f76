"""All of TestFloat's vectors through the vector unit's emitted Verilog; ``TESTFLOAT=path`` swaps the file."""

import pytest

from golden.vector_unit import Commands
from hw.units.vector_unit import VectorUnit
from verif.benches.vector_unit import VectorUnitBench
from verif.recorded import replay
from verif.testfloat import SOURCES, vectors

N_ENGINES, N_LANES = 2, 4

# Two runs of about the same length, for two processors. The file's own results are all tried; those that say the same
# once more in another operation are not.
RUNS = {
    "sums": ("fused_multiply_add", "add", "to_fp32", "to_fp16", "subtract"),
    "products": ("multiply", "less", "less_equal", "greater", "absolute_difference"),
}
N_DERIVED = {"subtract": 4000, "greater": 4000, "absolute_difference": 4000}


def commands_of(case):
    """One lane a vector; the last command is filled up with zeros."""
    n = -(-len(case.a) // (N_ENGINES * N_LANES))
    commands = Commands.empty(n, N_ENGINES, N_LANES)
    commands.operation[:] = case.operation
    for name in "abc":
        getattr(commands, name).ravel()[:len(case.a)] = getattr(case, name)
    return commands


def test_runs_are_complete():
    assert sorted(sum(RUNS.values(), ())) == sorted(SOURCES)


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_vector_unit(run):
    bench = VectorUnitBench(VectorUnit(n_engines=N_ENGINES, n_lanes=N_LANES, bank_depth=2), 0)
    programs = []
    for name in RUNS[run]:
        case = vectors(name)
        case = case.first(N_DERIVED.get(name, len(case.a)))
        commands = commands_of(case)
        # The bench expects the golden model's bits, so these must be TestFloat's.
        wrong = case.wrong(bench.unit_model.execute(commands).values.ravel()[:len(case.a)])
        assert not len(wrong), f"{name}: TestFloat's row {wrong[0]} is not the golden model's, one of {len(wrong)}"
        programs.append(commands)
    program = Commands.join(*programs)
    result = replay(bench.block, bench.program(program))
    assert not result.messages, result.messages
    assert result.passed and result.checked == len(program) > 0
