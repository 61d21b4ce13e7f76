"""The parameters of the accelerator: those of its core, and those of its bus."""

from dataclasses import dataclass

from golden.spec.parameters import Parameters, integer, power_of_two
from golden.spec.sizes import CoreSizes, words_for

__all__ = ["DESCRIPTOR_BYTES", "PAGE_BYTES", "AcceleratorSizes", "BusSizes", "DerivedLatent"]

DESCRIPTOR_BYTES = 64
PAGE_BYTES = 4096
"""No AXI burst crosses a multiple of this."""


class DerivedBusSizes:
    """Sizes derived from the parameters of the bus."""

    data_width: int
    burst_beats: int
    n_reads: int
    n_writes: int

    @property
    def bus_bytes(self):
        """Bytes of a beat of the bus."""
        return self.data_width // 8

    @property
    def bus_elements(self):
        """Elements of 16 bits of a beat of the bus."""
        return self.data_width // 16

    @property
    def most_beats(self):
        """Beats of the longest burst: never more than a page has."""
        return min(self.burst_beats, PAGE_BYTES // self.bus_bytes)

    @property
    def read_depth(self):
        """Beats of the bus that loads may have asked for and not yet passed on to the core."""
        return self.n_reads * self.most_beats

    @property
    def write_depth(self):
        """Beats of the bus that stores hold: a burst is asked for when all its beats are there."""
        return max(4, 2 * self.most_beats)

    @property
    def descriptor_beats(self):
        """Beats of the bus that hold a descriptor: at least one."""
        return max(1, DESCRIPTOR_BYTES // self.bus_bytes)


@dataclass(frozen=True, kw_only=True)
class BusSizes(DerivedBusSizes, Parameters):
    data_width: int = power_of_two(64, low=32, high=1024, doc="bits of a beat of the AXI4 bus")
    address_width: int = integer(32, low=32, high=64, doc="bits of an address on that bus")
    id_width: int = integer(1, low=1, high=16, doc="bits of its identifiers; reads use 0 and 1, writes 0")
    burst_beats: int = power_of_two(16, low=1, high=256, doc="beats of a burst at most")
    n_reads: int = power_of_two(16, low=2, high=64, doc="read bursts of loads that are under way at most")
    n_writes: int = integer(4, low=1, high=64, doc="write bursts that are under way at most")
    fetch_depth: int = power_of_two(16, low=2, high=64, doc="descriptors that are read ahead at most")
    max_ring_log2: int = integer(16, low=1, high=24, doc="log2 of the descriptors of the longest ring")


class DerivedLatent:
    """Sizes of the latent that CTR takes."""

    latent_height: int
    latent_width: int
    channels: int
    patch: int
    n_banks: int
    reference: str

    @property
    def latent_pieces(self):
        """Pieces of n_banks values of a latent as CTR takes it: bands of patches, rows, or parts of rows, as fit."""
        height, row, n = self.latent_height, self.latent_width * self.channels, self.n_banks
        patch = min(self.patch, height)
        if n >= patch * row:
            return words_for(height, n // (patch * row) * patch)
        if n >= row:
            whole, rest = divmod(height, patch)
            return whole * words_for(patch, n // row) + words_for(rest, n // row)
        return height * words_for(row, n)

    @property
    def latent_length(self):
        """Bytes that CTR takes: a latent, or two."""
        return 2 * self.n_banks * self.latent_pieces * (1 if self.reference == "last" else 2)


@dataclass(frozen=True, kw_only=True)
class AcceleratorSizes(DerivedLatent, BusSizes, CoreSizes):
    """All parameters of an accelerator."""

    def check(self):
        super().check()
        if self.n_banks * self.key_slots < 16:
            self.refuse("max_tokens", "at least 9, for rows of masks are whole elements of 16 bits in memory")
