"""Bench, tests and properties of ``hash_bank_mapper``."""
