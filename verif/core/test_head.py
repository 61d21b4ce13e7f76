"""A head of the real workload on the Verilog of core edge: bits, errors, clocks against ideal and cycle model."""

import shutil

import numpy as np
import pytest

from golden.core.attention import attention_reference
from golden.core.core import Core
from golden.core.hash_format import mask_to_bitmap
from golden.spec.counters import COUNTERS
from golden.timing.cycle_model import CoreTiming
from golden.units.hash_bank_mapper import BankMap
from hw.registry import make_block
from verif.bench import datasets
from verif.core.demo.program import MULTIPLIER, Phases, attention, head_of
from verif.core.session import run_program

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(not shutil.which("g++"), reason="this core is too large for Icarus, and Verilator needs g++"),
]

HEAD, THETA = 0, 1
DENSE, MASKED = "step t, dense, makes the mask", "step t+1, masked"


@pytest.fixture(scope="module")
def run():
    """The head's data, what came of it in the Verilog, and what the golden model makes of it."""
    data = datasets.workload()
    head = head_of(data, HEAD, THETA)
    block = make_block("core", "edge")
    sizes = block.parameters
    phases = Phases.of(sizes)
    attention(phases, head)
    program = phases.program
    session = run_program(block, program)
    golden = program.results(Core(sizes).execute(program.commands, program.load_beats))
    numbers = {stored.command: number for number, stored in enumerate(program.stored)}
    found = program.split(session.values, session.last)
    results = {name: found[numbers[stored.command]] for name, stored in phases.results.items()}
    expected = {name: golden[numbers[stored.command]] for name, stored in phases.results.items()}
    counters = {
        name: dict(zip(COUNTERS, map(int, found[numbers[stored.command]]), strict=True))
        for name, stored in phases.counters.items()
    }
    return data, head, sizes, results, expected, counters


def bits_of(mask, sizes):
    bank_map = BankMap(n_columns=mask.shape[1], n_banks=sizes.n_banks, multiplier=MULTIPLIER)
    return mask_to_bitmap(mask, bank_map)


def test_bits(run):
    _, _, _, results, expected, _ = run
    for name, words in results.items():
        np.testing.assert_array_equal(words, expected[name], err_msg=name)


def test_error(run):
    """Within a few 2**-10 of the row's largest element; the mask within what FP16 may flip."""
    data, head, _, results, _, _ = run
    mask = results["mask"].astype(bool)
    exact = np.unpackbits(data["A_mask"][2 * HEAD, THETA], axis=1, bitorder="little").astype(bool)
    assert (mask != exact).sum() <= max(10, data["A_fp16_flips"][2 * HEAD, THETA])
    second = head.second.view(np.float16).astype(np.float64)
    reference = attention_reference(*second, mask)
    output = results[MASKED].view(np.float16).astype(np.float64)
    assert (np.abs(output - reference) <= 4 * 2**-10 * np.abs(reference).max(axis=1, keepdims=True)).all()


def test_clocks(run):
    """Dense keeps the units busy; the masked head takes what its longest unit takes, and little more."""
    data, head, sizes, results, _, counters = run
    dense, masked = counters[DENSE], counters[MASKED]
    assert dense["array_beats"] / (sizes.n_banks * dense["array_busy"]) >= 0.97
    longest = max(masked[f"{unit}_busy"] for unit in ("array", "softmax", "engines"))
    bits = bits_of(results["mask"].astype(bool), sizes)
    spmm_work = CoreTiming(sizes).spmm(bits, head.first.shape[2]).work
    assert spmm_work / masked["engines_busy"] >= 0.9
    assert masked["cycles"] <= 1.10 * longest
    assert counters["step t+1, dense"]["cycles"] / masked["cycles"] >= 1.8
    sddmm = data["A_cycles"][2 * HEAD, THETA, 0, 3, 4] * -(-head.first.shape[2] // sizes.n_lanes)
    assert masked["array_busy"] <= 1.03 * sddmm + 2 * sizes.n_banks + 10


def test_cycle_model(run):
    """The model of golden.timing.cycle_model tells the clocks of every unit."""
    _, head, sizes, results, _, counters = run
    timing = CoreTiming(sizes)
    mask = results["mask"].astype(bool)
    for name, kept in ((DENSE, np.ones_like(mask)), (MASKED, mask)):
        times = timing.head(bits_of(kept, sizes), head.first.shape[2], makes_mask=name == DENSE)
        for unit, command in (("array", "sddmm"), ("softmax", "softmax"), ("engines", "spmm")):
            assert abs(times[command].cycles - counters[name][f"{unit}_busy"]) <= 2, (name, command)
