"""Bench, tests and properties of ``mixed_precision_array``."""
