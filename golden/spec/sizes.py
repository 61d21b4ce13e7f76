"""The sizes of a core: everything that follows from its parameters, for the model and for the hardware."""

from dataclasses import dataclass

__all__ = ["CoreSizes", "DerivedSizes", "words_for"]


def words_for(elements, word):
    """Words of ``word`` elements that hold ``elements``."""
    return -(-elements // word)


class DerivedSizes:
    """What follows from the sizes of a core; each property needs no other sizes than it reads.

    So the parameters of a part of the core, which have some of the sizes only, have the properties that follow from
    these.
    """

    n_banks: int
    n_lanes: int
    simd_lanes: int
    max_tokens: int
    max_dim: int
    n_masks: int

    @property
    def row_word(self):
        """Elements of a word of IMEM and of a beat of the load and store streams."""
        return max(self.n_banks, 2 * self.n_lanes, self.simd_lanes)

    @property
    def row_part(self):
        """Elements of a word of IMEM that can be written alone: a bank. Dense products write groups of n_banks."""
        return min(self.row_word // self.n_banks, self.n_banks, self.simd_lanes)

    @property
    def row_parts(self):
        """Banks of IMEM."""
        return self.row_word // self.row_part

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
    def max_beats(self):
        """Beats a dot product: the longest row and a bias."""
        return words_for(self.max_dim, self.n_lanes) + 1

    @property
    def mask_rows(self):
        """Words of the mask memory: the common row of mask 0, then max_tokens rows for each further mask."""
        return 1 + (self.n_masks - 1) * self.max_tokens

    @property
    def mask_pieces(self):
        """Beats of the load and store streams a row of a mask takes."""
        return words_for(self.n_banks * self.key_slots, 16 * self.row_word)

    def slots_of(self, n_keys):
        """Keys a bank for n_keys keys: a power of two, so that every bank has as many."""
        return (1 << max(self.n_banks - 1, n_keys - 1).bit_length()) // self.n_banks


@dataclass(frozen=True, kw_only=True)
class CoreSizes(DerivedSizes):
    """The sizes of a core."""

    n_banks: int = 4
    n_lanes: int = 4
    simd_lanes: int = 4
    max_tokens: int = 64
    max_head_dim: int = 16
    max_dim: int = 32
    run_ahead: int = 8
    imem_depth: int = 512
    wmem_depth: int = 256
    vmem_depth: int = 64
    omem_depth: int = 1024
    n_masks: int = 2
    latent_width: int = 8
    latent_height: int = 8
    channels: int = 3
    patch: int = 2
    reference: str = "last"
