"""What the demo runs on the core: phases, each between two readings of the counters."""

from dataclasses import dataclass, field

import numpy as np

from golden.program.assembler import Program
from golden.spec.sizes import words_for

__all__ = ["MULTIPLIER", "Head", "Phases", "attention", "head_of", "make_phases"]

MULTIPLIER = 13
"""Balances the public heads well; ``python -m golden balance`` finds such."""


@dataclass(frozen=True)
class Head:
    """One head at two adjacent steps, and latents whose changes tell which tokens to compute."""

    first: np.ndarray  # FP16 words [3, n, d]: Q, K, V of step t
    second: np.ndarray  # the same of step t + 1
    theta: float
    latents: np.ndarray  # FP16 words [2, channels, height, width]
    tau: float


def head_of(data, number, theta, step=0, tau=0):
    """A head of the workload's arrays, and the latents of ``step`` and the next one."""
    words = np.ascontiguousarray(data["A_qkv"][2 * number : 2 * number + 2]).view(np.uint16)
    latents = np.ascontiguousarray(data["A_z"][step : step + 2]).view(np.uint16)
    return Head(*words, float(data["A_theta"][theta]), latents, float(data["A_tau"][tau]))


@dataclass
class Phases:
    """A program, the counters of each of its phases, and what it stores besides."""

    program: Program
    counters: dict = field(default_factory=dict)
    transfers: dict = field(default_factory=dict)  # beats that a phase needs loaded before it and stored after it
    results: dict = field(default_factory=dict)
    layers: dict = field(default_factory=dict)  # inputs and weights of the layers behind attention, FP16 words

    @classmethod
    def of(cls, sizes):
        """Nothing yet, on a core of these sizes."""
        return cls(Program(sizes))

    def begin(self):
        """A phase begins: the counters start from zero."""
        self.program.clear(counters=True)

    def end(self, name, transfers):
        """The phase is over: its counters, and how many beats it needs loaded and stored, to be found by name."""
        self.counters[name] = self.program.store_counters()
        self.transfers[name] = transfers


def make_phases(sizes, head, seed=0):
    """Attention dense and masked, then projection and FFN for all tokens and for the selected ones."""
    phases = Phases.of(sizes)
    attention(phases, head)
    _layers(phases, head, np.random.default_rng(seed))
    return phases


def attention(phases, head):
    """Step t dense, which makes the mask and the retained mass of rows; then step t + 1 under the mask."""
    program = phases.program
    n, d = head.first.shape[1:]
    scale = d**-0.5
    program.load_mask(np.ones((1, n), bool), 0, MULTIPLIER)
    mask_beats = len(program.load_beats)
    query, keys, values = _load(program, head.first)
    beats = len(program.load_beats) - mask_beats + _row_beats(program, query)
    phases.begin()
    probabilities = program.softmax(program.sddmm(query, keys), scale, head.theta, mask_out=1)
    output = program.spmm(probabilities, values)
    phases.end("step t, dense, makes the mask", beats)
    phases.results |= {
        "mask": program.store_mask(1, n, n, MULTIPLIER),
        "mass": program.store_mass(n),
        "dense": program.store_rows(output),
    }
    _load(program, head.second, query, keys, values)
    for name, mask, use_mass in (("dense", 0, False), ("masked", 1, False), ("masked, retained mass", 1, True)):
        phases.begin()
        scores = program.sddmm(query, keys, mask=mask, at=0)
        program.spmm(program.softmax(scores, scale, use_mass=use_mass, at=0), values, into=output)
        phases.end(f"step t+1, {name}", beats)
        phases.results[f"step t+1, {name}"] = program.store_rows(output)


def _row_beats(program, matrix):
    """Beats of a STORE of all rows."""
    return matrix.n_rows * words_for(matrix.n, program.sizes.row_word)


def _load(program, head, query=None, keys=None, values=None):
    """Q, K and V, where those of the step before were."""
    return (
        program.load_rows(head[0], into=query),
        program.load_keys(head[1], MULTIPLIER, at=keys and keys.first),
        program.load_values(head[2], MULTIPLIER, at=values and values.first),
    )


def _layers(phases, head, rng):
    """The output projection and an FFN with GELU, on the attention's output, with random weights."""
    program, d = phases.program, head.first.shape[2]
    beats_before = len(program.load_beats)
    width = min(4 * d, program.sizes.max_dim // 4)
    shapes = {"projection": (d, width), "fc1": (width, 4 * width), "fc2": (4 * width, width)}
    for name, shape in shapes.items():
        weights = (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float16)
        bias = (0.1 * rng.standard_normal(shape[1])).astype(np.float16)
        phases.layers[name] = weights, bias
    loaded = {name: program.load_weights(*words) for name, words in phases.layers.items()}
    source = program.load_rows(head.first[0])
    beats = len(program.load_beats) - beats_before
    rows = None
    for gated in (False, True):
        if gated:
            program.ctr(head.latents[0], 0.0, restart=True)
            beats_before = len(program.load_beats)
            program.ctr(head.latents[1], head.tau)
            beats += len(program.load_beats) - beats_before
            phases.results["tokens"] = program.store_tokens()
        phases.begin()
        rows = rows or [None] * 4
        rows[0] = program.matmul(source, loaded["projection"], gated, rows[0])
        rows[1] = program.matmul(rows[0], loaded["fc1"], gated, rows[1])
        rows[2] = program.elementwise("gelu", rows[1], gated=gated, into=rows[2])
        rows[3] = program.matmul(rows[2], loaded["fc2"], gated, rows[3])
        name = f"projection and FFN, {'selected' if gated else 'all'} rows"
        phases.end(name, beats + _row_beats(program, rows[3]))
        phases.results[name] = program.store_rows(rows[3])
