"""The parameters of the core, each declared once, and the base of its parts, which take those that they use."""

from dataclasses import dataclass

from golden.spec.parameters import Parameters, choice, integer, power_of_two
from golden.spec.sizes import CoreSizes, DerivedSizes
from hw.lib.block import Block
from hw.units.token_selector.order import LatentParameters

__all__ = [
    "Banks",
    "CommandLimits",
    "CoreParameters",
    "CorePart",
    "HeadDim",
    "ImemDepth",
    "ImemWord",
    "KeyMask",
    "Lanes",
    "Latent",
    "Masks",
    "OmemDepth",
    "RowDim",
    "RunAhead",
    "SimdLanes",
    "Tokens",
    "VmemDepth",
    "WmemDepth",
]

_MAX_WORDS = 1 << 16


@dataclass(frozen=True, kw_only=True)
class PartParameters(DerivedSizes, Parameters):
    """Some of the core's parameters, and the sizes that follow from them."""


@dataclass(frozen=True, kw_only=True)
class Banks(PartParameters):
    n_banks: int = power_of_two(4, low=2, high=64, doc="banks, each with a dot-product unit and a SIMD engine")


@dataclass(frozen=True, kw_only=True)
class Lanes(PartParameters):
    n_lanes: int = power_of_two(4, low=1, high=64, doc="products a beat of a dot-product unit")


@dataclass(frozen=True, kw_only=True)
class SimdLanes(PartParameters):
    simd_lanes: int = power_of_two(4, low=1, high=64, doc="lanes of a SIMD engine")


@dataclass(frozen=True, kw_only=True)
class Tokens(PartParameters):
    max_tokens: int = integer(64, low=2, high=1 << 15, doc="tokens: rows of a command, keys and values")


@dataclass(frozen=True, kw_only=True)
class HeadDim(PartParameters):
    max_head_dim: int = integer(16, low=1, high=1 << 12, doc="elements of a query, key or value")


@dataclass(frozen=True, kw_only=True)
class RowDim(PartParameters):
    max_dim: int = integer(32, low=1, high=1 << 12, doc="elements of a row of any other matrix")


@dataclass(frozen=True, kw_only=True)
class RunAhead(PartParameters):
    run_ahead: int = integer(8, low=0, high=8, doc="rows that a dot-product unit may be ahead of the slowest one")


@dataclass(frozen=True, kw_only=True)
class ImemDepth(PartParameters):
    imem_depth: int = integer(
        512, low=2, high=_MAX_WORDS, doc="words of IMEM, max(n_banks, 2*n_lanes, simd_lanes) elements each"
    )


@dataclass(frozen=True, kw_only=True)
class WmemDepth(PartParameters):
    wmem_depth: int = integer(256, low=2, high=_MAX_WORDS, doc="words of a weight bank, n_lanes elements each")


@dataclass(frozen=True, kw_only=True)
class VmemDepth(PartParameters):
    vmem_depth: int = integer(64, low=2, high=_MAX_WORDS, doc="words of an engine's bank, simd_lanes elements each")


@dataclass(frozen=True, kw_only=True)
class OmemDepth(PartParameters):
    omem_depth: int = integer(1024, low=2, high=_MAX_WORDS, doc="scores, and as many probabilities, a bank")


@dataclass(frozen=True, kw_only=True)
class Masks(PartParameters):
    n_masks: int = integer(2, low=1, high=15, doc="masks: one row for all rows, and n_masks - 1 of max_tokens rows")


@dataclass(frozen=True, kw_only=True)
class Latent(PartParameters):
    latent_width: int = integer(8, low=1, high=1024, doc="columns of the latent that CTR compares")
    latent_height: int = integer(8, low=1, high=1024, doc="rows of that latent")
    channels: int = integer(3, low=1, high=64, doc="channels of that latent")
    patch: int = integer(2, low=1, high=64, doc="width and height of a patch, which is a token")
    reference: str = choice("last", "previous", "last", doc="what CTR compares with, see token_selector")

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
class ImemWord(ImemDepth, SimdLanes, Lanes, Banks):
    """What the words of IMEM and their addresses follow from."""


@dataclass(frozen=True, kw_only=True)
class KeyMask(Masks, Tokens, Banks):
    """What the rows of the mask memory and their addresses follow from."""


@dataclass(frozen=True, kw_only=True)
class CommandLimits(
    Masks, OmemDepth, VmemDepth, WmemDepth, ImemDepth, RowDim, HeadDim, Tokens, SimdLanes, Lanes, Banks
):
    """What commands are checked against."""


@dataclass(frozen=True, kw_only=True)
class CoreParameters(
    Latent,
    Masks,
    OmemDepth,
    VmemDepth,
    WmemDepth,
    ImemDepth,
    RunAhead,
    RowDim,
    HeadDim,
    Tokens,
    SimdLanes,
    Lanes,
    Banks,
):
    def check(self):
        if self.max_head_dim > self.max_dim:
            self.refuse("max_head_dim", f"at most max_dim={self.max_dim}")
        if self.row_word > self.n_banks * self.simd_lanes:
            self.refuse(
                "simd_lanes",
                f"at least {-(-self.row_word // self.n_banks)}, so that the vector unit holds a word of IMEM",
            )
        if self.latent.n_tokens > self.max_tokens:
            self.refuse("max_tokens", f"at least {self.latent.n_tokens}, the patches of the latent")

    @property
    def sizes(self):
        """The sizes as the models take them."""
        return CoreSizes(**self.to_dict())


class CorePart(Block):
    """A part of the core: its parameters have the names that they have in the core."""

    @classmethod
    def for_core(cls, parameters):
        """The part that goes with the parameters of the core, or of a larger part of it."""
        return cls(**{name: getattr(parameters, name) for name in cls.Parameters.__dataclass_fields__})
