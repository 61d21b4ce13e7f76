"""The hash bank mapper beyond the standard testbench: every index, its arithmetic, bad parameters."""

import numpy as np
import pytest
from amaranth.hdl import Value
from amaranth.sim import Simulator

from hw.arith.modular_inverse import ModularInverse
from hw.arith.modular_multiplier import ConstantModularMultiplier, ModularMultiplier, signed_digits
from hw.registry import make_block
from hw.units.hash_bank_mapper.unit import HashBankMapper
from verif.bench.harness import run_bench

BATCHES = 9
CORNERS = 8

EVERY_INDEX = [
    {"n_columns": 256, "n_banks": 16, "multiplier": 13, "n_indices": 4},
    {"n_columns": 200, "n_banks": 8, "multiplier": "runtime", "n_indices": 4},
    {"n_columns": 100, "n_banks": 4, "hash": "xor_fold", "n_indices": 2},
    {"n_columns": 37, "n_banks": 64, "hash": "range"},
    {"n_columns": 32, "n_banks": 1, "direction": "inverse"},
    {"n_columns": 31, "n_banks": 8, "hash": "modular", "direction": "forward"},
]


@pytest.mark.slow
@pytest.mark.parametrize("parameters", EVERY_INDEX, ids=lambda p: "-".join(map(str, p.values())))
def test_every_index_and_slot(parameters):
    block = make_block("hash_bank_mapper", None, parameters)
    sizes = [len(Value.cast(getattr(block, name).payload)) for name in ("index", "slot") if hasattr(block, name)]
    words = 1 << max(sizes) // block.n_indices
    result = run_bench(block, seed=3, count=BATCHES * (2 * words // block.n_indices + CORNERS))
    assert result.passed, result.messages
    for name in ("index", "slot"):
        assert not hasattr(block, name) or result.bins[f"every_{name}"] == BATCHES


def test_signed_digits_add_up_and_are_few():
    assert signed_digits(13, 12) == [(0, 1), (2, 1), (3, 1)]
    assert signed_digits(2531, 12) == [(0, 1), (1, 1), (5, -1), (9, 1), (11, 1)]
    assert signed_digits(0, 8) == []
    for width in range(1, 11):
        for multiplier in range(1 << width):
            digits = signed_digits(multiplier, width)
            assert sum(sign << exponent for exponent, sign in digits) % (1 << width) == multiplier
            assert len(digits) <= multiplier.bit_count()


def simulate(block, testbench):
    simulator = Simulator(block)
    simulator.add_testbench(testbench)
    simulator.run()


def test_constant_products():
    checked = []
    rng = np.random.default_rng(1)
    for width, multiplier in [(1, 1), (3, 5), (6, 0), (6, 63), (8, 159), (8, 201), (12, 2531)]:
        block = ConstantModularMultiplier(width=width, multiplier=multiplier)

        async def testbench(ctx, block=block, width=width, multiplier=multiplier):
            for operand in range(1 << width) if width < 8 else rng.integers(0, 1 << width, 100).tolist():
                ctx.set(block.multiplicand, operand)
                assert ctx.get(block.product) == operand * multiplier % (1 << width)
                checked.append(operand)

        simulate(block, testbench)
    assert len(checked) == 2 + 8 + 64 + 64 + 300


def test_variable_products():
    checked = []
    for width in (1, 2, 4):
        block = ModularMultiplier(width=width)

        async def testbench(ctx, block=block, width=width):
            for left in range(1 << width):
                for right in range(1 << width):
                    ctx.set(block.multiplicand, left)
                    ctx.set(block.multiplier, right)
                    assert ctx.get(block.product) == left * right % (1 << width)
                    checked.append((left, right))

        simulate(block, testbench)
    assert len(checked) == 4 + 16 + 256


@pytest.mark.parametrize("width", [1, 2, 5, 8])
def test_inverses_of_all_odd_numbers(width):
    block = ModularInverse(width=width)
    found = []

    async def testbench(ctx):
        for number in range(1, 1 << width, 2):
            ctx.set(block.number, number)
            waited = 0
            while not ctx.get(block.ready):
                await ctx.tick()
                waited += 1
            assert waited == width + 1
            assert ctx.get(block.inverse) * number % (1 << width) == 1
            found.append(number)
            # A change of mind half-way restarts the division.
            ctx.set(block.number, (number + 4) % (1 << width))
            for _ in range(width // 2):
                await ctx.tick()
                assert not ctx.get(block.ready) or width < 3

    simulator = Simulator(block)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert len(found) == max(1, 1 << width - 1)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n_columns": 0}, "n_columns must be an integer from 1 to 65536, not 0"),
        ({"n_columns": 65537}, "n_columns must be an integer from 1 to 65536, not 65537"),
        ({"n_banks": 12}, "n_banks must be a power of two"),
        ({"multiplier": 12}, "multiplier must be none, or an odd integer from 1 to 4294967295, or runtime, not 12"),
        ({"multiplier": "fixed"}, "multiplier must be .*, not 'fixed'"),
        ({"multiplier": 3, "hash": "modular"}, "multiplier must be none for hash modular, not 3"),
        ({"multiplier": "runtime", "hash": "xor_fold"}, "multiplier must be none for hash xor_fold, not 'runtime'"),
        ({"hash": "sha"}, "hash must be one of modular, range, multiplicative, xor_fold, not 'sha'"),
        ({"n_indices": 0}, "n_indices must be an integer from 1 to"),
        ({"direction": "up"}, "direction must be one of both, forward, inverse, not 'up'"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        HashBankMapper(**parameters)


def test_wrong_types_are_refused():
    with pytest.raises(TypeError, match="multiplier must be .*, not 1.5 of type float"):
        HashBankMapper(multiplier=1.5)
