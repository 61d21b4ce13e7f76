"""The cycle model of the core: against ideals, bounds and the Verilog of the paths that do the work."""

import numpy as np
import pytest

from golden.core.hash_format import mask_to_bitmap
from golden.spec.commands import Command, Elementwise, Opcode
from golden.spec.sizes import CoreSizes
from golden.timing.cycle_model import CoreTiming, Latencies, row_steps
from golden.units.hash_bank_mapper import BankMap, bank_counts, sddmm_cycles
from hw.top.array.controller import ArrayController
from hw.top.engines.controller import EnginesController
from hw.top.softmax.controller import SoftmaxController
from hw.top.vector.controller import VectorController
from verif.bench import datasets
from verif.core.array_program import ArrayProgram
from verif.core.engines_bench import EnginesProgram
from verif.core.path_bench import run_path
from verif.core.softmax_bench import SoftmaxProgram
from verif.core.vector_bench import VectorProgram

pytestmark = pytest.mark.core

EDGE = CoreSizes(n_banks=16, n_lanes=16, simd_lanes=16, max_tokens=256, max_head_dim=32, max_dim=128)
NO_LATENCY = Latencies(**{name: 0 for name in Latencies.__dataclass_fields__})


def random_bits(rng, n_rows, n_banks, n_slots):
    bits = rng.random((n_rows, n_banks, n_slots)) < rng.random((n_rows, 1, 1))
    bits[rng.random(n_rows) < 0.1] = False
    return bits


def test_work_is_the_fullest_bank():
    bits = random_bits(np.random.default_rng(1), 40, 16, 16)
    counts = bits.sum(axis=2)
    timing = CoreTiming(EDGE, NO_LATENCY)
    assert row_steps(bits).tolist() == [max(1, row.max()) for row in counts]
    assert timing.sddmm(bits, 20).work == 2 * counts.sum(axis=0).max()
    terms = 2 * np.maximum(counts, 1).sum(axis=0).max()
    assert timing.spmm(bits, 20).work == terms <= timing.spmm(bits, 20).cycles <= 2 * row_steps(bits).sum() + 40
    assert timing.softmax(bits).work == row_steps(bits).sum()
    assert timing.matmul(40, 30, 33, has_bias=True).work == 40 * 3 * 3
    assert timing.elementwise(40, 33).work == 40 * 2 * 4 and timing.elementwise(40, 33, 2).work == 40 * 2 * 5
    assert timing.elementwise(40, 33, is_function=True).work == 40 * 2 * 8
    assert timing.weighted_sum(40, 33, 256).work == 40 * 3 * 16
    assert timing.project(40, 30, 33, has_bias=True).work == 40 * 3 * 3


def test_rows_are_done_in_order_and_not_before_they_can_be():
    rng = np.random.default_rng(2)
    bits = random_bits(rng, 60, 16, 16)
    timing = CoreTiming(EDGE)
    available = np.cumsum(rng.integers(0, 60, 60))
    for late, early in (
        (timing.sddmm(bits, 32, available=available), timing.sddmm(bits, 32)),
        (timing.softmax(bits, available=available), timing.softmax(bits)),
        (timing.spmm(bits, 32, available=available), timing.spmm(bits, 32)),
        (timing.matmul(60, 32, 48, available=available), timing.matmul(60, 32, 48)),
        (timing.elementwise(60, 48, 2, available=available), timing.elementwise(60, 48, 2)),
    ):
        for times in (late, early):
            assert (np.diff(times.rows_done) > 0).all() and times.rows_done[-1] < times.end
            assert times.work <= times.cycles
        assert (late.rows_done > available).all() and (late.rows_done >= early.rows_done).all()
        assert late.end <= early.end + available[-1]


