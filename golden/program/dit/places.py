"""Where the matrices of a DiT block lie in the memories of a core; options of its program."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from golden.program.assembler import Banked
from golden.spec.sizes import words_for

__all__ = ["Options", "Places", "Sparsity", "engines_suffice"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a block runs.

    ``on_engines``: probabilities times values on the engines, beside the array, else on the dot-product units; by
    default where the engines are as fast as the array is with the scores. ``rows`` are those of a block of the
    projection and the feed-forward layer, ``attention_rows`` those of a block of attention: by default as many as make
    two of them fit. ``ahead``: how many steps before their use weights may be loaded.
    """

    on_engines: bool | None = None
    rows: int | None = None
    attention_rows: int | None = None
    multiplier: int | None = None
    epsilon: float = 1e-6
    ahead: int = 2


@dataclass(frozen=True, kw_only=True)
class Sparsity:
    """What a diffusion step computes, and what it takes from the step before.

    Softmax thresholding (ST): with ``theta`` attention is dense, and masks ``P >= theta`` and the retained mass of rows
    are stored; with ``masks``, for each block a list with a pair of mask [n, n] and mass [n] a head, only these scores
    are computed. A mass of None leaves the rows normalised.

    Cached token reuse (CTR): with ``tokens``, an ascending list, only these rows are computed. Keys and values of the
    others come from ``cached``, FP16 words [n, dim] a block, which a step with ``keep`` has stored.
    """

    theta: float | None = None
    masks: Sequence[Sequence[Any]] | None = None
    tokens: Sequence[int] | None = None
    cached: Sequence[Any] | None = None
    keep: bool = False

    def check(self, shape, n_blocks):
        if self.theta is not None and self.masks is not None:
            raise ValueError("theta, to make masks, and masks, to use them, cannot be given both")
        if (self.tokens is None) != (self.cached is None):
            raise ValueError("tokens and cached must be given together")
        for name in ("masks", "cached"):
            given = getattr(self, name)
            if given is not None and len(given) != n_blocks:
                raise ValueError(f"{name} must have an item for each of the {n_blocks} blocks, not {len(given)}")
        if self.theta is not None and self.tokens is not None:
            raise ValueError("theta needs all rows: a step that makes masks cannot have tokens")
        tokens = [] if self.tokens is None else [int(token) for token in self.tokens]
        if tokens != sorted(set(tokens)) or any(not 0 <= token < shape.n_tokens for token in tokens):
            raise ValueError(f"tokens must be ascending numbers from 0 to {shape.n_tokens - 1}, not {tokens}")


def engines_suffice(sizes, head_dim):
    """Whether the engines take no more clocks for a row of attention than the array does for its scores."""
    return words_for(head_dim, sizes.simd_lanes) <= words_for(head_dim, sizes.n_lanes)


class Places:
    """The memory of blocks whose tokens stay in IMEM, all of it taken at once: what is left is for weights."""

    def __init__(self, program, shape, options, n_listed=None):
        sizes, n, d = program.sizes, shape.n_tokens, shape.head_dim
        self.on_engines = engines_suffice(sizes, d) if options.on_engines is None else options.on_engines
        self.multiplier = program.multiplier(n, options.multiplier)
        slots = sizes.slots_of(n)
        room = sizes.omem_depth // slots
        self.attention_rows = min(n, options.attention_rows or max(1, room // 2))
        n_places = 2 if 2 * self.attention_rows <= room else 1
        # A result begins at multiples of a step: heads that are no multiple of it have elements between them.
        self.pitch = d + -d % (sizes.simd_lanes if self.on_engines else sizes.product_step)
        width = shape.n_heads * self.pitch
        for name, value in (("hidden", shape.hidden), ("dim, with what lies between heads,", width)):
            if value > sizes.max_dim:
                raise ValueError(f"{name} must be at most max_dim={sizes.max_dim}, not {value}; TiledBlock takes more")
        self.x, self.normal = program.matrix(n, shape.dim), program.matrix(n, shape.dim)
        self.attention = program.matrix(n, width)
        self.query = program.matrix(n, d)
        self.modulation = program.matrix(6, shape.dim)
        self.condition, self.ones = program.matrix(1, shape.dim), program.matrix(1, shape.dim)
        self._turns(program, shape, options, n_listed)
        length = words_for(d, sizes.n_lanes) * slots
        self.keys = Banked(program.place("wmem", length, purpose="keys"), n, d, self.multiplier, "wmem")
        if self.on_engines:
            memory, length = "vmem", words_for(d, sizes.simd_lanes) * slots
        else:
            memory, length = "wmem", words_for(d, sizes.n_banks) * slots * sizes.column_beats
        self.values = [
            Banked(program.place(memory, length, purpose="values of a head"), n, d, self.multiplier, memory)
            for _ in range(2 if self.on_engines and 2 * length <= sizes.vmem_depth else 1)
        ]
        self.scores, self.probabilities = (
            [program.place(memory, self.attention_rows * slots, purpose="a block of rows") for _ in range(n_places)]
            for memory in ("scores", "probabilities")
        )

    def _turns(self, program, shape, options, n_listed):
        """What blocks of rows write and read in turns. ``n_listed``: entries of the token list, None if all rows are
        computed.

        Listed rows lie where all rows would, and a command counts as touching all of them: blocks of them work at the
        same time only if they have matrices of their own, and without room for these there is one block.
        """
        n, word = shape.n_tokens, program.sizes.row_word
        if n_listed is None:
            self.rows = min(n, options.rows or -(-n // 4))
            n_hidden, n_others, hidden_rows = (2 if self.rows < n else 1), 1, self.rows
        else:
            needed = 2 * n * (words_for(shape.hidden, word) + 2 * words_for(shape.dim, word))
            n_hidden = n_others = 2 if needed <= program.room("imem") else 1
            self.rows = max(1, -(-n_listed // 4) if n_hidden == 2 else n_listed)
            self.rows, hidden_rows = min(n, options.rows or self.rows), n
        self.normals_2, self.products = ([program.matrix(n, shape.dim) for _ in range(n_others)] for _ in range(2))
        self.hidden = [program.matrix(hidden_rows, shape.hidden) for _ in range(n_hidden)]
