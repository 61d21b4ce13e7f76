"""The stream helpers on their emitted Verilog: nothing lost, stable while stalled, full rate, latency, capacity."""

import os

import pytest

from hw.lib import stream
from verif.bench.harness import Result, run_job
from verif.bench.simulator import choose

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("SEED", "1"))

POINTS = [
    ("RegisterSlice", {"width": 1}),
    ("RegisterSlice", {"width": 70}),
    ("SkidBuffer", {"width": 1}),
    ("SkidBuffer", {"width": 33}),
    ("StreamQueue", {"width": 8, "depth": 1}),
    ("StreamQueue", {"width": 8, "depth": 2}),
    ("StreamQueue", {"width": 1, "depth": 5}),
    ("StreamQueue", {"width": 9, "depth": 3, "storage": "memory"}),
    ("StreamQueue", {"width": 16, "depth": 4, "storage": "memory"}),
    ("StreamQueue", {"width": 5, "depth": 17, "storage": "memory"}),
    ("StreamFork", {"width": 8, "n": 1}),
    ("StreamFork", {"width": 12, "n": 3}),
    ("StreamJoin", {"width": 8, "n": 1}),
    ("StreamJoin", {"width": 11, "n": 3}),
]


def _name(point):
    return "-".join([point[0], *(f"{key}={value}" for key, value in point[1].items())])


@pytest.mark.parametrize("point", POINTS, ids=_name)
def test_beats(point):
    name, parameters = point
    block = getattr(stream, name)(**parameters)
    job = {"unit": "stream_helper", "parameters": {"block": name, **parameters}, "seed": SEED, "count": 450}
    result = Result(unit=name, seed=SEED, sim=choose(), **run_job(block, "verif.bench.testbench:run_standard", job))
    assert not result.messages, result.messages
    assert result.passed, result.line()
    assert result.stalls and result.idles


@pytest.mark.parametrize("point", [point for point in POINTS if not point[0].startswith("Stream")], ids=_name)
def test_capacity(point):
    name, parameters = point
    block = getattr(stream, name)(**parameters)
    depth = parameters.get("depth", 1)
    assert run_job(block, "verif.lib.capacity:fill", {"offered": depth + 5}) == depth


def test_a_memory_queue_must_be_deep_enough():
    with pytest.raises(ValueError, match="depth must be at least 3 .* not 2"):
        stream.StreamQueue(depth=2, storage="memory")
