"""Programs of DiT blocks whose tokens stay in IMEM: any number of blocks, one after the other.

    x += g1 * proj(attention(ln(x) * (1 + s1) + b1));   x += g2 * fc2(gelu(fc1(ln(x) * (1 + s2) + b2)))

with (b1, s1, g1, b2, s2, g2) = ada(silu(condition)). Weights come while others compute, and nothing is loaded twice.
"""

from dataclasses import dataclass

import numpy as np

from golden.program.assembler import Banked
from golden.program.dit.steps import Step, run_steps
from golden.program.dit.weights import BlockShape
from golden.spec.sizes import words_for

__all__ = ["DitBlocks", "Options"]

_B1, _S1, _G1, _B2, _S2, _G2 = range(6)
"""The vectors of adaLN in the order of the weights."""
_GAMMA_1, _BETA_1, _GATE_1, _GAMMA_2, _BETA_2, _GATE_2 = range(6)
"""The rows in which they are kept: gamma and beta of a LAYER_NORM are adjacent."""
_ROW_OF = {_S1: _GAMMA_1, _B1: _BETA_1, _G1: _GATE_1, _S2: _GAMMA_2, _B2: _BETA_2, _G2: _GATE_2}


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a block runs.

    ``on_engines``: probabilities times values on the engines, beside the array, else on the dot-product units; by
    default where the engines are as fast as the array is with the scores. ``rows`` are those of a block of the
    projection and the feed-forward layer, ``attention_rows`` those of a block of attention: by default as many as make
    two of them fit.
    """

    on_engines: bool | None = None
    rows: int | None = None
    attention_rows: int | None = None
    multiplier: int | None = None
    epsilon: float = 1e-6
    ahead: int = 2


def engines_suffice(sizes, head_dim):
    """Whether the engines take no more clocks for a row of attention than the array does for its scores."""
    return words_for(head_dim, sizes.simd_lanes) <= words_for(head_dim, sizes.n_lanes)


class DitBlocks:
    """Builds blocks into a program, in which it places what they share."""

    def __init__(self, program, shape: BlockShape, options: Options | None = None):
        self.program, self.shape = program, shape
        self.options = options = options or Options()
        sizes, n, d = program.sizes, shape.n_tokens, shape.head_dim
        self.on_engines = engines_suffice(sizes, d) if options.on_engines is None else options.on_engines
        self.multiplier = program.multiplier(n, options.multiplier)
        room = sizes.omem_depth // sizes.slots_of(n)
        self.attention_rows = min(n, options.attention_rows or max(1, room // 2))
        self.n_places = 2 if 2 * self.attention_rows <= room else 1
        self.rows = min(n, options.rows or -(-n // 4))
        # A result begins at multiples of a step: heads that are no multiple of it have elements between them.
        self.pitch = d + -d % (sizes.simd_lanes if self.on_engines else sizes.product_step)
        self.x, self.h, self.t = (program.matrix(n, shape.dim) for _ in range(3))
        self.attention = program.matrix(n, shape.n_heads * self.pitch)
        self.query = program.matrix(n, d)
        self.hidden = [program.matrix(self.rows, shape.hidden) for _ in range(2 if self.rows < n else 1)]
        self.modulation = program.matrix(6, shape.dim)
        self.condition, self.ones = program.matrix(1, shape.dim), program.matrix(1, shape.dim)
        slots = sizes.slots_of(n)
        self.keys = Banked(
            program.place("wmem", words_for(d, sizes.n_lanes) * slots, purpose="keys"), n, d, self.multiplier, "wmem"
        )
        if self.on_engines:
            memory, length, copies = "vmem", words_for(d, sizes.simd_lanes) * slots, 2
            copies = 2 if 2 * length <= sizes.vmem_depth else 1
        else:
            memory, length, copies = "wmem", words_for(d, sizes.n_banks) * slots * sizes.column_beats, 1
        self.values = [
            Banked(program.place(memory, length, purpose="values of a head"), n, d, self.multiplier, memory)
            for _ in range(copies)
        ]
        length = self.attention_rows * slots
        self.scores, self.probabilities = (
            [program.place(memory, length, purpose="a block of rows") for _ in range(self.n_places)]
            for memory in ("scores", "probabilities")
        )

    def build(self, x, condition, blocks):
        """Load tokens and condition, run blocks of these weights, store the tokens: the handles of the stores."""
        program, n = self.program, self.shape.n_tokens
        program.load_rows(np.asarray(condition, np.float16)[None], into=self.condition)
        program.load_rows(np.ones((1, self.shape.dim), np.float16), into=self.ones)
        program.load_mask(np.ones((1, n), bool), 0, self.multiplier)
        program.elementwise("silu", self.condition, into=self.condition)
        steps, stores = [], []
        for index, weights in enumerate(blocks):
            weights.check(self.shape)
            steps += self._block(weights.folded(), x if index == 0 else None, stores, index == len(blocks) - 1)
        run_steps(program, steps, self.options.ahead)
        return stores

    def _block(self, weights, x, stores, is_last):
        """The steps of a block; ``x`` are tokens to load first."""
        d, n_heads = self.shape.head_dim, self.shape.n_heads

        def normalise():
            if x is not None:
                self.program.load_rows(x, into=self.x)
            self._layer_norm(_GAMMA_1, self.x, self.h)

        yield from self._vectors(weights, _S1, _B1)
        yield Step(normalise)
        for head in range(n_heads):
            yield from self._head(weights, head, d)
            if head == 0:
                yield from self._vectors(weights, _G1, _S2, _B2, _G2)
        yield Step(self._project, [(self._spread(weights.proj), weights.proj_bias)])
        yield from self._feed_forward(weights, stores, is_last)

    def _spread(self, proj):
        """The rows of the projection as the heads lie in a row of attention, zeros between them."""
        d, n_heads, dim = self.shape.head_dim, self.shape.n_heads, self.shape.dim
        rows = np.pad(proj.reshape(n_heads, d, dim), ((0, 0), (0, self.pitch - d), (0, 0)))
        return rows.reshape(-1, dim)

    def _vectors(self, weights, *indices):
        """Steps that compute vectors of adaLN; scales get the 1 that is added to them."""
        for index in indices:
            row = self.modulation.rows(_ROW_OF[index], 1)

            def compute(loaded, row=row, index=index):
                self.program.matmul(self.condition, loaded, into=row)
                if index in (_S1, _S2):
                    self.program.elementwise("add", row, self.ones, into=row)

            yield Step(compute, [weights.modulation(index)])

    def _layer_norm(self, gamma, source, into):
        gamma_beta = self.modulation.rows(gamma, 2)
        self.program.layer_norm(source, gamma_beta, self.options.epsilon, into=into)

    def _head(self, weights, head, d):
        program, multiplier = self.program, self.multiplier
        values = self.values[head % len(self.values)]
        project = program.project_values if self.on_engines else program.project_columns
        query, (key, _), (value, _) = (weights.head(kind, head, d) for kind in range(3))
        yield Step(lambda loaded: program.matmul(self.h, loaded, into=self.query), [query])
        yield Step(lambda loaded: program.project_keys(self.h, loaded, multiplier, at=self.keys.first), [(key, None)])
        yield Step(lambda loaded: project(self.h, loaded, multiplier, at=values.first), [(value, None)])
        yield Step(lambda: self._attend(head, values))

    def _attend(self, head, values):
        """A head's attention in blocks of rows: scores of a block are computed before the block before is weighed."""
        program, d = self.program, self.shape.head_dim
        weigh = program.spmm if self.on_engines else program.weighted_sum
        into = self.attention.columns(head * self.pitch, d)
        before = None
        for index, (first, n_rows) in enumerate(self._blocks(self.attention_rows)):
            place = index % self.n_places
            rows = self.query.rows(first, n_rows)
            if before is not None and self.n_places == 1:
                weigh(*before)
                before = None
            scores = program.sddmm(rows, self.keys, at=self.scores[place], first_row=first)
            found = program.softmax(scores, d**-0.5, at=self.probabilities[place])
            if before is not None:
                weigh(*before)
            before = found, values, into.rows(first, n_rows)
        if before is not None:
            weigh(*before)

    def _blocks(self, size):
        n = self.shape.n_tokens
        return [(first, min(size, n - first)) for first in range(0, n, size)]

    def _gated_sum(self, rows, gate):
        """x += gate * t for some rows."""
        program, x, t = self.program, self.x.rows(*rows), self.t.rows(*rows)
        program.elementwise("mul", t, self.modulation.rows(gate, 1), into=t)
        program.elementwise("add", x, t, into=x)

    def _project(self, weights):
        for rows in self._blocks(self.rows):
            self.program.matmul(self.attention.rows(*rows), weights, into=self.t.rows(*rows))
            self._gated_sum(rows, _GATE_1)
            self._layer_norm(_GAMMA_2, self.x.rows(*rows), self.h.rows(*rows))

    def _feed_forward(self, weights, stores, is_last):
        """Blocks of rows; the first product of a block is computed before the second one of the block before."""
        program, pending = self.program, []

        def compute(fc1, fc2):
            for index, rows in enumerate(self._blocks(self.rows)):
                hidden = self.hidden[index % len(self.hidden)].rows(0, rows[1])
                program.matmul(self.h.rows(*rows), fc1, into=hidden)
                program.elementwise("gelu", hidden, into=hidden)
                pending.append((rows, hidden))
                if len(pending) == len(self.hidden):
                    finish(fc2)
            while pending:
                finish(fc2)

        def finish(fc2):
            rows, hidden = pending.pop(0)
            program.matmul(hidden, fc2, into=self.t.rows(*rows))
            self._gated_sum(rows, _GATE_2)
            if is_last:
                stores.append(program.store_rows(self.x.rows(*rows)))

        yield Step(compute, [(weights.fc1, weights.fc1_bias), (weights.fc2, weights.fc2_bias)])
