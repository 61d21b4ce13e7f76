"""What the core's golden model marks and counts: words that nobody wrote, counters, missing beats."""

import numpy as np
import pytest

from golden.core.core import Core
from golden.program.assembler import Matrix, Program
from golden.spec.commands import Command, Memory, Opcode
from golden.spec.counters import COUNTERS
from golden.spec.sizes import CoreSizes, words_for


def test_what_is_undefined_stays_so():
    sizes = CoreSizes()
    rng = np.random.default_rng(8)
    program = Program(sizes)
    x = program.load_rows(rng.normal(size=(3, 8)))
    gap = program.matrix(1, 8)
    y = Matrix(x.first, x.stride, 4, 8)
    weights = program.load_weights(rng.normal(size=(8, 4)))
    product = program.store_rows(program.matmul(y, weights))
    total = program.store_rows(program.elementwise("add", y, y))
    program.load_rows(np.zeros((1, 8)), into=gap)
    again = program.store_rows(program.matmul(y, weights))
    values = program.load_values(rng.normal(size=(4, 4)), at=0)
    program.load_mask(np.ones((1, 4)))
    scores = program.load_sampled(np.zeros((1, 4)), np.ones((1, 4)), 0)
    kept = program.softmax(scores, 1.0, mask_out=1)
    program.spmm(kept, values)
    core = Core(sizes)
    run = core.execute(program.commands, program.load_beats)
    for stored in (product, total):
        assert stored.defined(run)[:3].all() and not stored.defined(run)[3].any()
    assert again.defined(run).all() and core.uncertain_from is None

    # Scores that nobody wrote: their probabilities, the mask made of them, and what is computed under it.
    more = Program(sizes)
    more.load_mask(np.ones((1, 4)))
    unknown = more.softmax(scores, 1.0, mask_out=1)
    more.append(Command(opcode=Opcode.STORE, function=Memory.MASS, n_rows=1))
    more.append(Command(opcode=Opcode.STORE, function=Memory.MASK, mask=1, n_rows=1))
    more.spmm(unknown, values)
    core = Core(sizes)
    run = core.execute(more.commands, more.load_beats)
    assert run.store.values.shape[0] == 2 and not run.store.defined[:, 0].any()
    assert core.uncertain_from is None
    core.execute([Command(opcode=Opcode.SOFTMAX, mask=1, n_rows=1, n_out=4)])
    assert core.uncertain_from == len(more.commands)


def test_counters():
    sizes = CoreSizes()
    program = Program(sizes)
    x = program.load_rows(np.ones((5, 9)))
    weights = program.load_weights(np.ones((9, 6)), bias=np.ones(6))
    y = program.matmul(x, weights)
    program.project_values(x, weights)
    program.elementwise("max", y, y)
    program.store_rows(y)
    first = program.store_counters()
    second = program.store_counters()
    program.clear(counters=True)
    third = program.store_counters()
    core = Core(sizes)
    run = core.execute(program.commands, program.load_beats)
    stored = (dict(zip(COUNTERS, beats.of(run).tolist(), strict=True)) for beats in (first, second, third))
    first, second, third = stored
    n_beats = words_for(9, sizes.n_lanes) + 1
    expected = {
        "commands": 7,
        "array_beats": 2 * 5 * 6 * n_beats,
        "vector_issues": 5,
        "load_beats": len(program.load_beats),
        "store_beats": 5,
    }
    assert {name: value for name, value in first.items() if value} == expected
    assert second == {**first, "commands": 8}
    assert {name: value for name, value in third.items() if value} == {"commands": 1}


def test_too_few_load_beats():
    command = Command(opcode=Opcode.LOAD, n_rows=2, n_in=3, destination_stride=1)
    with pytest.raises(ValueError, match="load_beats must hold 2 beats for command 0, only 1 are left"):
        Core(CoreSizes()).execute([command], np.zeros((1, 8)))