def test_no_rows_and_one():
    timing = CoreTiming(EDGE)
    nothing = np.zeros((0, 16, 16), bool)
    for times in (timing.softmax(nothing), timing.spmm(nothing, 32), timing.elementwise(0, 5)):
        assert (times.cycles, times.work, len(times.rows_done)) == (timing.latencies.done, 0, 0)
    one = np.zeros((1, 16, 16), bool)
    assert timing.softmax(one).rows_done.tolist() == [timing.latencies.softmax]
    alone = timing.spmm(one, 16).rows_done[0]
    assert timing.latencies.spmm < alone < timing.latencies.spmm + 60


def test_real_heads():
    """SDDMM next to the recorded ideal, and a masked head hardly longer than its longest unit's work."""
    arrays = datasets.workload()
    bank_map = BankMap(n_columns=256, n_banks=16, multiplier=13)
    dense = CoreTiming(EDGE).head(np.ones((256, 16, 16), bool), 32)
    assert dense["sddmm"].utilisation > 0.97
    for packed in arrays["A_mask"][:, 1]:
        mask = np.unpackbits(packed, axis=-1, bitorder="little").astype(bool)
        bits = mask_to_bitmap(mask, bank_map)
        head = CoreTiming(EDGE).head(bits, 32, n_out=32)
        ideal = 2 * int(sddmm_cycles(bank_counts(mask, bank_map), EDGE.run_ahead))
        assert ideal <= head["sddmm"].cycles <= 1.03 * ideal + 2 * EDGE.n_banks
        longest = max(head[name].work for name in ("sddmm", "softmax", "spmm"))
        print(
            f"{1 - mask.mean():.0%} sparse: {head['spmm'].end} clocks, longest unit {longest}, "
            f"dense {dense['spmm'].end}, the dense product of the outputs ends at {head['matmul'].end}"
        )
        # No slower than engines in lockstep: very sparse heads are bounded by the reduction, two clocks a pass.
        lockstep = 2 * np.maximum(row_steps(bits), 2).sum()
        assert longest <= head["spmm"].end <= 1.1 * max(longest, lockstep) + 150


def test_a_command_without_a_model():
    load = Command(opcode=Opcode.LOAD, n_rows=1, n_in=4)
    with pytest.raises(ValueError, match="no cycle model of LOAD ROWS"):
        CoreTiming(CoreSizes()).of(load)


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [{"max_tokens": 32, "omem_depth": 600}, {"n_banks": 8, "n_lanes": 8, "max_tokens": 40, "omem_depth": 400}],
    ids=str,
)
def test_softmax_row_by_row(parameters):
    """The softmax path's Verilog hands over every row in the clock that the model says."""
    core = CoreSizes(**parameters)
    block = SoftmaxController.for_core(core)
    program = SoftmaxProgram(core, 1)
    kinds = [(kind, density) for kind in ("plain", "make_mask") for density in (0, 0.1, 0.4, 1, None)]
    runs = [
        program.run(kind=kind, density=density, n_rows=24, n_keys=block.max_tokens, gated=False)
        for kind, density in kinds
    ]
    found = run_path(block, "verif.core.softmax_bench", runs, seed=1)
    assert not found["messages"], found["messages"]
    latencies = Latencies(softmax=block.latency + 1)
    timing = CoreTiming(core, latencies)
    for (kind, _), run, result in zip(kinds, runs, found["runs"], strict=True):
        counts = np.zeros((run["n_active"], block.n_banks), int)
        for row, writes in enumerate(run["rows"]):
            for memory, bank, *_ in writes:
                counts[row, bank] += memory == "probabilities"
        times = timing.softmax(counts, makes_mask=kind == "make_mask")
        assert result["row_done"] == times.rows_done.tolist()
        assert result["clocks"] + timing.latencies.done == times.cycles


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {"max_tokens": 32, "imem_depth": 400, "vector_lanes": 4, "special_lanes": 1},
        {"n_banks": 8, "n_lanes": 2, "simd_lanes": 2, "max_tokens": 24, "vector_lanes": 8},
    ],
    ids=str,
)
def test_vector_unit_row_by_row(parameters):
    """ELEMENTWISE on the vector path's Verilog."""
    core = CoreSizes(**parameters)
    block = VectorController.for_core(core)
    program = VectorProgram(core, 1)
    runs = [
        program.elementwise(function=function, n_in=n_in, n_rows=20, gated=False)
        for function in (Elementwise.SUB, Elementwise.EXP)
        for n_in in (1, core.max_dim)
    ]
    found = run_path(block, "verif.core.vector_bench", runs, seed=1)
    assert not found["messages"], found["messages"]
    timing = CoreTiming(core, Latencies(elementwise=block.latency))
    for run, result in zip(runs, found["runs"], strict=True):
        times = timing.of(Command(**run["command"]))
        assert np.abs(np.array(result["row_done"]) - times.rows_done).max() <= 3, run["name"]
        assert abs(result["clocks"] + timing.latencies.done - times.cycles) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{"max_tokens": 32}, {"n_banks": 8, "simd_lanes": 2, "max_tokens": 24}], ids=str)
