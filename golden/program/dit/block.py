"""Programs of DiT blocks whose tokens stay in IMEM: any number of blocks, one after the other.

    x += g1 * proj(attention(ln(x) * (1 + s1) + b1));   x += g2 * fc2(gelu(fc1(ln(x) * (1 + s2) + b2)))

with (b1, s1, g1, b2, s2, g2) = ada(silu(condition)). Weights come while others compute, and nothing is loaded twice.
What a core of the edge preset takes in detours: see docs/dit.md.
"""

from dataclasses import dataclass, field

import numpy as np

from golden.program.dit.places import Options, Places, Sparsity
from golden.program.dit.steps import Step, run_steps
from golden.program.dit.weights import BlockShape

__all__ = ["DitBlocks", "Results"]

_B1, _S1, _G1, _B2, _S2, _G2 = range(6)
"""The vectors of adaLN in the order of the weights."""
_GAMMA_1, _BETA_1, _GATE_1, _GAMMA_2, _BETA_2, _GATE_2 = range(6)
"""The rows in which they are kept: gamma and beta of a LAYER_NORM are adjacent."""
_ROW_OF = {_S1: _GAMMA_1, _B1: _BETA_1, _G1: _GATE_1, _S2: _GAMMA_2, _B2: _BETA_2, _G2: _GATE_2}
_MADE = 1
"""The mask that a step makes or uses; mask 0 selects all."""


@dataclass
class Results:
    """What a program stores, as handles: tokens in blocks of rows; for each block pairs of mask and mass a head, and
    the rows from which keys and values are computed."""

    tokens: list = field(default_factory=list)
    masks: list = field(default_factory=list)
    cached: list = field(default_factory=list)

    def tokens_of(self, run):
        """The tokens after the last block in a golden run, FP16 words [n, dim]."""
        return np.concatenate([stored.of(run) for stored in self.tokens])

    def next_step(self, run, tokens=None, use_mass=True):
        """The :class:`Sparsity` of the next step, as far as this one stored what it needs."""
        masks = [
            [(mask.of(run), mass.of(run) if use_mass else None) for mask, mass in heads]
            for heads in self.masks
            if heads
        ]
        return Sparsity(
            masks=masks or None,
            tokens=tokens,
            cached=None if tokens is None else [stored.of(run) for stored in self.cached],
        )


