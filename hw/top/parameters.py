"""The parameters of the core and of its parts."""

from dataclasses import dataclass, fields

from golden.spec.sizes import CoreSizes
from hw.lib.parameters import Parameters, choice, integer, power_of_two
from hw.units.token_selector.order import LatentParameters

__all__ = ["CoreParameters"]

_MAX_WORDS = 1 << 16


@dataclass(frozen=True, kw_only=True)
class CoreParameters(Parameters):
    n_banks: int = power_of_two(4, low=2, high=64, doc="banks, each with a dot-product unit and a SIMD engine")
    n_lanes: int = power_of_two(4, low=1, high=64, doc="products a beat of a dot-product unit")
    simd_lanes: int = power_of_two(4, low=1, high=64, doc="lanes of a SIMD engine")
    max_tokens: int = integer(64, low=2, high=1 << 15, doc="tokens: rows of a command, keys and values")
    max_head_dim: int = integer(16, low=1, high=1 << 12, doc="elements of a query, key or value")
    max_dim: int = integer(32, low=1, high=1 << 12, doc="elements of a row of any other matrix")
    run_ahead: int = integer(8, low=0, high=8, doc="rows that a dot-product unit may be ahead of the slowest one")
    imem_depth: int = integer(
        512, low=2, high=_MAX_WORDS, doc="words of IMEM, max(n_banks, 2*n_lanes, simd_lanes) elements each"
    )
    wmem_depth: int = integer(256, low=2, high=_MAX_WORDS, doc="words of a weight bank, n_lanes elements each")
    vmem_depth: int = integer(64, low=2, high=_MAX_WORDS, doc="words of an engine's bank, simd_lanes elements each")
    omem_depth: int = integer(1024, low=2, high=_MAX_WORDS, doc="scores, and as many probabilities, a bank")
    n_masks: int = integer(2, low=1, high=15, doc="masks: one row for all rows, and n_masks - 1 of max_tokens rows")
    latent_width: int = integer(8, low=1, high=1024, doc="columns of the latent that CTR compares")
    latent_height: int = integer(8, low=1, high=1024, doc="rows of that latent")
    channels: int = integer(3, low=1, high=64, doc="channels of that latent")
    patch: int = integer(2, low=1, high=64, doc="width and height of a patch, which is a token")
    reference: str = choice("last", "previous", "last", doc="what CTR compares with, see token_selector")

    def check(self):
        if self.max_head_dim > self.max_dim:
            self.refuse("max_head_dim", f"at most max_dim={self.max_dim}")
        if self.row_word > self.n_banks * self.simd_lanes:
            self.refuse(
                "simd_lanes",
                f"at least {-(-self.row_word // self.n_banks)}, so that the vector unit holds a word of IMEM",
            )
        if self.latent().n_tokens > self.max_tokens:
            self.refuse("max_tokens", f"at least {self.latent().n_tokens}, the patches of the latent")

    @property
    def sizes(self):
        """What follows from the parameters."""
        return CoreSizes(**self.to_dict())

    @property
    def row_word(self):
        """Elements of a word of IMEM."""
        return max(self.n_banks, 2 * self.n_lanes, self.simd_lanes)

    def values(self):
        """The parameters by name, for another block of the core."""
        return {item.name: getattr(self, item.name) for item in fields(CoreParameters)}

    def latent(self):
        """The latent as the token selector takes it."""
        return LatentParameters(
            width=self.latent_width,
            height=self.latent_height,
            channels=self.channels,
            patch=self.patch,
            n_values=self.n_banks,
        )