def test_engines_row_by_row(parameters):
    """SPMM on the engines' Verilog."""
    core = CoreSizes(**parameters)
    block = EnginesController.for_core(core)
    program = EnginesProgram(core, 1)
    runs = [
        program.spmm(density=density, n_in=n_in, n_keys=core.max_tokens, n_rows=20, gated=False, beside=False)
        for density in (0, 0.05, 0.4, 1)
        for n_in in (1, core.max_head_dim)
    ]
    found = run_path(block, "verif.core.engines_bench", runs, seed=1)
    assert not found["messages"], found["messages"]
    timing = CoreTiming(core)
    for run, result in zip(runs, found["runs"], strict=True):
        times = timing.of(Command(**run["command"]), np.array(run["counts"]))
        assert np.abs(np.array(result["row_done"]) - times.rows_done).max() <= 2, run["name"]
        assert abs(result["clocks"] + timing.latencies.done - times.cycles) <= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {"max_tokens": 64},
        {
            "n_banks": 8,
            "n_lanes": 1,
            "simd_lanes": 2,
            "max_tokens": 20,
            "max_head_dim": 5,
            "max_dim": 6,
            "run_ahead": 2,
            "latent_width": 2,
            "latent_height": 2,
        },
    ],
    ids=str,
)
def test_array_row_by_row(parameters):
    """SDDMM and MATMUL on the array path's Verilog; PROJECT, of which all rows are done together, to a few clocks."""
    core = CoreSizes(**parameters)
    block = ArrayController.for_core(core)
    p = block.parameters
    program = ArrayProgram(core, 1)
    head, dim, banks = p.max_head_dim, p.max_dim, p.n_banks
    sampled = (20, 1, 0.4, 1), (16, head, 0.4, 1), (20, head, 0.05, 1), (12, 1, 1, 0)
    runs = [
        program.sddmm(n_rows=n_rows, n_in=n_in, n_keys=p.max_tokens, density=density, gated=False, mask=mask)
        for n_rows, n_in, density, mask in sampled
    ]
    runs += [
        program.matmul(n_rows=n_rows, n_in=n_in, n_out=n_out, bias=bias, gated=False)
        for n_rows, n_in, n_out, bias in ((15, 1, 1, False), (9, dim, dim, True), (12, dim, banks - 1, False))
    ]
    runs += [program.project(n_rows=18, n_in=dim, n_out=head, bias=bias, values=bias) for bias in (False, True)]
    found = run_path(block, "verif.core.array_bench", runs, seed=1)
    assert not found["messages"], found["messages"]
    array = block._array.parameters
    timing = CoreTiming(core, Latencies(score=1 + array.plan.latency))
    for run, result in zip(runs, found["runs"], strict=True):
        command = run["command"]
        times = timing.of(Command(**command), np.array(run.get("counts", 0)))
        if command["opcode"] == Opcode.PROJECT:
            assert abs(result["clocks"] - times.cycles) <= 4, run["name"]
            continue
        assert result["row_done"] == times.rows_done.tolist(), run["name"]
        assert result["clocks"] + timing.latencies.done == times.cycles