class DitBlocks:
    """Builds blocks into a program, in which it places what they share."""

    def __init__(self, program, shape: BlockShape, options: Options | None = None):
        shape.check(program.sizes)
        self.program, self.shape, self.options = program, shape, options or Options()

    def build(self, x, condition, blocks, sparsity=None):
        """Load tokens and condition, run blocks of these weights, store the tokens: :class:`Results`.

        With ``tokens`` the other rows of ``x`` are passed on, as they are.
        """
        program, shape = self.program, self.shape
        self.sparsity = sparsity or Sparsity()
        self.sparsity.check(shape, len(blocks))
        self.is_gated = self.sparsity.tokens is not None
        self.places = places = Places(
            program, shape, self.options, len(self.sparsity.tokens) if self.sparsity.tokens is not None else None
        )
        self.results = Results()
        program.load_rows(np.asarray(condition, np.float16)[None], into=places.condition)
        program.load_rows(np.ones((1, shape.dim), np.float16), into=places.ones)
        program.load_mask(np.ones((1, shape.n_tokens), bool), 0, places.multiplier)
        if self.is_gated:
            program.load_tokens(self.sparsity.tokens)
        program.elementwise("silu", places.condition, into=places.condition)
        steps = []
        for index, weights in enumerate(blocks):
            weights.check(shape)
            steps += self._block(index, weights.folded(), x if index == 0 else None, index == len(blocks) - 1)
        run_steps(program, steps, self.options.ahead)
        return self.results

    def _blocks(self, size):
        """Blocks of the rows that are computed, ``(first, number)``: rows, or entries of the token list."""
        n = self.shape.n_tokens if self.sparsity.tokens is None else len(self.sparsity.tokens)
        return [(first, min(size, n - first)) for first in range(0, n, size)]

    def _part(self, matrix, block):
        """A matrix for the commands of a block; a gated one starts at row 0, whichever entries it takes."""
        first, n_rows = block
        return matrix.rows(0 if self.is_gated else first, n_rows)

    def _how(self, block):
        """Arguments of commands that do not look at masks."""
        return {"gated": True, "first_row": block[0]} if self.is_gated else {}

    def _block(self, index, weights, x, is_last):
        """The steps of a block; ``x`` are tokens to load first."""
        yield from self._vectors(weights, _S1, _B1)
        yield Step(lambda: self._begin(index, x))
        for head in range(self.shape.n_heads):
            yield from self._head(index, weights, head)
            if head == 0:
                yield from self._vectors(weights, _G1, _S2, _B2, _G2)
        yield Step(self._project, [(self._spread(weights.proj), weights.proj_bias)])
        yield self._feed_forward(weights, is_last)

    def _begin(self, index, x):
        """The rows from which queries, keys and values are computed."""
        program, places = self.program, self.places
        if self.sparsity.cached is not None:
            program.load_rows(self.sparsity.cached[index], into=places.normal)
        if x is not None:
            program.load_rows(x, into=places.x)
        whole = self._blocks(self.shape.n_tokens)
        self._layer_norm(_GAMMA_1, whole[0] if whole else None, places.normal)
        if self.sparsity.keep:
            self.results.cached.append(program.store_rows(places.normal))
        self.results.masks.append([])

    def _spread(self, proj):
        """The rows of the projection as the heads lie in a row of attention, zeros between them."""
        d, n_heads, dim = self.shape.head_dim, self.shape.n_heads, self.shape.dim
        rows = np.pad(proj.reshape(n_heads, d, dim), ((0, 0), (0, self.places.pitch - d), (0, 0)))
        return rows.reshape(-1, dim)

    def _vectors(self, weights, *indices):
        """Steps that compute vectors of adaLN; scales get the 1 that is added to them."""
        program, places = self.program, self.places
        for index in indices:
            row = places.modulation.rows(_ROW_OF[index], 1)

            def compute(loaded, row=row, index=index):
                program.matmul(places.condition, loaded, into=row)
                if index in (_S1, _S2):
                    program.elementwise("add", row, places.ones, into=row)

            yield Step(compute, [weights.modulation(index)])

    def _layer_norm(self, gamma, block, into):
        if block is None:
            return
        program, places = self.program, self.places
        gamma_beta = places.modulation.rows(gamma, 2)
        source, result = self._part(places.x, block), self._part(into, block)
        program.layer_norm(source, gamma_beta, self.options.epsilon, into=result, **self._how(block))

    def _head(self, index, weights, head):
        """Queries of the rows that are computed, keys and values of all: PROJECT takes no token list."""
        program, places, d = self.program, self.places, self.shape.head_dim
        multiplier, values = places.multiplier, places.values[head % len(places.values)]
        project = program.project_values if places.on_engines else program.project_columns
        query, (key, _), (value, _) = (weights.head(kind, head, d) for kind in range(3))

        def compute_queries(loaded):
            for block in self._blocks(self.shape.n_tokens):
                source, into = self._part(places.normal, block), self._part(places.query, block)
                program.matmul(source, loaded, into=into, **self._how(block))

        def compute_keys(loaded):
            program.project_keys(places.normal, loaded, multiplier, at=places.keys.first)

        yield Step(compute_queries, [query])
        yield Step(compute_keys, [(key, None)])
        yield Step(lambda loaded: project(places.normal, loaded, multiplier, at=values.first), [(value, None)])
        yield Step(lambda: self._attend(index, head, values))

    def _attend(self, index, head, values):
        """A head's attention in blocks of rows: scores of a block are computed before the block before is weighed."""
        program, places, d, n = self.program, self.places, self.shape.head_dim, self.shape.n_tokens
        sparsity, mask, softmax = self.sparsity, 0, {}
        if sparsity.theta is not None:
            softmax = {"theta": sparsity.theta, "mask_out": _MADE}
        elif sparsity.masks is not None:
            mask, (bits, mass) = _MADE, sparsity.masks[index][head]
            program.load_mask(bits, mask, places.multiplier)
            if mass is not None:
                program.load_mass(mass)
                softmax = {"use_mass": True}
        weigh = program.spmm if places.on_engines else program.weighted_sum
        into = places.attention.columns(head * places.pitch, d)
        waiting = []
        for number, block in enumerate(self._blocks(places.attention_rows)):
            place = number % len(places.scores)
            if len(waiting) == len(places.scores):
                weigh(*waiting.pop(0))
            scores = program.sddmm(
                self._part(places.query, block),
                places.keys,
                mask,
                gated=self.is_gated,
                at=places.scores[place],
                first_row=block[0],
            )
            found = program.softmax(scores, d**-0.5, at=places.probabilities[place], **softmax)
            if len(waiting) == 1:
                weigh(*waiting.pop(0))
            waiting.append((found, values, self._part(into, block)))
        for item in waiting:
            weigh(*item)
        if sparsity.theta is not None:
            mass = program.store_mask(_MADE, n, n, places.multiplier), program.store_mass(n)
            self.results.masks[index].append(mass)

    def _gated_sum(self, number, block, gate):
        """x += gate * product for some rows."""
        program, places, how = self.program, self.places, self._how(block)
        x, product = self._part(places.x, block), self._part(self._turn(places.products, number), block)
        program.elementwise("mul", product, places.modulation.rows(gate, 1), into=product, **how)
        program.elementwise("add", x, product, into=x, **how)

    @staticmethod
    def _turn(matrices, number):
        """The matrix of a block of rows."""
        return matrices[number % len(matrices)]

    def _project(self, weights):
        program, places = self.program, self.places
        for number, block in enumerate(self._blocks(places.rows)):
            source, into = (
                self._part(matrix, block) for matrix in (places.attention, self._turn(places.products, number))
            )
            program.matmul(source, weights, into=into, **self._how(block))
            self._gated_sum(number, block, _GATE_1)
            self._layer_norm(_GAMMA_2, block, self._turn(places.normals_2, number))

    def _feed_forward(self, weights, is_last):
        """Blocks of rows; the first product of a block is computed before the second one of the block before."""
        program, places = self.program, self.places

        def compute(fc1, fc2):
            waiting = []
            for number, block in enumerate(self._blocks(places.rows)):
                hidden = self._turn(places.hidden, number).rows(0, block[1])
                if len(waiting) == len(places.hidden):
                    finish(fc2, *waiting.pop(0))
                source = self._part(self._turn(places.normals_2, number), block)
                program.matmul(source, fc1, into=hidden, **self._how(block))
                program.elementwise("gelu", hidden, into=hidden, **self._how(block))
                if waiting:
                    finish(fc2, *waiting.pop(0))
                waiting.append((number, block, hidden))
            for item in waiting:
                finish(fc2, *item)
            if is_last and self.is_gated:
                self.results.tokens.append(program.store_rows(places.x))

        def finish(fc2, number, block, hidden):
            into = self._part(self._turn(places.products, number), block)
            program.matmul(hidden, fc2, into=into, **self._how(block))
            self._gated_sum(number, block, _GATE_2)
            if is_last and not self.is_gated:
                self.results.tokens.append(program.store_rows(self._part(places.x, block)))

        return Step(compute, [(weights.fc1, weights.fc1_bias), (weights.fc2, weights.fc2_bias)])
