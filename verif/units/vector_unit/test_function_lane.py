"""The functions of one operand where the vector unit merges them: any words, functions mixed."""

import os

import numpy as np
import pytest

from golden.spec.vector_operations import FUNCTION_OPS, VectorOp
from golden.units.vector_unit import FUNCTIONS
from hw.units.vector_unit.functions import FunctionLane
from verif.bench.lockstep import run_lockstep

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("SEED", "1"))
N_WORDS = 1 << 14


def test_functions_in_any_order():
    """A quarter of all words, in any order, each through one of the functions, in any order too.

    What each function makes of each word, test_functions knows; here it is whether the right one is taken in time.
    """
    rng = np.random.default_rng(SEED)
    words = rng.permutation(1 << 16)[:N_WORDS]
    operation = rng.choice(FUNCTION_OPS, len(words))

    block = FunctionLane(format="fp16")
    inputs = {"x": words}
    for name, child in block.children.items():
        # Taken when it delivers; the last rows' results come with the rows that follow.
        inputs[f"take_{name}"] = np.roll(operation == VectorOp[name.upper()], child.latency)
    checked = len(words) - block.latency
    got = np.array(run_lockstep(block, inputs, ["y"], seed=SEED)["y"][:checked])
    expected = np.zeros(len(words), int)
    for op, function in FUNCTIONS.items():
        expected[operation == op] = function(words[operation == op])
    wrong = np.flatnonzero(got != expected[:checked])
    assert len(got) == checked > N_WORDS // 2
    assert not len(wrong), [(VectorOp(operation[row]).name, hex(words[row]), hex(got[row])) for row in wrong[:5]]
