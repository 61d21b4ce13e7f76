"""Base of the parts around the core: they take the parameters of the bus and those that determine beats."""

from dataclasses import dataclass

from golden.spec.accelerator.parameters import BusSizes
from golden.spec.accelerator.transfers import mask_elements
from golden.spec.sizes import InFlight, Tokens, WordLanes
from hw.top.parameters import CorePart

__all__ = ["SystemPart", "SystemSizes"]


@dataclass(frozen=True, kw_only=True)
class SystemSizes(BusSizes, InFlight, Tokens, WordLanes):
    """Sizes of the bus and of the core's streams."""

    @property
    def n_slots(self):
        """Entries of the table of commands that were given to the core: more than it has under way itself."""
        return 1 << (self.in_flight + 3).bit_length()

    @property
    def slot_width(self):
        """Bits of the number of an entry."""
        return (self.n_slots - 1).bit_length()

    @property
    def byte_width(self):
        """Bits of an address below a beat of the bus."""
        return (self.bus_bytes - 1).bit_length()

    def whole_pieces(self, elements):
        """Elements of the whole pieces of so many elements that fit into a beat of the core."""
        return self.row_word // elements * elements if elements <= self.row_word else self.row_word

    @property
    def load_sizes(self):
        """Elements that a beat of the load stream may have: the sizes of all pieces, as many as fit."""
        return tuple(sorted({self.row_word, self.whole_pieces(self.n_banks), self.whole_pieces(mask_elements(self))}))

    @property
    def store_sizes(self):
        """Elements that a beat of the store stream may have."""
        mask = min(self.row_word, mask_elements(self))
        return tuple(sorted({1, 2, self.n_banks, mask, self.row_word}))


class SystemPart(CorePart):
    """A part around the core; its parameters have the names that they have in the accelerator."""

    Parameters = SystemSizes
