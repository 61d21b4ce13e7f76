"""Bench, tests and properties of ``bitonic_sorter``."""
