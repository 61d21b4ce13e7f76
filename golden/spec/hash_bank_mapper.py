"""Parameters of the maps from columns to banks, and the default multiplier."""

from dataclasses import dataclass

from golden.spec.parameters import Parameters, choice, integer, odd_or, power_of_two

__all__ = ["HASHES", "BankMapParameters", "HashBankMapperParameters", "default_multiplier"]

HASHES = ("modular", "range", "multiplicative", "xor_fold")
_GOLDEN_RATIO = (5**0.5 - 1) / 2


def default_multiplier(width):
    """The odd integer nearest to 2**width / phi (159 for 8 bits, 633 for 10, 2531 for 12)."""
    return 2 * int(_GOLDEN_RATIO * 2**width / 2) + 1


@dataclass(frozen=True, kw_only=True)
class BankMapParameters(Parameters):
    n_columns: int = integer(256, low=1, high=65536, doc="columns (key and value tokens) to be spread over the banks")
    n_banks: int = power_of_two(16, low=1, high=65536, doc="banks")
    hash: str = choice("multiplicative", *HASHES, doc="the map, see the block")
    multiplier: int | str | None = odd_or(
        None,
        "runtime",
        high=(1 << 32) - 1,
        doc="k of the multiplicative hash, a constant or an input; none = 2**w over the golden ratio, made odd",
    )

    def check(self):
        if self.multiplier is not None and self.hash != "multiplicative":
            self.refuse("multiplier", f"none for hash {self.hash}")

    @property
    def index_width(self):
        """Bits of an index, w = ceil(log2(n_columns)), but at least b."""
        return max((self.n_columns - 1).bit_length(), self.bank_width)

    @property
    def bank_width(self):
        """Bits of a bank number, b = log2(n_banks)."""
        return self.n_banks.bit_length() - 1

    @property
    def address_width(self):
        """Bits of an address inside a bank, w - b."""
        return self.index_width - self.bank_width

    @property
    def constant(self):
        """The constant multiplier modulo 2**w, or None where there is none."""
        if self.hash != "multiplicative" or self.multiplier == "runtime":
            return None
        return (self.multiplier or default_multiplier(self.index_width)) % (1 << self.index_width)


@dataclass(frozen=True, kw_only=True)
class HashBankMapperParameters(BankMapParameters):
    n_indices: int = integer(1, low=1, high=256, doc="indices, and slots, a beat")
    direction: str = choice(
        "both", "both", "forward", "inverse", doc="forward: only index to location; inverse: only slot to column"
    )
