"""The block ``hash_bank_mapper``: :class:`HashBankMapper` and its parts."""

from hw.units.hash_bank_mapper.unit import HashBankMapper, HashBankMapperParameters

__all__ = ["HashBankMapper", "HashBankMapperParameters"]
