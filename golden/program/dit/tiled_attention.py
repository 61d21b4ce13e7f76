"""Attention whose queries, keys and values are in the host's memory, head after head."""

from golden.program.dit.tiles import cut
from golden.spec.sizes import words_for

__all__ = ["TiledAttention"]


class TiledAttention:
    """Emits the attention of all heads of ``qkv`` [n, 3 dim] into ``into`` [n, dim].

    Probabilities times values on the dot-product units take whole groups of n_banks columns. Columns that do not fill
    the last group are computed by the engines at the same time, where these are not slower. Keys and values of the next
    head are loaded while this one is computed, if there is room for both.
    """

    def __init__(self, program, shape, qkv, into, multiplier):
        self.program, self.shape, self.qkv, self.into, self.multiplier = program, shape, qkv, into, multiplier
        sizes, n, d = program.sizes, shape.n_tokens, shape.head_dim
        slots = sizes.slots_of(n)
        self.n_array = self._columns_on_array()
        needed = {
            "keys": ("wmem", words_for(d, sizes.n_lanes) * slots),
            "columns": ("wmem", words_for(self.n_array, sizes.n_banks) * slots * sizes.column_beats),
        }
        if self.n_array < d:
            needed["values"] = "vmem", words_for(d - self.n_array, sizes.simd_lanes) * slots
        free = {memory: program.room(memory) for memory in ("wmem", "vmem")}
        for _ in range(2):
            for memory, length in needed.values():
                free[memory] -= length
        self.copies = 2 if min(free.values()) >= 0 and shape.n_heads > 1 else 1
        self.places = {
            name: [program.place(memory, length, purpose=f"{name} of {n} tokens") for _ in range(self.copies)]
            for name, (memory, length) in needed.items()
        }
        words = 4 * words_for(d, sizes.row_word)
        self.blocks = cut(n, min(sizes.omem_depth // slots, program.room("imem") // words))
        rows = self.blocks[0][1]
        self.queries, self.outputs = ([program.matrix(rows, d) for _ in range(2)] for _ in range(2))
        self.scores, self.probabilities = (
            program.place(memory, rows * slots, purpose="a block of rows") for memory in ("scores", "probabilities")
        )

    def _columns_on_array(self):
        """Columns of a head that the dot-product units compute; the engines compute the others."""
        sizes, d = self.program.sizes, self.shape.head_dim
        whole, rest = d - d % sizes.n_banks, d % sizes.n_banks
        passes = words_for(rest, sizes.simd_lanes)
        beats = words_for(d, sizes.n_lanes) + whole // sizes.n_banks * sizes.column_beats
        fits = passes * sizes.slots_of(self.shape.n_tokens) <= self.program.room("vmem")
        return whole if whole and fits and whole % sizes.simd_lanes == 0 and passes <= beats else d

    def _load(self, head):
        """Keys, columns and, if the engines have a part, values of a head."""
        program, qkv, d, dim = self.program, self.qkv, self.shape.head_dim, self.shape.dim
        first, at = 2 * dim + head * d, {name: places[head % self.copies] for name, places in self.places.items()}
        keys = program.fetch_keys(qkv, (dim + head * d, d), self.multiplier, at["keys"])
        columns = program.fetch_columns(qkv, (first, self.n_array), self.multiplier, at["columns"])
        if self.n_array == d:
            return keys, columns, None
        rest = first + self.n_array, d - self.n_array
        return keys, columns, program.fetch_values(qkv, rest, self.multiplier, at["values"])

    def emit(self):
        n_heads = self.shape.n_heads
        loaded = self._load(0)
        for head in range(n_heads):
            following = None
            for number, block in enumerate(self.blocks):
                self._block(head, number, block, *loaded)
                if number == 0 and self.copies == 2 and head + 1 < n_heads:
                    following = self._load(head + 1)
            if head + 1 < n_heads:
                loaded = following or self._load(head + 1)

    def _block(self, head, number, block, keys, columns, values):
        """A block of rows, each command row by row behind the one before."""
        program, d = self.program, self.shape.head_dim
        query, out = (each[number % 2].rows(0, block[1]) for each in (self.queries, self.outputs))
        program.fetch_rows(self.qkv, block, (head * d, d), query)
        scores = program.sddmm(query, keys, at=self.scores)
        found = program.softmax(scores, d**-0.5, at=self.probabilities)
        program.weighted_sum(found, columns, out.columns(0, self.n_array))
        if values is not None:
            program.spmm(found, values, out.columns(self.n_array, d - self.n_array))
        program.put_rows(out, self.into, block, (head * d, d))
