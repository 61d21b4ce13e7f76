"""DiT blocks on the emitted Verilog: bits of the golden model; the trained model's block on edge, with its clocks."""

import shutil

import numpy as np
import pytest

from golden.core.core import Core
from golden.program.assembler import Program
from golden.program.dit.block import DitBlocks
from golden.program.dit.checkpoint import DitSmall
from golden.program.dit.places import Sparsity
from golden.program.dit.tiled import TiledBlock
from golden.program.dit.weights import BlockShape, random_block
from golden.program.host import HostProgram
from hw.registry import make_block
from verif.bench.datasets import DATA
from verif.core.session import run_program

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(not shutil.which("g++"), reason="this core is too large for Icarus, and Verilator needs g++"),
]


def check_bits(session, store):
    """All stored words that are defined."""
    assert session.values.shape == store.values.shape and store.defined.any()
    np.testing.assert_array_equal(session.values[store.defined], store.values[store.defined])
    np.testing.assert_array_equal(session.last, store.last)


def inputs(shape):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((shape.n_tokens, shape.dim)).astype(np.float16)
    return x, rng.standard_normal(shape.dim).astype(np.float16)


def test_blocks_in_imem():
    """Two blocks with masks and a token list, on tiny."""
    block = make_block("core", "tiny")
    shape = BlockShape(n_tokens=13, dim=8, n_heads=2, hidden=16)
    x, condition = inputs(shape)
    rng = np.random.default_rng(4)
    masks = [[(rng.random((13, 13)) < 0.5, np.float16(rng.random(13)).view(np.uint16))] * 2] * 2
    sparsity = Sparsity(masks=masks, tokens=[0, 3, 4, 9, 12], cached=[x, x])
    program = Program(block.parameters)
    DitBlocks(program, shape).build(x, condition, [random_block(shape, seed) for seed in (1, 2)], sparsity)
    store = Core(block.parameters).execute(program.commands, program.load_beats).store
    check_bits(run_program(block, program, is_long=False), store)


def test_a_block_tile_by_tile():
    """Pieces of sums, tiles of weights that do not fill the last group, columns shared with the engines."""
    block = make_block("core", "tiny")
    shape = BlockShape(n_tokens=9, dim=30, n_heads=5, hidden=40)
    x, condition = inputs(shape)
    program = HostProgram(block.parameters)
    TiledBlock(program, shape).build(x, condition, random_block(shape))
    program.run()
    store = Core(block.parameters).execute(program.commands, program.load_beats).store
    check_bits(run_program(block, program, is_long=False), store)


def test_the_trained_model():
    """Block 0, dense, with all loads at 32 bytes a clock: at most 1.10 clocks for 256 products."""
    block, model = make_block("core", "edge"), DitSmall(DATA / "dit_small.safetensors")
    x = model.tokens(np.random.default_rng(5).standard_normal((3, 32, 32))).astype(np.float16)
    program = Program(block.parameters)
    DitBlocks(program, model.shape).build(x, model.condition(795, 3).astype(np.float16), [model.block(0)])
    session = run_program(block, program, load_interval=block.parameters.row_word * 2 // 32)
    check_bits(session, Core(block.parameters).execute(program.commands, program.load_beats).store)
    clocks = int(session.ends[-1]) + 1
    print(f"{clocks} clocks, {clocks * 256 / model.shape.products:.3f} of products / 256")
    assert clocks * 256 <= 1.10 * model.shape.products
