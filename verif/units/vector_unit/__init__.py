"""Bench, tests and properties of ``vector_unit``."""
