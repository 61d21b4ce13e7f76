"""The cycle model of whole programs against the Verilog, and docs/bench.md."""

import json

import numpy as np
import pytest

from golden.program.assembler import Program
from golden.program.dit.block import DitBlocks
from golden.program.dit.places import Sparsity
from golden.program.dit.tiled import TiledBlock
from golden.program.dit.weights import BlockShape, random_block
from golden.program.host import HostProgram
from golden.spec.commands import Unit
from golden.timing.program_model import estimate, load_interval
from hw.registry import make_block
from verif.core.benchmark.__main__ import DOCS
from verif.core.benchmark.measure import intervals_of, model_result
from verif.core.benchmark.report import report
from verif.core.benchmark.workloads import WORKLOADS
from verif.core.session import run_program

pytestmark = pytest.mark.core

TINY = make_block("core", "tiny").parameters


def random_program(seed):
    """A block of random sizes, in IMEM with masks and a token list, or tile by tile; and a load interval."""
    rng = np.random.default_rng(seed)
    n, n_heads = int(rng.integers(6, 30)), int(rng.integers(1, 4))
    shape = BlockShape(n, n_heads * int(rng.integers(2, 8)), n_heads, int(rng.integers(8, 33)))
    x = rng.standard_normal((n, shape.dim)).astype(np.float16)
    condition, weights = rng.standard_normal(shape.dim).astype(np.float16), random_block(shape, seed)
    if seed % 2:
        program = HostProgram(TINY)
        TiledBlock(program, shape).build(x, condition, weights)
        program.run()
    else:
        program = Program(TINY)
        masks = [[(rng.random((n, n)) < 0.5, np.float16(rng.random(n)).view(np.uint16)) for _ in range(n_heads)]]
        tokens = sorted(rng.choice(n, n // 2, replace=False).tolist())
        sparsity = Sparsity(masks=masks, tokens=tokens, cached=[x]) if seed % 4 else None
        DitBlocks(program, shape).build(x, condition, [weights], sparsity)
    return program, int(rng.integers(1, 5))


@pytest.mark.parametrize("seed", range(5))
def test_random_blocks(seed):
    """Clocks within 3 %, and of each unit's commands the order and, within 10 %, the busy clocks."""
    program, interval = random_program(seed)
    session = run_program(make_block("core", "tiny"), program, load_interval=interval, is_long=False)
    found = estimate(TINY, program.commands, program.beats_of_loads, interval)
    clocks = int(np.flatnonzero(session.busy.any(axis=1))[-1]) + 1
    print(f"{found.n_clocks} clocks, {clocks} on the Verilog: {found.n_clocks / clocks - 1:+.2%}")
    assert abs(found.n_clocks / clocks - 1) <= 0.03
    measured = intervals_of(program, session)
    assert set(measured) == {item.number for item in found.intervals}
    for unit in (Unit.ARRAY, Unit.SOFTMAX, Unit.ENGINES):
        busy = sum(measured[item.number][1] - measured[item.number][0] for item in found.of(unit))
        assert abs(found.busy[unit] - busy) <= 0.1 * busy


def test_idle_clocks_have_a_cause():
    program, interval = random_program(2)
    found = estimate(TINY, program.commands, program.beats_of_loads, interval)
    for unit in Unit:
        items = found.of(unit)
        assert all(one.end < other.begin for one, other in zip(items, items[1:], strict=False))
        assert sum(found.idle(unit).values()) + found.busy[unit] == found.n_clocks
    slower = estimate(TINY, program.commands, program.beats_of_loads, 8 * interval)
    assert slower.n_clocks > found.n_clocks
    assert load_interval(TINY, 4) == 4 and load_interval(TINY, 64) == 1


def test_the_bench_is_up_to_date():
    """The page is that of its figures, and the model's figures are today's, of workloads that take seconds."""
    figures = json.loads((DOCS / "bench.json").read_text())
    assert (DOCS / "bench.md").read_text() == report(figures), "renew it: python -m verif.core.benchmark --model"
    assert set(figures["workloads"]) == {workload.name for workload in WORKLOADS}
    for name in ("4 heads, dense, loads and stores", "dit_small block, dense", "DiT-XL/2 block, 256 tokens"):
        workload = next(workload for workload in WORKLOADS if workload.name == name)
        expected = json.loads(json.dumps(model_result(workload)))
        assert figures["workloads"][name]["model"] == expected, f"{name}: python -m verif.core.benchmark --model"
