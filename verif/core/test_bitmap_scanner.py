"""The bitmap scanner's Verilog at several sizes: every step, no bubble, any stalls."""

import os

import pytest

from hw.top.rows.bitmap_scanner import BitmapScanner
from verif.bench.harness import Result, run_job
from verif.bench.simulator import choose

pytestmark = pytest.mark.core

SEED = int(os.environ.get("SEED", "1"))
POINTS = [
    (False, {"n_banks": 4, "n_slots": 8, "max_turns": 3}),
    (True, {"n_banks": 1, "n_slots": 1}),
    (True, {"n_banks": 2, "n_slots": 1, "max_turns": 5}),
    (True, {"n_banks": 8, "n_slots": 2, "max_turns": 2}),
    (True, {"n_banks": 2, "n_slots": 13}),
    (True, {"n_banks": 16, "n_slots": 16, "max_turns": 4}),
]
CASES = [
    pytest.param(point, marks=pytest.mark.slow if slow else (), id="-".join(map(str, point.values())))
    for slow, point in POINTS
]


@pytest.mark.parametrize("parameters", CASES)
def test_steps(parameters):
    job = {"unit": "bitmap_scanner", "parameters": parameters, "seed": SEED, "count": 900}
    result = Result(
        unit="bitmap_scanner",
        seed=SEED,
        sim=choose(),
        **run_job(BitmapScanner(**parameters), "verif.bench.testbench:run_standard", job),
    )
    assert not result.messages, result.messages
    assert result.passed, result.line()
    assert result.stalls and result.idles
