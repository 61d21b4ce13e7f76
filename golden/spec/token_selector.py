"""Parameters of the token selector, and of the latent that it compares."""

from dataclasses import dataclass

from golden.spec.parameters import Parameters, choice, integer

__all__ = [
    "MAX_BEATS_A_ROW",
    "MAX_CHANNELS",
    "MAX_PATCH",
    "MAX_SIDE",
    "REFERENCES",
    "LatentParameters",
    "TokenSelectorParameters",
]

MAX_BEATS_A_ROW = 4096
REFERENCES = ("previous", "last")
MAX_SIDE, MAX_CHANNELS, MAX_PATCH = 1024, 64, 64
"""Width and height of a latent, its channels, and the width and height of a patch."""


@dataclass(frozen=True, kw_only=True)
class LatentParameters(Parameters):
    """A latent, its patches, and the number of values a beat.

    A *band* is the rows of one row of patches, a *group* the rows of one band that lie in one beat (or the one row
    that takes several beats).
    """

    width: int = integer(32, low=1, high=MAX_SIDE, doc="values in a row of the latent")
    height: int = integer(32, low=1, high=MAX_SIDE, doc="rows of the latent")
    channels: int = integer(3, low=1, high=MAX_CHANNELS, doc="channels of the latent")
    patch: int = integer(
        2, low=1, high=MAX_PATCH, doc="width and height of a patch; patches at the far edges may be cut off"
    )
    n_values: int = integer(16, low=1, high=1024, doc="values a beat")
    channel_order: str = choice(
        "inner", "inner", "outer", doc="order within a row: pixel by pixel (inner) or channel by channel (outer)"
    )

    def check(self):
        if self.beats_a_group > MAX_BEATS_A_ROW:
            self.refuse("n_values", f"large enough that a row of the latent takes at most {MAX_BEATS_A_ROW} beats")

    @property
    def n_columns(self):
        return -(-self.width // self.patch)

    @property
    def n_bands(self):
        return -(-self.height // self.patch)

    @property
    def n_tokens(self):
        return self.n_columns * self.n_bands

    @property
    def row_values(self):
        return self.width * self.channels

    @property
    def beats_a_group(self):
        """More than one only where a row does not fit into a beat."""
        return -(-self.row_values // self.n_values)


@dataclass(frozen=True, kw_only=True)
class TokenSelectorParameters(LatentParameters):
    reference: str = choice(
        "previous",
        *REFERENCES,
        doc="compare with the latent of the step before, a second stream, or with the values at which each token was "
        "last computed, stored in the block",
    )
    bounds: int = integer(
        0,
        low=0,
        high=64,
        doc="0: decide by subtraction. Else (reference = last): keep two bounds in place of each "
        "value, made that many values a clock once a token is selected; fewer gates where n_values is large, twice "
        "the memory, and tau counts only where everything is selected",
    )
    index_queue: int = integer(
        0, low=0, high=1 << 16, doc="depth of the queue of mask words in front of the list of indices"
    )

    def check(self):
        super().check()
        if self.bounds and self.reference != "last":
            self.refuse("bounds", "0 where reference is previous")
