"""Programs of DiT blocks in the golden model: results against a float64 reference of the block."""

from typing import Any

import numpy as np
import pytest

from golden.core.core import Core
from golden.program.assembler import Program
from golden.program.dit.block import DitBlocks
from golden.program.dit.checkpoint import DitSmall
from golden.program.dit.places import Options, Sparsity
from golden.program.dit.reference import block_reference, gelu_erf, gelu_tanh
from golden.program.dit.weights import BlockShape, random_block
from hw.registry import make_block
from verif.bench.datasets import DATA

MODEL = DATA / "dit_small.safetensors"


def run_blocks(sizes, shape, x, condition, blocks, sparsity=None, **options):
    """Tokens after the blocks, in numbers; the program's results, and its golden run."""
    program = Program(sizes)
    results = DitBlocks(program, shape, Options(**options)).build(x, condition, blocks, sparsity)
    run = Core(sizes).execute(program.commands, program.load_beats)
    assert all(run.executed) and all(store.defined(run).all() for store in results.tokens)
    return results.tokens_of(run).view(np.float16).astype(np.float64), results, run


def error_of(found, exact):
    """The largest error, relative to the largest element."""
    return np.abs(found - exact).max() / np.abs(exact).max()


@pytest.mark.parametrize("preset", ["tiny", "small"])
@pytest.mark.parametrize("options", [{}, {"on_engines": False}, {"rows": 3, "attention_rows": 5}], ids=str)
def test_blocks_of_random_weights(preset, options):
    """Odd numbers of tokens, heads that do not fill words; two blocks, so that memory is used again."""
    sizes = make_block("core", preset).parameters
    dim = sizes.n_lanes
    shape = BlockShape(n_tokens=13, dim=dim, n_heads=dim // 4, hidden=2 * dim)
    rng = np.random.default_rng(1)
    x, condition = rng.standard_normal((13, dim)).astype(np.float16), rng.standard_normal(dim).astype(np.float16)
    blocks = [random_block(shape, seed) for seed in (2, 3)]
    exact = x
    for weights in blocks:
        exact = block_reference(exact, condition, weights, shape.n_heads, gelu_erf)
    found, _, _ = run_blocks(sizes, shape, x, condition, blocks, **options)
    assert error_of(found, exact) < 6 * 2.0**-10


@pytest.mark.parametrize("tokens", [None, [0, 3, 4, 9, 12], []], ids=["all", "some", "none"])
@pytest.mark.parametrize("masked", [False, True], ids=["dense", "masked"])
@pytest.mark.parametrize("on_engines", [False, True], ids=["array", "engines"])
def test_a_step_that_reuses_the_step_before(tokens, masked, on_engines):
    """ST with the masks that the first step made, CTR with its rows, and both."""
    if tokens is None and not masked:
        pytest.skip("that is the dense step of the tests above")
    sizes = make_block("core", "tiny").parameters
    shape = BlockShape(n_tokens=13, dim=8, n_heads=2, hidden=16)
    rng = np.random.default_rng(6)
    xs, conditions = rng.standard_normal((2, 13, 8)).astype(np.float16), rng.standard_normal((2, 8)).astype(np.float16)
    blocks = [random_block(shape, seed) for seed in (2, 3)]
    options = {"on_engines": on_engines, "rows": 3, "attention_rows": 5}
    first = Sparsity(theta=0.08 if masked else None, keep=True)
    before, results, run = run_blocks(sizes, shape, xs[0], conditions[0], blocks, first, **options)
    sparsity = results.next_step(run, tokens)
    if masked:
        kept = np.mean([mask for heads in sparsity.masks or [] for mask, _ in heads])
        assert 0.2 < kept < 0.8
    x = xs[1].copy()
    if tokens is not None:
        rest = np.setdiff1d(np.arange(13), tokens)
        x[rest] = before[rest]
    found, _, _ = run_blocks(sizes, shape, x, conditions[1], blocks, sparsity, **options)
    exact = x
    for index, weights in enumerate(blocks):
        exact = block_reference(
            exact,
            conditions[1],
            weights,
            shape.n_heads,
            gelu_erf,
            masks=sparsity.masks and sparsity.masks[index],
            tokens=tokens,
            cached=sparsity.cached and sparsity.cached[index],
        )
    assert error_of(found, exact) < 6 * 2.0**-10


WRONG = [
    ({"theta": 0.1, "masks": [[]]}, "theta, to make masks, and masks, to use them, cannot be given both"),
    ({"tokens": [1]}, "tokens and cached must be given together"),
    ({"masks": []}, "masks must have an item for each of the 1 blocks, not 0"),
    ({"tokens": [2, 1], "cached": [0]}, r"tokens must be ascending numbers from 0 to 3, not \[2, 1\]"),
    ({"tokens": [4], "cached": [0]}, r"tokens must be ascending numbers from 0 to 3, not \[4\]"),
    ({"tokens": [1], "cached": [0], "theta": 0.1}, "theta needs all rows"),
]


@pytest.mark.parametrize("given, message", WRONG, ids=[message for _, message in WRONG])
def test_wrong_sparsity(given, message):
    with pytest.raises(ValueError, match=message):
        Sparsity(**given).check(BlockShape(4, 8, 2, 16), 1)


def test_wrong_shapes():
    for wrong, message in (
        ((13, 8, 3, 16), "n_heads must divide dim=8, not 3"),
        ((0, 8, 2, 16), "n_tokens must be at least 1, not 0"),
    ):
        with pytest.raises(ValueError, match=message):
            BlockShape(*wrong)
    wrong_type: Any = 16.0
    with pytest.raises(TypeError, match="hidden must be an integer, not 16.0"):
        BlockShape(13, 8, 2, wrong_type)
    weights = random_block(BlockShape(13, 8, 2, 16))
    with pytest.raises(ValueError, match=r"fc1 must be \[8, 32\], not \[8, 16\]"):
        weights.check(BlockShape(13, 8, 2, 32))
    program = Program(make_block("core", "tiny").parameters)
    with pytest.raises(ValueError, match="imem: a matrix of 64 rows of 32 needs 256 words"):
        DitBlocks(program, BlockShape(64, 32, 2, 32)).build(np.zeros((64, 32)), np.zeros(32), [])
    with pytest.raises(ValueError, match="hidden must be at most max_dim=32, not 64; TiledBlock takes more"):
        DitBlocks(program, BlockShape(8, 16, 2, 64)).build(np.zeros((8, 16)), np.zeros(16), [])


def test_the_trained_model():
    """Block 0 at a step of a real image."""
    model = DitSmall(MODEL)
    x = model.tokens(np.random.default_rng(4).standard_normal((3, 32, 32))).astype(np.float16)
    condition = model.condition(980, 3).astype(np.float16)
    found, _, _ = run_blocks(make_block("core", "edge").parameters, model.shape, x, condition, [model.block(0)])
    errors = {
        gelu.__name__: error_of(found, block_reference(x, condition, model.block(0), model.n_heads, gelu))
        for gelu in (gelu_tanh, gelu_erf)
    }
    print(errors)
    assert errors["gelu_erf"] < 2.0**-9 and errors["gelu_tanh"] < 2.0**-9
