"""Assembler for the core: commands as methods, allocation of matrices, access to results.

    program = Program(sizes)
    x = program.load_rows(tokens)                                  # [n, dim] numbers or FP16 words
    query = program.matmul(x, program.load_weights(w_query))
    keys = program.project_keys(x, program.load_weights(w_key), multiplier=13)
    values = program.project_values(x, program.load_weights(w_value), multiplier=13)
    program.load_mask(np.ones((1, n)), multiplier=13)              # mask 0: its row serves all rows
    attention = program.softmax(program.sddmm(query, keys), scale=d**-0.5, theta=2**-9, mask_out=1)
    output = program.store_rows(program.spmm(attention, values))
    run = Core(sizes).execute(program.commands, program.load_beats)
    output.of(run)                                                 # [n, d] FP16 words

Methods return handles (locations of matrices), which other methods take as operands. Memory is allocated first fit,
unless ``at`` or ``into`` give a place; ``free`` and ``scope`` give it back. A command that the core would refuse raises
a ``ValueError`` with its reason, unless the program is made with ``checked=False``.
"""

from dataclasses import replace

from golden.core.streams import TokenCompare
from golden.program import placement
from golden.program.data import Banked, DataProgram, Encoded, Matrix, Stored, Weights
from golden.spec.commands import Elementwise, Opcode, Product, Projection
from golden.spec.sizes import words_for
from golden.units.layer_norm_unit import encode_epsilon
from golden.units.softmax_unit import encode_scale

__all__ = ["Banked", "Encoded", "Matrix", "Program", "Stored", "Weights"]


