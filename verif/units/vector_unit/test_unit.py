"""The vector unit's Verilog on SpMM of a real attention head, and its refusal of wrong parameters."""

import numpy as np
import pytest

from golden.arith.floats import from_float64, to_float64
from golden.core.attention import attention_reference, scores_reference, softmax_reference
from golden.core.spmm import spmm, spmm_commands
from golden.spec.formats import FP16, FP32
from golden.units.hash_bank_mapper import BankMap
from hw.units.vector_unit.unit import VectorUnit
from verif.bench.datasets import workload
from verif.bench.recorded import replay
from verif.units.vector_unit.bench import VectorUnitBench

pytestmark = pytest.mark.slow


def run(block, commands, **options):
    """Run a program; returns the golden results that the Verilog has matched."""
    bench = VectorUnitBench(block, 0)
    result = replay(block, bench.program(commands), **options)
    assert not result.messages, result.messages
    assert result.passed
    return bench.unit_model.execute(commands)


def test_spmm_of_a_real_head():
    """Rows of a masked head, four columns of V: the Verilog's bits, golden.core.spmm's, and the float64 bound."""
    data = workload()
    query, key, value = data["A_qkv"][1].astype(np.float64)
    n_columns = len(key)
    mask = np.unpackbits(data["A_mask"][0, 1], axis=-1, bitorder="little")[:, :n_columns].astype(bool)
    filled = mask.sum(axis=1)
    # The emptiest, the fullest, and some between.
    rows = np.argsort(filled, kind="stable")[np.linspace(0, len(mask) - 1, 6).astype(int)]
    mask = mask[rows]
    weights_of_keys = softmax_reference(scores_reference(query[rows], key), mask)
    weights, words = from_float64(FP16, weights_of_keys), from_float64(FP16, value[:, :4])

    block = VectorUnit(n_engines=4, n_lanes=4, bank_depth=n_columns // 4)
    bank_map = BankMap(n_columns=n_columns, n_banks=4, multiplier=13)
    engine, address = bank_map.locate(np.arange(n_columns))
    bench = VectorUnitBench(block, 0)
    commands = spmm_commands(weights, mask, words, engine, address, bench.unit_model)
    results = run(block, commands, stall="random")
    single, rounded = spmm(weights, mask, words, engine, address, 4)
    assert np.array_equal(results.single[:, :4], single) and np.array_equal(results.rounded[:, :4], rounded)
    assert filled.max() > 0 and len(single) == 6

    exact = to_float64(FP16, weights) * mask @ value[:, :4]
    largest = np.abs((to_float64(FP16, weights) * mask)[:, :, None] * value[:, :4]).max(axis=1)
    bound = mask.sum(axis=1)[:, None] * 2.0**-25 * largest + 2.0**-24 * np.abs(exact) + 2.0**-150
    assert (np.abs(to_float64(FP32, single) - exact) <= bound).all()
    # The weights' own rounding to FP16 is what is left of the error of the attention.
    reference = attention_reference(query[rows], key, value[:, :4], mask)
    assert np.abs(to_float64(FP16, rounded) - reference).max() < 2.0**-9 * np.abs(value).max()


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n_engines": 3}, "n_engines must be a power of two from 1 to 128, not 3"),
        ({"n_lanes": 0}, "n_lanes must be an integer from 1 to 128, not 0"),
        ({"format": "int8"}, "format must be one of fp16, bf16, not 'int8'"),
        ({"align_width": 40, "n_engines": 128}, "align_width must be at most 34 with max_terms 65536"),
    ],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        VectorUnit(**parameters)
