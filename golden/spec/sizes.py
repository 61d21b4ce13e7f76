"""The parameters of a core, each declared once, and the sizes derived from them, for model and hardware."""

from dataclasses import dataclass
from math import gcd, lcm

from golden.spec import layer_norm_unit
from golden.spec.dot_product_array import MAX_BEATS
from golden.spec.limits import MAX_BANKS, MAX_DIM, MAX_LANES, MAX_RUN_AHEAD, MAX_SLOTS, MAX_TOKENS, MAX_WORDS
from golden.spec.parameters import Parameters, choice, integer, power_of_two
from golden.spec.token_selector import MAX_BEATS_A_ROW, MAX_CHANNELS, MAX_PATCH, MAX_SIDE, REFERENCES, LatentParameters

__all__ = [
    "Banks",
    "CommandLimits",
    "CoreSizes",
    "DerivedSizes",
    "HeadDim",
    "ImemDepth",
    "InFlight",
    "ImemWord",
    "KeyMask",
    "Lanes",
    "Latent",
    "MaskDepth",
    "Masks",
    "OmemDepth",
    "PmemDepth",
    "RowDim",
    "RunAhead",
    "SimdLanes",
    "SpecialLanes",
    "Tokens",
    "VectorLanes",
    "VmemDepth",
    "WmemDepth",
    "WordLanes",
    "check_sizes",
    "spmm_array_of",
    "words_for",
]


def spmm_array_of(p):
    """``{parameter: value}`` of the core's ``spmm_array``; with many banks two of them share an aligner."""
    return {
        "n_engines": p.n_banks,
        "n_lanes": p.simd_lanes,
        "n_slots": p.key_slots,
        "bank_depth": p.vmem_depth,
        "probability_depth": 1 << (p.omem_depth - 1).bit_length(),
        "max_passes": words_for(p.max_head_dim, p.simd_lanes),
        "run_ahead": 4,
        "reduction_clocks": 2 if p.n_banks >= 8 else 1,
    }


