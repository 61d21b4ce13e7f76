"""TestFloat's vectors through the vector unit's golden model and its Verilog; ``TESTFLOAT=path`` swaps the file."""

import os

import pytest

from golden.units.vector_unit import Commands
from hw.units.vector_unit.unit import VectorUnit
from verif.bench import simulator
from verif.bench.recorded import replay
from verif.bench.testfloat import SOURCES, vectors
from verif.units.vector_unit.bench import VectorUnitBench

N_ENGINES, N_LANES = 2, 4

# Two runs of about the same length, for two processors.
RUNS = {
    "sums": ("fused_multiply_add", "add", "to_fp32", "to_fp16", "subtract"),
    "products": ("multiply", "less", "less_equal", "greater", "absolute_difference"),
}
# What says the same once more in another operation is tried in part.
N_DERIVED = {"subtract": 4000, "greater": 4000, "absolute_difference": 4000}


def rows_in_verilog(name):
    """All of the file's own rows, but a part of the known file's in Icarus, which takes minutes for them."""
    some = simulator.choose() == "icarus" and not os.environ.get("TESTFLOAT")
    return min(N_DERIVED.get(name, 1 << 30), 4_000 if some else 1 << 30)


def commands_of(case):
    """One lane a vector; the last command is filled up with zeros."""
    n = -(-len(case.a) // (N_ENGINES * N_LANES))
    commands = Commands.empty(n, N_ENGINES, N_LANES)
    commands.operation[:] = case.operation
    for name in "abc":
        getattr(commands, name).ravel()[: len(case.a)] = getattr(case, name)
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
        # The bench expects the golden model's bits, so these must be TestFloat's.
        wrong = case.wrong(bench.unit_model.execute(commands_of(case)).values.ravel()[: len(case.a)])
        assert not len(wrong), f"{name}: TestFloat's row {wrong[0]} is not the golden model's, one of {len(wrong)}"
        programs.append(commands_of(case.first(rows_in_verilog(name))))
    program = Commands.join(*programs)
    result = replay(bench.block, bench.program(program))
    assert not result.messages, result.messages
    assert result.passed and result.checked == len(program) > 0
