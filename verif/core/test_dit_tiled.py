"""Programs of DiT blocks tile by tile, in the golden model: results against a float64 reference; large ones built."""

import numpy as np
import pytest

from golden.program.dit.reference import block_reference, gelu_erf, silu
from golden.program.dit.tiled import TiledBlock
from golden.program.dit.weights import BlockShape, random_block
from golden.program.host import HostMatrix, HostProgram
from golden.spec.sizes import CoreSizes
from hw.registry import make_block

POINTS = {
    "all in one tile": ("tiny", {}, BlockShape(13, 8, 2, 16)),
    "sums of pieces": ("tiny", {}, BlockShape(50, 24, 3, 96)),
    "little memory": ("tiny", {"imem_depth": 60, "wmem_depth": 64, "pmem_depth": 20}, BlockShape(20, 24, 3, 96)),
    "no partial sums": ("tiny", {"pmem_depth": 0}, BlockShape(20, 24, 3, 96)),
    "few partial sums": ("tiny", {"pmem_depth": 2}, BlockShape(5, 24, 3, 40)),
    "heads that fill no words": ("small", {}, BlockShape(60, 40, 5, 64)),
    "columns shared with the engines": ("tiny", {"max_head_dim": 8}, BlockShape(30, 12, 2, 16)),
    "groups that straddle words": ("tiny", {"n_lanes": 9, "simd_lanes": 3, "max_dim": 36}, BlockShape(20, 24, 3, 40)),
}


def inputs(shape):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((shape.n_tokens, shape.dim)).astype(np.float16)
    return x, rng.standard_normal(shape.dim).astype(np.float16), random_block(shape, 2)


@pytest.mark.parametrize("preset, parameters, shape", POINTS.values(), ids=POINTS)
def test_blocks_of_random_weights(preset, parameters, shape):
    sizes = make_block("core", preset, parameters).parameters
    x, condition, weights = inputs(shape)
    program = HostProgram(sizes)
    result = TiledBlock(program, shape).build(x, condition, weights)
    with pytest.raises(ValueError, match="not known before the program was run"):
        _ = program.load_beats
    program.run()
    found = result.words.view(np.float16).astype(np.float64)
    exact = block_reference(x, condition, weights, shape.n_heads, gelu_erf)
    assert np.abs(found - exact).max() < 6 * 2.0**-10 * np.abs(exact).max()


def test_vectors_of_the_host():
    """The host may compute the six vectors: the same block but for the rounding of these."""
    shape = BlockShape(13, 8, 2, 16)
    x, condition, weights = inputs(shape)
    vectors = silu(condition.astype(np.float64)) @ weights.ada.astype(np.float64) + weights.ada_bias
    program = HostProgram(CoreSizes())
    result = TiledBlock(program, shape).build(x, None, weights, vectors.reshape(6, -1))
    program.run()
    exact = block_reference(x, condition, weights, shape.n_heads, gelu_erf)
    assert np.abs(result.words.view(np.float16) - exact).max() < 6 * 2.0**-10 * np.abs(exact).max()


@pytest.mark.parametrize("n_tokens", [256, 1024])
def test_a_block_of_dit_xl(n_tokens):
    """D = 1152, 16 heads of 72, hidden rows of 4608 on disc: legal commands, and every product once."""
    shape = BlockShape(n_tokens, 1152, 16, 4608)
    sizes = make_block("core", "disc").parameters
    program = HostProgram(sizes)
    zeros = np.zeros((6, 1152), np.float16)
    TiledBlock(program, shape).build(np.zeros((n_tokens, 1152), np.float16), None, random_block(shape), zeros)
    counted = sum(products_of(command, sizes) for command in program.commands)
    assert counted == shape.products


def products_of(command, sizes):
    """Multiplications that a command is for, without padding."""
    name = command.opcode.name
    if name in ("MATMUL", "SDDMM", "WEIGHTED_SUM", "SPMM"):
        return command.n_rows * command.n_in * command.n_out
    return 0


REFUSED = [
    ({}, BlockShape(65, 8, 2, 16), "n_tokens must be at most max_tokens=64 of the core, not 65"),
    ({}, BlockShape(8, 36, 4, 16), "dim must be at most max_dim=32, a row of LAYER_NORM, not 36"),
    ({}, BlockShape(8, 32, 1, 16), "dim / n_heads must be at most max_head_dim=16 of the core, not 32"),
    ({"wmem_depth": 16}, BlockShape(50, 24, 3, 24), "wmem: keys of 50 tokens needs 32 words"),
    ({"imem_depth": 13}, BlockShape(20, 32, 4, 32), "imem: "),
]


@pytest.mark.parametrize("parameters, shape, message", REFUSED, ids=[message for *_, message in REFUSED])
def test_what_does_not_fit(parameters, shape, message):
    sizes = make_block("core", "tiny", parameters).parameters
    x, condition, weights = inputs(shape)
    with pytest.raises(ValueError, match=message):
        TiledBlock(HostProgram(sizes), shape).build(x, condition, weights)


def test_host_matrices():
    matrix = HostMatrix(2, 3, np.array([[1.0, 2, 3], [4, 5, 6]]))
    assert matrix.part((1, 1), (1, 2)).view(np.float16).tolist() == [[5, 6]]
    assert not HostMatrix(2, 3).words.any()
