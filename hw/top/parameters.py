"""Base of the parts of the core, which take only those of its parameters that they use."""

from golden.spec.sizes import (
    Banks,
    CommandLimits,
    CoreSizes,
    HeadDim,
    ImemDepth,
    ImemWord,
    InFlight,
    KeyMask,
    Lanes,
    Latent,
    MaskDepth,
    Masks,
    OmemDepth,
    PmemDepth,
    RowDim,
    RunAhead,
    SimdLanes,
    SpecialLanes,
    Tokens,
    VectorLanes,
    VmemDepth,
    WmemDepth,
    WordLanes,
)
from hw.lib.block import Block

__all__ = [
    "Banks",
    "CommandLimits",
    "CoreSizes",
    "CorePart",
    "HeadDim",
    "ImemDepth",
    "ImemWord",
    "InFlight",
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
]


class CorePart(Block):
    """A part of the core: its parameters have the same names as in the core."""

    @classmethod
    def for_core(cls, parameters):
        """The part for the parameters of the core, or of a larger part of it."""
        return cls(**{name: getattr(parameters, name) for name in cls.Parameters.__dataclass_fields__})