def words_for(elements, word):
    """Words of ``word`` elements that hold ``elements``."""
    return -(-elements // word)


class DerivedSizes:
    """Sizes derived from the parameters of a core; each property depends only on the parameters it reads.

    A part of the core, which has some of the parameters only, can use the properties derived from these.
    """

    n_banks: int
    n_lanes: int
    simd_lanes: int
    max_tokens: int
    max_dim: int
    n_masks: int
    mask_depth: int | None
    max_head_dim: int
    run_ahead: int
    vector_lanes: int | None
    special_lanes: int | None

    @property
    def row_word(self):
        """Elements of a word of IMEM and of a beat of the load and store streams."""
        step = lcm(self.column_beats * self.n_lanes, self.simd_lanes)
        return step * words_for(max(self.n_banks, 2 * self.n_lanes), step)

    @property
    def row_part(self):
        """Elements of a word of IMEM that are written alone: products write groups of n_banks or simd_lanes."""
        return gcd(self.n_banks, self.simd_lanes)

    @property
    def max_norm_dim(self):
        """Elements of a row of LAYER_NORM, which takes whole words of IMEM."""
        return min(self.max_dim, layer_norm_unit.MAX_ELEMENTS // self.row_word * self.row_word)

    @property
    def product_step(self):
        """Where results of dense products may begin in a row: multiples of so many elements."""
        return self.row_part if self.groups_straddle else self.n_banks

    @property
    def n_vector_lanes(self):
        """Elements of a word that the vector unit takes in a clock."""
        return self.vector_lanes or gcd(self.row_word, 8)

    @property
    def n_special_lanes(self):
        """Elements of them whose functions are computed in a clock."""
        return self.special_lanes or max(1, self.n_vector_lanes // 2)

    @property
    def row_parts(self):
        """Banks of IMEM."""
        return self.row_word // self.row_part

    @property
    def groups_straddle(self):
        """Whether a group of n_banks elements may lie in two words of IMEM."""
        return self.row_word % self.n_banks != 0

    @property
    def hash_width(self):
        """Bits of a hashed index: log2 of the tokens, rounded up, at least log2 of the banks."""
        return max(self.n_banks - 1, self.max_tokens - 1).bit_length()

    @property
    def token_width(self):
        """Bits of an entry of the token list."""
        return max(1, (self.max_tokens - 1).bit_length())

    @property
    def key_slots(self):
        """Keys a bank: bits of one bank's part of a mask row."""
        return (1 << self.hash_width) // self.n_banks

    @property
    def array_slots(self):
        """Outputs a dot-product unit, of an attention or a dense product."""
        return max(self.key_slots, words_for(self.max_dim, self.n_banks))

    @property
    def column_beats(self):
        """Beats for one element of each bank: words of a slot of the columns of a product with probabilities."""
        return words_for(self.n_banks, self.n_lanes)

    @property
    def max_beats(self):
        """Beats a dot product: the longest row and a bias, or the probabilities of a row; in whole slots of these."""
        beats = max(words_for(self.max_dim, self.n_lanes) + 1, self.key_slots * self.column_beats)
        return words_for(beats, self.column_beats) * self.column_beats

    @property
    def query_beats(self):
        """Beats of one word of IMEM, limited to those of the longest row and a bias."""
        return min(self.row_word // self.n_lanes, self.max_beats)

    @property
    def query_depth(self):
        """Words of a unit's ring of queries: two rows of a layer, as many of a head as it may be ahead, or a row of
        probabilities."""
        row = words_for(words_for(self.max_dim, self.n_lanes) + 1, self.query_beats)
        head = words_for(words_for(self.max_head_dim, self.n_lanes), self.query_beats)
        return max(2 * row, (self.run_ahead + 2) * head, words_for(self.max_beats, self.query_beats))

    @property
    def mask_rows(self):
        """Words of the mask memory: the common row of mask 0, then the rows of each further mask."""
        return 1 + (self.n_masks - 1) * self.rows_a_mask

    @property
    def rows_a_mask(self):
        """Rows of each mask from mask 1 on."""
        return self.mask_depth or self.max_tokens

    def mask_base(self, mask):
        """Word of the mask memory with row 0 of a mask (a number or a signal) from mask 1 on; mask 0 is word 0."""
        return 1 + (mask - 1) * self.rows_a_mask

    @property
    def mask_pieces(self):
        """Beats of the load and store streams a row of a mask takes."""
        return words_for(self.n_banks * self.key_slots, 16 * self.row_word)

    def slots_of(self, n_keys):
        """Keys a bank for n_keys keys: a power of two, so that every bank has as many."""
        return (1 << max(self.n_banks - 1, n_keys - 1).bit_length()) // self.n_banks


@dataclass(frozen=True, kw_only=True)
class PartSizes(DerivedSizes, Parameters):
    """Some of the core's parameters, and the sizes derived from them."""


@dataclass(frozen=True, kw_only=True)
class Banks(PartSizes):
    n_banks: int = power_of_two(4, low=2, high=MAX_BANKS, doc="banks, each with a dot-product unit and a SIMD engine")


@dataclass(frozen=True, kw_only=True)
class Lanes(PartSizes):
    n_lanes: int = integer(4, low=1, high=MAX_LANES, doc="products a beat of a dot-product unit")


@dataclass(frozen=True, kw_only=True)
class SimdLanes(PartSizes):
    simd_lanes: int = integer(4, low=1, high=MAX_LANES, doc="lanes of an engine")


@dataclass(frozen=True, kw_only=True)
class VectorLanes(PartSizes):
    vector_lanes: int | None = integer(
        None, low=1, high=MAX_LANES, doc="lanes of the vector unit, a divisor of a word of IMEM; by default 8 at most"
    )


@dataclass(frozen=True, kw_only=True)
class SpecialLanes(PartSizes):
    special_lanes: int | None = integer(
        None, low=1, high=MAX_LANES, doc="function units of each kind in it; by default half of vector_lanes"
    )


@dataclass(frozen=True, kw_only=True)
class Tokens(PartSizes):
    max_tokens: int = integer(64, low=2, high=MAX_TOKENS, doc="tokens: rows of a command, keys and values")


@dataclass(frozen=True, kw_only=True)
class HeadDim(PartSizes):
    max_head_dim: int = integer(
        16, low=1, high=layer_norm_unit.MAX_ELEMENTS, doc="elements of a query, key or value, at most max_dim"
    )


@dataclass(frozen=True, kw_only=True)
class RowDim(PartSizes):
    max_dim: int = integer(
        32,
        low=1,
        high=MAX_DIM,
        doc=f"elements of a row of any other matrix; a row of LAYER_NORM has at most {layer_norm_unit.MAX_ELEMENTS}",
    )


@dataclass(frozen=True, kw_only=True)
class RunAhead(PartSizes):
    run_ahead: int = integer(
        MAX_RUN_AHEAD, low=0, high=MAX_RUN_AHEAD, doc="rows that a dot-product unit may be ahead of the slowest one"
    )


@dataclass(frozen=True, kw_only=True)
class ImemDepth(PartSizes):
    imem_depth: int = integer(512, low=2, high=MAX_WORDS, doc="words of IMEM")


@dataclass(frozen=True, kw_only=True)
class WmemDepth(PartSizes):
    wmem_depth: int = integer(256, low=2, high=MAX_WORDS, doc="words of a weight bank, n_lanes elements each")


@dataclass(frozen=True, kw_only=True)
class VmemDepth(PartSizes):
    vmem_depth: int = integer(64, low=2, high=MAX_WORDS, doc="words of an engine's bank, simd_lanes elements each")


@dataclass(frozen=True, kw_only=True)
class OmemDepth(PartSizes):
    omem_depth: int = integer(1024, low=2, high=MAX_WORDS, doc="scores, and as many probabilities, a bank")


@dataclass(frozen=True, kw_only=True)
class PmemDepth(PartSizes):
    pmem_depth: int = integer(
        0, low=0, high=MAX_WORDS, doc="partial sums a dot-product unit, FP32; with 0 products are not summed in pieces"
    )


@dataclass(frozen=True, kw_only=True)
class Masks(PartSizes):
    n_masks: int = integer(2, low=1, high=15, doc="masks: one row for all rows, and n_masks - 1 of mask_depth rows")


@dataclass(frozen=True, kw_only=True)
class MaskDepth(PartSizes):
    mask_depth: int | None = integer(
        None, low=1, high=MAX_TOKENS, doc="rows of each mask from mask 1 on; by default max_tokens"
    )


@dataclass(frozen=True, kw_only=True)
class InFlight(PartSizes):
    in_flight: int = integer(8, low=2, high=16, doc="commands that may have been taken and not be done")


@dataclass(frozen=True, kw_only=True)
class Latent(PartSizes):
    latent_width: int = integer(8, low=1, high=MAX_SIDE, doc="columns of the latent that CTR compares")
    latent_height: int = integer(8, low=1, high=MAX_SIDE, doc="rows of that latent")
    channels: int = integer(3, low=1, high=MAX_CHANNELS, doc="channels of that latent")
    patch: int = integer(2, low=1, high=MAX_PATCH, doc="width and height of a patch, which is a token")
    reference: str = choice("last", *REFERENCES, doc="what CTR compares with, see token_selector")

    @property
    def latent(self):
        """The latent as the token selector takes it, n_banks values a beat."""
        return LatentParameters(
            width=self.latent_width,
            height=self.latent_height,
            channels=self.channels,
            patch=self.patch,
            n_values=self.n_banks,
        )


# The fields of a dataclass come in the order of its bases from the last one to the first.


@dataclass(frozen=True, kw_only=True)
class WordLanes(SimdLanes, Lanes, Banks):
    """The parameters that determine a word of IMEM."""


@dataclass(frozen=True, kw_only=True)
class ImemWord(ImemDepth, WordLanes):
    """The parameters that determine words and addresses of IMEM."""


@dataclass(frozen=True, kw_only=True)
class KeyMask(MaskDepth, Masks, Tokens, Banks):
    """The parameters that determine rows and addresses of the mask memory."""


@dataclass(frozen=True, kw_only=True)
class CommandLimits(
    MaskDepth,
    Masks,
    PmemDepth,
    OmemDepth,
    VmemDepth,
    WmemDepth,
    ImemDepth,
    RowDim,
    HeadDim,
    Tokens,
    SimdLanes,
    Lanes,
    Banks,
):
    """The parameters that limit commands."""


@dataclass(frozen=True, kw_only=True)
class CoreSizes(
    InFlight,
    Latent,
    MaskDepth,
    Masks,
    PmemDepth,
    OmemDepth,
    VmemDepth,
    WmemDepth,
    ImemDepth,
    RunAhead,
    RowDim,
    HeadDim,
    Tokens,
    SpecialLanes,
    VectorLanes,
    SimdLanes,
    Lanes,
    Banks,
):
    """The sizes of a core: all of its parameters."""

    def check(self):
        if self.rows_a_mask > self.max_tokens:
            self.refuse("mask_depth", f"at most max_tokens={self.max_tokens}")
        if self.key_slots > self.omem_depth:
            self.refuse("omem_depth", f"at least {self.key_slots}, for the scores of one row with max_tokens keys")
        if self.max_beats > self.wmem_depth:
            self.refuse("wmem_depth", f"at least {self.max_beats}, for n_banks columns of max_dim weights and a bias")
        if 3 * words_for(self.max_dim, self.row_word) > self.imem_depth:
            needed = 3 * words_for(self.max_dim, self.row_word)
            self.refuse("imem_depth", f"at least {needed}, for two rows of max_dim elements and one of results")
        if self.max_head_dim > self.max_dim:
            self.refuse("max_head_dim", f"at most max_dim={self.max_dim}")
        if self.row_word % self.n_vector_lanes:
            self.refuse("vector_lanes", f"a divisor of a word of IMEM, {self.row_word} elements")
        if self.n_special_lanes > self.n_vector_lanes:
            self.refuse("special_lanes", f"at most vector_lanes={self.n_vector_lanes}")
        if self.key_slots * self.column_beats > MAX_BEATS:
            self.refuse("max_tokens", f"at most {MAX_BEATS // self.column_beats * self.n_banks}, {MAX_BEATS} beats")
        if self.array_slots > MAX_SLOTS:
            self.refuse("max_dim", f"at most {MAX_SLOTS * self.n_banks}, {MAX_SLOTS} columns a bank")
        if self.max_beats > MAX_BEATS:
            self.refuse("max_dim", f"at most {(MAX_BEATS - 1) * self.n_lanes}, {MAX_BEATS - 1} beats of n_lanes")
        if words_for(self.latent_width * self.channels, self.n_banks) > MAX_BEATS_A_ROW:
            self.refuse("latent_width", f"at most {MAX_BEATS_A_ROW * self.n_banks // self.channels}")
        if self.latent.n_tokens > self.max_tokens:
            self.refuse("max_tokens", f"at least {self.latent.n_tokens}, the patches of the latent")


def check_sizes(sizes):
    """Refuse anything but CoreSizes, which are checked when made."""
    if not isinstance(sizes, CoreSizes):
        raise TypeError(f"sizes must be CoreSizes, not {sizes!r}")