class Program(DataProgram):
    """Commands and their load beats."""

    def clear(self, counters=False):
        self.issue(Opcode.CLEAR, function=int(counters))

    def ctr(self, latent, theta, previous=None, restart=False):
        """Which tokens of a latent [channels, height, width] changed."""
        compare = TokenCompare(self.sizes)
        latents = [latent] if self.sizes.reference == "last" else [latent, previous]
        beats = compare.beats(*map(placement.fp16_words, latents))
        theta = int(placement.fp16_words(float(theta)))
        self.issue(Opcode.CTR, beats, {"restart": restart}, theta=theta)

    def matmul(self, matrix, weights, gated=False, into=None, first_row=0, piece=Product.WHOLE, partial=0):
        """Rows times weights. ``piece`` is one of :class:`golden.spec.commands.Product`, with partial sums from
        ``partial`` on; :meth:`sum_of_products` makes all of them."""
        if piece in (Product.FIRST, Product.NEXT):
            into = Matrix(0, 0, 0, 0)
        into = into or self.matrix(matrix.n_rows, weights.n_out)
        self.issue(
            Opcode.MATMUL,
            function=piece,
            source_2=partial,
            flags={"gated": gated, "bias": weights.has_bias},
            n_rows=matrix.n_rows,
            n_in=weights.n_in,
            n_out=weights.n_out,
            source=matrix,
            destination=into,
            bank_address=weights,
            first_row=first_row,
        )
        return into

    def sum_of_products(self, n_pieces, pair, gated=False, into=None):
        """The sum of products of equal sizes: in FP32, rounded to FP16 at the end.

        ``pair(i)`` gives rows and weights of piece i; it may load them, as it is called when the piece is due.
        """
        partial = None
        for index in range(n_pieces):
            matrix, weights = pair(index)
            if n_pieces == 1:
                return self.matmul(matrix, weights, gated, into)
            if partial is None:
                length = matrix.n_rows * words_for(weights.n_out, self.sizes.n_banks)
                partial = self.place("partial", length, purpose=f"{matrix.n_rows} rows of sums")
                into = into or self.matrix(matrix.n_rows, weights.n_out)
            last = index == n_pieces - 1
            piece = Product.LAST if last else Product.NEXT if index else Product.FIRST
            self.matmul(matrix, weights, gated, into, piece=piece, partial=partial)
        self._arenas["partial"].free(partial)
        return into

    def _project(self, function, memory, lanes, matrix, weights, multiplier, at, words_a_slot=1):
        multiplier = self.multiplier(matrix.n_rows, multiplier)
        length = words_for(weights.n_out, lanes) * self.sizes.slots_of(matrix.n_rows) * words_a_slot
        first = self.place(memory, length, at, f"a projection of {matrix.n_rows} rows")
        self.issue(
            Opcode.PROJECT,
            flags={"bias": weights.has_bias},
            function=function,
            n_rows=matrix.n_rows,
            n_in=weights.n_in,
            n_out=weights.n_out,
            multiplier=multiplier,
            source=matrix,
            destination=first,
            bank_address=weights,
        )
        return Banked(first, matrix.n_rows, weights.n_out, multiplier, memory)

    def project_keys(self, matrix, weights, multiplier=None, at=None):
        return self._project(Projection.KEYS, "wmem", self.sizes.n_lanes, matrix, weights, multiplier, at)

    def project_values(self, matrix, weights, multiplier=None, at=None):
        return self._project(Projection.VALUES, "vmem", self.sizes.simd_lanes, matrix, weights, multiplier, at)

    def project_columns(self, matrix, weights, multiplier=None, at=None):
        """Values for :meth:`weighted_sum`."""
        n_banks, a_slot = self.sizes.n_banks, self.sizes.column_beats
        return self._project(Projection.COLUMNS, "wmem", n_banks, matrix, weights, multiplier, at, a_slot)

    def sddmm(self, query, keys, mask=0, gated=False, at=None, first_row=0):
        """Scores of the rows of ``query`` with the keys selected by a mask, its rows from ``first_row`` on.

        With ``gated``, ``query`` has all rows, and entries ``first_row`` and following of the token list are used.
        """
        first = self.place(
            "scores", query.n_rows * self.sizes.slots_of(keys.n_rows), at, f"{query.n_rows} rows of scores"
        )
        self.issue(
            Opcode.SDDMM,
            flags={"gated": gated},
            mask=mask,
            n_rows=query.n_rows,
            n_in=keys.n,
            n_out=keys.n_rows,
            source=query,
            destination=first,
            bank_address=keys,
            first_row=first_row,
        )
        return Encoded(first, query.n_rows, keys.n_rows, mask, gated, "scores", first_row)

    def softmax(self, scores, scale, theta=0.0, mask_out=None, use_mass=False, at=None):
        """Probabilities of scores. ``mask_out`` makes the mask of those >= theta, and the retained mass."""
        length = scores.n_rows * self.sizes.slots_of(scores.n_keys)
        first = self.place("probabilities", length, at, f"{scores.n_rows} rows of probabilities")
        self.issue(
            Opcode.SOFTMAX,
            flags={"gated": scores.gated, "make_mask": mask_out is not None, "use_mass": use_mass},
            mask=scores.mask,
            mask_out=mask_out or 0,
            n_rows=scores.n_rows,
            n_out=scores.n_keys,
            source=scores,
            destination=first,
            theta=int(placement.fp16_words(float(theta))),
            scale=encode_scale(scale),
            first_row=scores.first_row,
        )
        return replace(scores, first=first, memory="probabilities")

    def spmm(self, probabilities, values, into=None):
        """Probabilities times values, on the engines."""
        return self._weigh(Opcode.SPMM, probabilities, values, into)

    def weighted_sum(self, probabilities, columns, into=None):
        """The same on the dot-product units, all columns of the mask's rows, of :meth:`project_columns`."""
        return self._weigh(Opcode.WEIGHTED_SUM, probabilities, columns, into)

    def _weigh(self, opcode, probabilities, values, into):
        into = into or self.matrix(probabilities.n_rows, values.n)
        self.issue(
            opcode,
            flags={"gated": probabilities.gated},
            mask=probabilities.mask,
            n_rows=probabilities.n_rows,
            n_in=values.n,
            n_out=probabilities.n_keys,
            source=probabilities,
            destination=into,
            bank_address=values,
            first_row=probabilities.first_row,
        )
        return into

    def attention(self, query, keys, values, scale, *, mask=0, columns=None, block=None, into=None, **softmax):
        """An attention head in blocks of rows, so that scores and probabilities need not have room for all rows.

        ``values`` are those of the engines; with ``columns`` (:meth:`project_columns`) in their place the dense product
        runs on the dot-product units. ``softmax`` are further arguments of :meth:`softmax`. Two blocks alternate where
        there is room for them, so that one is computed while the other is used.
        """
        into = into or self.matrix(query.n_rows, (columns or values).n)
        slots, depth = self.sizes.slots_of(keys.n_rows), self.sizes.omem_depth
        room = depth // slots
        block = block or min(query.n_rows, max(1, room // 2))
        n_places = 2 if 2 * block <= room and block < query.n_rows else 1
        with self.scope():
            places = [
                [self.place(memory, block * slots, purpose="a block of rows") for _ in range(n_places)]
                for memory in ("scores", "probabilities")
            ]
            for index, first_row in enumerate(range(0, query.n_rows, block)):
                n_rows = min(block, query.n_rows - first_row)
                at, probabilities_at = (each[index % n_places] for each in places)
                scores = self.sddmm(query.rows(first_row, n_rows), keys, mask, at=at, first_row=first_row)
                found = self.softmax(scores, scale, at=probabilities_at, **softmax)
                target = into.rows(first_row, n_rows)
                self.spmm(found, values, target) if columns is None else self.weighted_sum(found, columns, target)
        return into

    def rowwise(self, opcode, matrix, gated=False, into=None, **fields):
        """A command from rows to rows of as many elements; ``fields`` are its other operands and values."""
        into = into or self.matrix(matrix.n_rows, matrix.n)
        flags = {"gated": gated}
        n_rows, n_in = matrix.n_rows, matrix.n
        self.issue(opcode, flags=flags, n_rows=n_rows, n_in=n_in, source=matrix, destination=into, **fields)
        return into

    def elementwise(self, function, matrix, second=None, gated=False, into=None, first_row=0):
        """An operation of :class:`golden.spec.commands.Elementwise`, also by name.

        ``second`` may have a single row, which is then used for all rows.
        """
        function = Elementwise[function.upper()] if isinstance(function, str) else function
        second = second or Matrix(0, 0, 0, 0)
        if second.n_rows == 1:
            second = replace(second, stride=0)
        fields = {"function": function, "source_2": second, "first_row": first_row}
        return self.rowwise(Opcode.ELEMENTWISE, matrix, gated, into, **fields)

    def layer_norm(self, matrix, gamma_beta, epsilon=1e-5, gated=False, into=None, first_row=0):
        """``gamma_beta`` is a matrix of two rows."""
        epsilon = encode_epsilon(epsilon)
        fields = {"source_2": gamma_beta, "scale": epsilon, "first_row": first_row}
        return self.rowwise(Opcode.LAYER_NORM, matrix, gated, into, **fields)
