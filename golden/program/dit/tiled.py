"""Programs of a DiT block of any size, tile by tile: tokens live in the host's memory.

Products keep a tile of weights in the weight banks while all rows pass, in chunks of which the next one is loaded while
one is computed; the chunks go to and fro, so that the one at the turn stays. At the turn the weights of a group of
n_banks columns are replaced while the other groups are computed. Products of more than max_dim elements are sums of
pieces in the partial sums; a core without these adds the pieces, rounded each, on the vector unit. The formulas are
those of :mod:`golden.program.dit.block`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from golden.program.data import Weights
from golden.program.dit.block import _B1, _B2, _G1, _G2, _S1, _S2
from golden.program.dit.places import Options
from golden.program.dit.tiled_attention import TiledAttention
from golden.program.dit.tiles import cut
from golden.program.host import HostMatrix, HostProgram
from golden.spec.commands import Product
from golden.spec.sizes import words_for

__all__ = ["TiledBlock"]


@dataclass(frozen=True)
class _Job:
    """A chunk of rows against a tile of weights, of one piece of the elements."""

    tile: int
    part: int  # rows whose partial sums are there together
    piece: int
    chunk: int

    @property
    def weights(self):
        return self.tile, self.part, self.piece

    @property
    def rows(self):
        return self.piece, self.chunk


class TiledBlock:
    """Builds a block into a :class:`golden.program.host.HostProgram`."""

    def __init__(self, program: HostProgram, shape, options=None):
        shape.check(program.sizes)
        if shape.dim > program.sizes.max_dim:
            raise ValueError(
                f"dim must be at most max_dim={program.sizes.max_dim}, a row of LAYER_NORM, not {shape.dim}"
            )
        self.program, self.shape, self.options = program, shape, options or Options()
        self.multiplier = program.multiplier(shape.n_tokens, self.options.multiplier)

    def build(self, x, condition, weights, vectors=None):
        """The tokens after the block, a :class:`HostMatrix`; with ``vectors`` [6, dim] the condition is not used.

        These are b1, s1, g1, b2, s2, g2, which the host then computes.
        """
        program, shape = self.program, self.shape
        weights.check(shape)
        weights = weights.folded()
        n, dim = shape.n_tokens, shape.dim
        program.load_mask(np.ones((1, n), bool), 0, self.multiplier)
        x = HostMatrix(n, dim, np.asarray(x, np.float16))
        if vectors is None:
            self.vectors = self._vectors(condition, weights)
        else:
            self.vectors = HostMatrix(1, 6 * dim, np.asarray(vectors, np.float16).reshape(1, -1))
        normal, qkv, attention = HostMatrix(n, dim), HostMatrix(n, 3 * dim), HostMatrix(n, dim)
        between, normal_2, hidden, result = (HostMatrix(n, width) for width in (dim, dim, shape.hidden, dim))
        self._normalise(x, normal, _S1, _B1)
        self._linear(normal, weights.qkv, weights.qkv_bias, qkv)
        self._attend(qkv, attention)
        self._linear(attention, weights.proj, weights.proj_bias, between, gate=_G1, residual=x)
        self._normalise(between, normal_2, _S2, _B2)
        self._linear(normal_2, weights.fc1, weights.fc1_bias, hidden, is_gelu=True)
        self._linear(hidden, weights.fc2, weights.fc2_bias, result, gate=_G2, residual=between)
        return result

    def _vectors(self, condition, weights):
        """The six vectors as one row."""
        program, dim = self.program, self.shape.dim
        activated, vectors = HostMatrix(1, dim), HostMatrix(1, 6 * dim)
        with program.scope():
            row = program.load_rows(np.asarray(condition, np.float16)[None])
            program.put_rows(program.elementwise("silu", row, into=row), activated, (0, 1), (0, dim))
        self._linear(activated, weights.ada, weights.ada_bias, vectors)
        return vectors

    def _chunks(self, words_a_row, n=None):
        """Rows in chunks for which there is room, so many words of IMEM a row."""
        room = self.program.room("imem") // words_a_row
        if not room:
            raise ValueError(f"imem: {words_a_row} words for a row and what is made of it are needed, and not there")
        return cut(self.shape.n_tokens if n is None else n, room)

    def _normalise(self, source, into, scale, shift):
        program, dim = self.program, self.shape.dim
        with program.scope():
            gamma_beta = program.matrix(2, dim)
            gamma, beta = gamma_beta.rows(0, 1), gamma_beta.rows(1, 1)
            ones = program.load_rows(np.ones((1, dim), np.float16))
            for vector, row in ((scale, gamma), (shift, beta)):
                program.fetch_rows(self.vectors, (0, 1), (vector * dim, dim), row)
            program.elementwise("add", gamma, ones, into=gamma)
            chunks = self._chunks(2 * words_for(dim, program.sizes.row_word))
            buffers = [program.matrix(chunks[0][1], dim) for _ in range(min(2, len(chunks)))]
            for number, chunk in enumerate(chunks):
                rows = buffers[number % 2].rows(0, chunk[1])
                program.fetch_rows(source, chunk, (0, dim), rows)
                program.layer_norm(rows, gamma_beta, self.options.epsilon, into=rows)
                program.put_rows(rows, into, chunk, (0, dim))

    def _linear(self, source, weights, bias, into, gate=None, residual=None, is_gelu=False):
        with self.program.scope():
            _Linear(self, source, weights, bias, into, gate, residual, is_gelu).emit()

    def _attend(self, qkv, into):
        with self.program.scope():
            TiledAttention(self.program, self.shape, qkv, into, self.multiplier).emit()


class _Linear:
    """``into = source @ weights + bias``, then GELU, or ``residual + gate *`` it."""

    def __init__(self, block, source, weights, bias, into, gate, residual, is_gelu):
        self.block, self.program, self.sizes = block, block.program, block.program.sizes
        self.source, self.into, self.residual, self.is_gelu = source, into, residual, is_gelu
        self.weights, self.bias, self.gate, self.gate_tile = weights, bias, gate, None
        program, sizes = self.program, self.sizes
        n_in, n_out = weights.shape
        self.pieces = cut(n_in, sizes.max_dim)
        length = max(number for _, number in self.pieces)
        self.group_words = words_for(length, sizes.n_lanes) + 1
        self.adds = len(self.pieces) > 1 and not sizes.pmem_depth
        n_groups = min(
            words_for(n_out, sizes.n_banks), program.room("wmem") // self.group_words, sizes.max_dim // sizes.n_banks
        )
        if len(self.pieces) > 1 and not self.adds:
            n_groups = self._groups_of_sums(min(n_groups, sizes.pmem_depth), source.n_rows, n_out)
        self.width = n_groups * sizes.n_banks
        self.tiles = [(first, min(self.width, n_out - first)) for first in range(0, n_out, self.width or 1)]
        if not n_groups:
            program.place("wmem", self.group_words, purpose=f"{sizes.n_banks} columns of {length} weights")
        self.places = [program.place("wmem", self.group_words, purpose="weights") for _ in range(n_groups)]
        row_words, out_words = words_for(length, sizes.row_word), words_for(self.width, sizes.row_word)
        self.gates: Any = None if gate is None else program.matrix(2, self.width)
        n_outs = (2 if residual is None else 4) + self.adds
        self.chunks = block._chunks(2 * row_words + n_outs * out_words, source.n_rows)
        self.a_part = 1 if self.adds else len(self.chunks)
        if len(self.pieces) > 1 and not self.adds:
            # Partial sums of all rows of a part are there at the same time.
            room = sizes.pmem_depth // n_groups
            # The largest chunks with which the fewest parts do.
            rows = range(min(self.chunks[0][1], room), 0, -1)
            self.chunks = cut(source.n_rows, min(rows, key=lambda n: words_for(words_for(source.n_rows, n), room // n)))
            self.a_part = min(len(self.chunks), room // self.chunks[0][1])
            self.partial = program.place("partial", self.a_part * self.chunks[0][1] * n_groups)
        rows = self.chunks[0][1]
        self.buffers = [program.matrix(rows, length) for _ in range(2)]
        self.outs = [program.matrix(rows, self.width) for _ in range(2)]
        self.residuals = [program.matrix(rows, self.width) for _ in range(2)] if residual is not None else []
        self.term = program.matrix(rows, self.width) if self.adds else self.outs[0]

    def _groups_of_sums(self, most, n_rows, n_out):
        """Groups of a tile with the fewest loads: rows come for each tile, weights for each part of the rows."""

        def loads(n_groups):
            n_parts = words_for(n_rows, self.sizes.pmem_depth // n_groups)
            return words_for(n_out, n_groups * self.sizes.n_banks) * n_rows + n_parts * n_out

        return min(range(1, most + 1), key=loads, default=0)

    def _out(self, number, job):
        """Where the result of a chunk lies; the pieces of a sum that the vector unit adds follow each other."""
        turn = number // len(self.pieces) if self.adds else number
        return self.outs[turn % 2].rows(0, self.chunks[job.chunk][1]).columns(0, self.tiles[job.tile][1])

    def _jobs(self):
        """All chunks against all weights; the order of the chunks turns round each time."""
        jobs, forward = [], True
        for tile in range(len(self.tiles)):
            for part, first in enumerate(range(0, len(self.chunks), self.a_part)):
                own = range(first, min(len(self.chunks), first + self.a_part))
                for piece in range(len(self.pieces)):
                    jobs += [_Job(tile, part, piece, chunk) for chunk in (own if forward else reversed(own))]
                    forward = not forward
        return jobs

    def emit(self):
        jobs = self._jobs()
        held: list[Any] = [None, None]
        loaded: list[Any] = [None] * len(self.places)
        for group in range(len(self._groups(jobs[0]))):
            loaded[group] = self._load_weights(jobs[0], group)
        self._fetch(jobs[0], held, None)
        for number, job in enumerate(jobs):
            following = jobs[number + 1] if number + 1 < len(jobs) else None
            at = held.index(job.rows)
            if following is not None and following.rows not in held:
                self._fetch(following, held, at)
            out = self._residual(number, job)
            n_groups = len(self._groups(job))
            n_new = 0 if following is None or following.weights == job.weights else len(self._groups(following))
            for group in range(max(n_groups, n_new)):
                if group < n_groups:
                    self._multiply(job, group, loaded[group], at, number)
                if group < n_new:
                    loaded[group] = self._load_weights(following, group)
            if self.adds and job.piece:
                sums = self._out(number, job)
                term = self.term.rows(0, sums.n_rows).columns(0, sums.n)
                self.program.elementwise("add", sums, term, into=sums)
            if job.piece == len(self.pieces) - 1:
                self._finish(number, job, out)

    def _groups(self, job):
        """``(first, number)`` of the columns of each group of a tile."""
        first, width = self.tiles[job.tile]
        step = self.sizes.n_banks
        return [(at, min(step, first + width - at)) for at in range(first, first + width, step)]

    def _load_weights(self, job, group):
        first, n = self._groups(job)[group]
        begin, length = self.pieces[job.piece]
        part = self.weights[begin : begin + length, first : first + n]
        bias = self.bias[first : first + n] if job.piece == len(self.pieces) - 1 else None
        found = self.program.load_weights(
            part, bias if bias is not None and bias.any() else None, at=self.places[group]
        )
        # The place is one allocation, however many words of it are used.
        self.program.place("wmem", self.group_words, at=self.places[group])
        return Weights(found.first, found.n_in, found.n_out, found.has_bias)

    def _fetch(self, job, held, busy):
        at = 0 if busy is None else 1 - busy
        chunk, piece = self.chunks[job.chunk], self.pieces[job.piece]
        rows = self.buffers[at].rows(0, chunk[1]).columns(0, piece[1])
        self.program.fetch_rows(self.source, chunk, piece, rows)
        held[at] = job.rows

    def _residual(self, number, job):
        """The rows to which the result is added, loaded before it is there; a new tile's gate, too."""
        if self.residual is None or job.piece < len(self.pieces) - 1:
            return None
        chunk, tile = self.chunks[job.chunk], self.tiles[job.tile]
        rows = self.residuals[number % 2].rows(0, chunk[1]).columns(0, tile[1])
        self.program.fetch_rows(self.residual, chunk, tile, rows)
        return rows

    def _multiply(self, job, group, weights, at, number):
        chunk, piece = self.chunks[job.chunk], self.pieces[job.piece]
        first = group * self.sizes.n_banks
        rows = self.buffers[at].rows(0, chunk[1]).columns(0, piece[1])
        out = self.term.rows(0, chunk[1]) if self.adds and job.piece else self._out(number, job)
        into = out.columns(first, weights.n_out)
        if len(self.pieces) == 1 or self.adds:
            self.program.matmul(rows, weights, into=into)
            return
        kind = Product.FIRST if job.piece == 0 else Product.NEXT
        kind = Product.LAST if job.piece == len(self.pieces) - 1 else kind
        place = (job.chunk - job.part * self.a_part) * len(self.places) + group
        partial = self.partial + place * self.chunks[0][1]
        self.program.matmul(rows, weights, into=into, piece=kind, partial=partial)

    def _finish(self, number, job, residual):
        program, chunk, tile = self.program, self.chunks[job.chunk], self.tiles[job.tile]
        out = self._out(number, job)
        if self.is_gelu:
            program.elementwise("gelu", out, into=out)
        if residual is not None:
            gate = self._gate(job)
            program.elementwise("mul", out, gate, into=out)
            out = program.elementwise("add", residual, out, into=residual)
        program.put_rows(out, self.into, chunk, tile)

    def _gate(self, job):
        """The part of the gate for a tile, loaded once a tile."""
        first, width = self.tiles[job.tile]
        row = self.gates.rows(job.tile % 2, 1).columns(0, width)
        if self.gate_tile != job.tile:
            self.gate_tile = job.tile
            vector = self.gate * self.block.shape.dim + first
            self.program.fetch_rows(self.block.vectors, (0, 1), (vector, width), row)
        return row
