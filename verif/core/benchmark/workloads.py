"""The workloads: programs, the core that runs them, the rate of its bus, and the products that they are for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from golden.core.core import Core
from golden.program.assembler import Program
from golden.program.dit.block import DitBlocks
from golden.program.dit.checkpoint import DitSmall
from golden.program.dit.places import Sparsity
from golden.program.dit.tiled import TiledBlock
from golden.program.dit.weights import BlockShape, random_block
from golden.program.host import HostProgram
from golden.spec.sizes import CoreSizes
from hw.presets import CORES
from verif.bench import datasets
from verif.core.demo.program import MULTIPLIER, head_of

__all__ = ["WORKLOADS", "Workload", "sizes_of"]


@dataclass(frozen=True)
class Workload:
    """``make(sizes)``: the program, the products that it needs, and the command with which the measured part begins.

    The part ends with the program's last command. ``on_verilog``: whether it is small enough to be simulated.
    """

    name: str
    config: str
    bytes_a_clock: int | None
    make: Callable
    on_verilog: bool = True
    parameters: tuple = ()


def sizes_of(workload):
    """The core of a workload."""
    values: dict[str, Any] = {**CORES[workload.config], **dict(workload.parameters)}
    return CoreSizes(**values)


def _products(program, commands):
    """Multiplications that the commands are for: those of the elements that a mask selects are counted elsewhere."""
    names = ("MATMUL", "PROJECT", "SDDMM", "WEIGHTED_SUM", "SPMM")
    return sum(item.n_rows * item.n_in * item.n_out for item in commands if item.opcode.name in names)


def _head(is_masked):
    """The demo's head, data in the core's memories; a masked one has the mask that the step before made."""

    def make(sizes):
        head = head_of(datasets.workload(), 0, 1)
        n, d = head.first.shape[1:]
        program = Program(sizes)
        program.load_mask(np.ones((1, n), bool), 0, MULTIPLIER)
        query, keys, values = _load(program, head.first)
        probabilities = program.softmax(program.sddmm(query, keys), d**-0.5, head.theta, mask_out=1)
        output = program.spmm(probabilities, values)
        _load(program, head.second, query, keys, values)
        program.clear(counters=True)
        begin, mask = len(program.commands), 1 if is_masked else 0
        scores = program.sddmm(query, keys, mask=mask, at=0)
        program.spmm(program.softmax(scores, d**-0.5, use_mass=is_masked, at=0), values, into=output)
        program.store_counters()
        return program, 2 * n * n * d, begin

    return make


def _load(program, head, query=None, keys=None, values=None):
    return (
        program.load_rows(head[0], into=query),
        program.load_keys(head[1], MULTIPLIER, at=keys and keys.first),
        program.load_values(head[2], MULTIPLIER, at=values and values.first),
    )


def _heads(is_masked, n_heads=4):
    """Heads one after the other: while one is computed, the next one's data come and the last one's results go."""

    def make(sizes):
        head = head_of(datasets.workload(), 0, 1)
        n, d = head.first.shape[1:]
        program = Program(sizes)
        program.load_mask(np.ones((1, n), bool), 0, MULTIPLIER)
        made = Program(sizes)
        made.load_mask(np.ones((1, n), bool), 0, MULTIPLIER)
        rows, keys, _ = _load(made, head.first)
        made.softmax(made.sddmm(rows, keys), d**-0.5, head.theta, mask_out=1)
        mask = made.store_mask(1, n, n, MULTIPLIER).of(Core(sizes).execute(made.commands, made.load_beats))
        output = [program.matrix(n, d) for _ in range(2)]
        places = [_load(program, head.second), None]
        if is_masked:
            program.load_mask(mask, 1, MULTIPLIER)
        program.clear(counters=True)
        begin = len(program.commands)
        for index in range(n_heads):
            query, keys, values = places[index % 2]
            scores = program.sddmm(query, keys, mask=1 + index % 2 if is_masked else 0, at=0)
            if index + 1 < n_heads:
                if is_masked:
                    program.load_mask(mask, 2 - index % 2, MULTIPLIER)
                places[1 - index % 2] = _load(program, head.second, *(places[1 - index % 2] or (None, None, None)))
            probabilities = program.softmax(scores, d**-0.5, at=0)
            program.spmm(probabilities, values, into=output[index % 2])
            program.store_rows(output[index % 2])
        return program, n_heads * 2 * n * n * d, begin

    return make


def _layers(sizes):
    """The demo's projection and FFN, for all rows; weights are in the core."""
    head = head_of(datasets.workload(), 0, 1)
    d = head.first.shape[2]
    width = min(4 * d, sizes.max_dim // 4)
    rng = np.random.default_rng(0)
    program = Program(sizes)
    loaded = []
    for shape in ((d, width), (width, 4 * width), (4 * width, width)):
        weights = (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float16)
        loaded.append(program.load_weights(weights, (0.1 * rng.standard_normal(shape[1])).astype(np.float16)))
    rows = program.load_rows(head.first[0])
    program.clear(counters=True)
    begin = len(program.commands)
    for layer in loaded[:2]:
        rows = program.matmul(rows, layer)
    program.matmul(program.elementwise("gelu", rows), loaded[2])
    program.store_counters()
    return program, _products(program, program.commands[begin:]), begin


def _dit_small(kind):
    """Block 0 of the trained model with adaLN; ST with the masks of the step before, CTR with half of the tokens."""

    def make(sizes):
        model = DitSmall(datasets.DATA / "dit_small.safetensors")
        x = model.tokens(np.random.default_rng(5).standard_normal((3, 32, 32))).astype(np.float16)
        condition, blocks = model.condition(795, 3).astype(np.float16), [model.block(0)]
        sparsity = None
        if kind != "dense":
            before = Program(sizes)
            made = DitBlocks(before, model.shape)
            step = made.build(x, condition, blocks, Sparsity(theta=2.0**-9, keep=True))
            tokens = list(range(0, model.shape.n_tokens, 2)) if kind == "ctr" else None
            sparsity = step.next_step(Core(sizes).execute(before.commands, before.load_beats), tokens)
        program = Program(sizes)
        DitBlocks(program, model.shape).build(x, condition, blocks, sparsity)
        return program, model.shape.products, 0

    return make


def _dit_xl(n_tokens):
    """A block of DiT-XL/2 with random weights, tile by tile; the six vectors of adaLN come from the host."""

    def make(sizes):
        shape = BlockShape(n_tokens, 1152, 16, 4608)
        program = HostProgram(sizes)
        zeros = np.zeros((6, 1152), np.float16)
        TiledBlock(program, shape).build(np.zeros((n_tokens, 1152), np.float16), None, random_block(shape), zeros)
        return program, shape.products, 0

    return make


WORKLOADS = (
    Workload("head, dense", "edge", None, _head(False)),
    Workload("head, masked", "edge", None, _head(True)),
    Workload("4 heads, dense, loads and stores", "edge", 64, _heads(False)),
    Workload("4 heads, masked, loads and stores", "edge", 64, _heads(True)),
    Workload("projection and FFN", "edge", None, _layers),
    Workload("dit_small block, dense", "edge", 32, _dit_small("dense")),
    Workload("dit_small block, ST", "edge", 32, _dit_small("st")),
    Workload("dit_small block, CTR half the tokens", "edge", 32, _dit_small("ctr")),
    Workload("DiT-XL/2 block, 256 tokens", "disc", 64, _dit_xl(256), on_verilog=False),
    Workload("DiT-XL/2 block, 1,024 tokens", "disc", 64, _dit_xl(1024), on_verilog=False),
    Workload(
        "DiT-XL/2 block, 4,096 tokens",
        "disc",
        64,
        _dit_xl(4096),
        on_verilog=False,
        parameters=(("max_tokens", 4096), ("wmem_depth", 256), ("vmem_depth", 64)),
    ),
)
